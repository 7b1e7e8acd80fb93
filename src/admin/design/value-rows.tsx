import { ActionIcon, Button, Input } from '@mantine/core'
import { IconPlus, IconX } from '@tabler/icons-react'
import { useId } from 'react'
import { fieldKinds } from '../fields'
import type { DraftField } from './design-draft'
import classes from './fields.module.css'

type ValueRowsProps = {
  label: string
  description: string
  /** What one value is called, such as "choice". */
  noun: string
  field: DraftField
  values: unknown[] | undefined
  /** The flaw of the value at a position, or of all. */
  errorAt: (index?: number) => string | undefined
  onChange: (values: unknown[] | undefined) => void
}

/** Values beneath each other, each with the input of the field's type. */
export function ValueRows({ label, description, noun, field, values = [], errorAt, onChange }: ValueRowsProps) {
  const labelId = useId()
  const { Input: ValueInput } = fieldKinds[field.type]
  // A choice is written freely; bounds belong to the field.
  const single = { key: field.key, type: field.type, target: field.target, required: true }
  const change = (next: unknown[]) => onChange(next.length ? next : undefined)
  return (
    <Input.Wrapper
      label={label}
      description={description}
      error={errorAt()}
      labelElement="div"
      labelProps={{ id: labelId }}
    >
      <ul className={classes.values} aria-labelledby={labelId}>
        {values.map((value, index) => (
          <li key={index} className={classes.value}>
            <div className={classes.grow}>
              <ValueInput
                field={single}
                aria-label={`${noun} ${index + 1}`}
                value={value}
                error={errorAt(index)}
                autoFocus={value === ''}
                onChange={(next) => change(values.with(index, next ?? ''))}
              />
            </div>
            <ActionIcon
              variant="subtle"
              color="gray"
              aria-label={`Remove ${noun} ${index + 1}`}
              onClick={() => change(values.toSpliced(index, 1))}
            >
              <IconX size={14} />
            </ActionIcon>
          </li>
        ))}
      </ul>
      <Button variant="subtle" leftSection={<IconPlus size={14} />} onClick={() => change([...values, ''])}>
        Add {noun}
      </Button>
    </Input.Wrapper>
  )
}
