import { NumberInput, TextInput } from '@mantine/core'
import { fieldKinds } from '../fields'
import type { DraftField } from './design-draft'
import { boundLabels, fieldTraits } from './field-traits'

type BoundInputsProps = {
  field: DraftField
  errorAt: (part: string) => string | undefined
  onChange: (part: Partial<DraftField>) => void
}

/** The lowest and highest length, number or value of a field, and the pattern of its texts. */
export function BoundInputs({ field, errorAt, onChange }: BoundInputsProps) {
  const { type, multi } = field
  const labels = boundLabels(type, !!multi)
  const isLength = multi || fieldTraits[type].bounds === 'length'
  const { Input } = fieldKinds[type]
  return (
    <>
      {labels &&
        (['min', 'max'] as const).map((bound, n) =>
          isLength ? (
            <NumberInput
              key={bound}
              label={labels[n]}
              min={0}
              allowDecimal={false}
              hideControls
              value={field[bound] ?? ''}
              error={errorAt(bound)}
              onChange={(next) => onChange({ [bound]: next === '' ? undefined : Number(next) })}
            />
          ) : (
            <Input
              key={bound}
              field={{ key: bound, type, required: false }}
              label={labels[n]}
              value={field[bound]}
              error={errorAt(bound)}
              onChange={(next) => onChange({ [bound]: next as number | string | undefined })}
            />
          ),
        )}
      {fieldTraits[type].bounds === 'length' && (
        <TextInput
          label="Pattern"
          description="A regular expression that its values match."
          placeholder="^[A-Z]{2}-\d+$"
          ff="monospace"
          value={field.pattern ?? ''}
          error={errorAt('pattern')}
          onChange={(event) => onChange({ pattern: event.currentTarget.value || undefined })}
        />
      )}
    </>
  )
}
