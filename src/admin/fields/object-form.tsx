import { Input, Stack } from '@mantine/core'
import type { InputProps } from './field-kind'
import { JsonInput } from './json-input'
import { readObjectFields } from './object-fields'
import classes from './object-form.module.css'
import { ValueInput } from './value-input'

type JsonObject = Record<string, unknown>

const toObject = (value: unknown): JsonObject =>
  value !== null && typeof value === 'object' && !Array.isArray(value) ? (value as JsonObject) : {}
const isEmpty = (value: JsonObject) => Object.values(value).every((each) => each === undefined)

/** A form for an object whose schema names its properties, and a JSON editor for any other object. */
export function ObjectForm(props: InputProps) {
  const { field, value, onChange, onBlur, label, description, required, error, errorPath = '' } = props
  const parts = readObjectFields(field.schema)
  if (!parts) return <JsonInput {...props} />
  const object = toObject(value)
  const change = (next: JsonObject) => onChange(isEmpty(next) ? undefined : next)
  const others = Object.fromEntries(Object.entries(object).filter(([key]) => !parts.some((part) => part.key === key)))
  const changeOthers = (next: unknown) => {
    // What cannot be read as JSON yet would take the other properties away.
    if (typeof next === 'string') return
    change({ ...Object.fromEntries(parts.map(({ key }) => [key, object[key]])), ...toObject(next) })
  }
  const [, flawedKey, innerPath] = /^\/([^/]*)(.*)$/.exec(errorPath) ?? []
  const flawed = error ? parts.find(({ key }) => key === flawedKey) : undefined
  return (
    <Input.Wrapper {...{ label, description, required }} error={flawed ? undefined : error} labelElement="div">
      <Stack gap="xs" className={classes.parts}>
        {parts.map((part) => (
          <ValueInput
            key={part.key}
            field={part}
            value={object[part.key]}
            onChange={(next) => change({ ...object, [part.key]: next })}
            onBlur={onBlur}
            label={part.title || part.key}
            description={part.description}
            required={part.required}
            {...(part === flawed && { error, ...(part.type === 'object' && { errorPath: innerPath }) })}
          />
        ))}
        {!isEmpty(others) && (
          <JsonInput field={field} value={others} onChange={changeOthers} label="Other properties" />
        )}
      </Stack>
    </Input.Wrapper>
  )
}
