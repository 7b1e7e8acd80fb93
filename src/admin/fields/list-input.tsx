import { ActionIcon, Button, Group, Input, MultiSelect, Stack, TagsInput } from '@mantine/core'
import { IconPlus, IconX } from '@tabler/icons-react'
import type { ComponentType } from 'react'
import type { Field } from '../api/schema'
import { MAX_UNSEARCHED_CHOICES } from './choice-input'
import type { InputProps } from './field-kind'

const toList = (value: unknown): unknown[] => (Array.isArray(value) ? value : [])
const emptyToUndefined = (list: unknown[]) => (list.length ? list : undefined)

/** An input for a list of texts. */
export function TextListInput({ field, value, onChange, ...rest }: InputProps) {
  const list = toList(value).map(String)
  if (field.enum)
    return (
      <MultiSelect
        {...rest}
        data={field.enum.map(String)}
        value={list}
        onChange={(next) => onChange(emptyToUndefined(next))}
        searchable={field.enum.length > MAX_UNSEARCHED_CHOICES}
        clearable={!field.required}
      />
    )
  return (
    <TagsInput
      {...rest}
      value={list}
      onChange={(next) => onChange(emptyToUndefined(next))}
      acceptValueOnBlur
      // A value may contain a comma.
      splitChars={[]}
      placeholder={list.length ? undefined : 'Enter adds a value'}
    />
  )
}

/** Returns an input for a list of values: the input of one value for each of them. */
export const valueListInput = (ValueInput: ComponentType<InputProps>) =>
  function ValueListInput({ field, value, onChange, onBlur, error, autoFocus, ...rest }: InputProps) {
    const list = toList(value)
    const name = rest['aria-label'] ?? rest.label ?? field.key
    const single: Field = { ...field, multi: false, required: true, min: undefined, max: undefined }
    const replace = (index: number, next: unknown) => onChange(list.map((each, n) => (n === index ? next : each)))
    const { label, description, required } = rest
    return (
      <Input.Wrapper {...{ label, description, required, error }} labelElement="div">
        <Stack gap={4} mt={4}>
          {list.map((each, index) => (
            <Group key={index} gap={4} wrap="nowrap" align="flex-start">
              <div style={{ flex: 1, minWidth: 0 }}>
                <ValueInput
                  field={single}
                  value={each ?? undefined}
                  onChange={(next) => replace(index, next ?? null)}
                  onBlur={onBlur}
                  aria-label={`${name}, value ${index + 1}`}
                  autoFocus={each === null || (autoFocus && index === 0)}
                />
              </div>
              <ActionIcon
                mt={4}
                variant="subtle"
                color="gray"
                aria-label={`Remove value ${index + 1} of ${name}`}
                onClick={() => onChange(emptyToUndefined(list.filter((_, n) => n !== index)))}
              >
                <IconX size={14} />
              </ActionIcon>
            </Group>
          ))}
          <Group>
            <Button
              variant="subtle"
              size="compact-xs"
              leftSection={<IconPlus size={14} />}
              onClick={() => onChange([...list, null])}
              aria-label={`Add a value to ${name}`}
            >
              Add a value
            </Button>
          </Group>
        </Stack>
      </Input.Wrapper>
    )
  }
