import { Anchor, Group, Input, Text } from '@mantine/core'
import type { FormField } from './form-values'
import { describeRules } from './validation'
import { ValueCell } from './value-cell'
import { ValueInput } from './value-input'

type FormFieldInputProps = {
  field: FormField
  value: unknown
  error?: string
  /** In which part of the value the error is, as a JSON pointer. */
  errorPath?: string
  autoFocus: boolean
  onChange: (value: unknown) => void
  onBlur: () => void
}

/** One field of a form: its label, its input, its help, and what is wrong with it. */
export function FormFieldInput({ field, value, error, errorPath, autoFocus, onChange, onBlur }: FormFieldInputProps) {
  const label = field.title || field.key
  const description = [field.description, describeRules(field)].filter(Boolean).join(' ') || undefined
  if (field.isReadOnly)
    return (
      <Input.Wrapper label={label} description={description} labelElement="div">
        <Text size="sm" component="div" c="dimmed" truncate dir="auto" mih={24} role="group" aria-label={label}>
          {value === undefined || value === null ? '—' : <ValueCell field={field} value={value} />}
        </Text>
      </Input.Wrapper>
    )
  const FieldInput = field.Input ?? ValueInput
  return (
    <FieldInput
      field={field}
      value={value ?? undefined}
      onChange={onChange}
      onBlur={onBlur}
      error={error}
      {...(field.type === 'object' && { errorPath })}
      label={label}
      description={description}
      required={field.required}
      autoFocus={autoFocus}
    />
  )
}

type ConflictLineProps = { field: FormField; saved: unknown; onTake: () => void; onKeep: () => void }

/** Says beneath an input what somebody else saved there meanwhile, and lets the user choose. */
export const ConflictLine = ({ field, saved, onTake, onKeep }: ConflictLineProps) => (
  <Group gap={8} mt={-4} role="group" aria-label={`${field.title || field.key} was changed by someone else`}>
    <Text size="xs" component="div" truncate maw="100%">
      Theirs: {saved === null ? 'no value' : <ValueCell field={field} value={saved} />}
    </Text>
    <Anchor component="button" type="button" size="xs" onClick={onTake}>
      Take theirs
    </Anchor>
    <Anchor component="button" type="button" size="xs" onClick={onKeep}>
      Keep mine
    </Anchor>
  </Group>
)
