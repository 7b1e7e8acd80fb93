import { Input, Stack } from '@mantine/core'
import { useState } from 'react'
import { CodeEditor } from '../ui/code-editor'
import type { InputProps } from './field-kind'
import { readObjectFields } from './object-fields'
import classes from './object-form.module.css'
import { ValueInput } from './value-input'

type JsonObject = Record<string, unknown>

const toObject = (value: unknown): JsonObject =>
  value !== null && typeof value === 'object' && !Array.isArray(value) ? (value as JsonObject) : {}
const isEmpty = (value: JsonObject) => Object.values(value).every((each) => each === undefined)

/** The line that an error of `JSON.parse` names, or the last one. */
const findFlawLine = (message: string, text: string) =>
  Number(/line (\d+)/.exec(message)?.[1] ?? text.split('\n').length)

/** An input for JSON. What is typed stays as it is until it can be read. */
function JsonEditor({ field, value, onChange, label, error, ...rest }: InputProps) {
  const [text, setText] = useState(() => (value === undefined || value === null ? '' : JSON.stringify(value, null, 2)))
  const [flaw, setFlaw] = useState<string>()
  const [sent, setSent] = useState(value)
  // Another value came from outside, such as what somebody else saved.
  if (JSON.stringify(sent) !== JSON.stringify(value) && flaw === undefined) {
    setSent(value)
    setText(value === undefined || value === null ? '' : JSON.stringify(value, null, 2))
  }
  const change = (typed: string) => {
    setText(typed)
    try {
      const next = typed.trim() ? JSON.parse(typed) : undefined
      setFlaw(undefined)
      setSent(next)
      onChange(next)
    } catch (cause) {
      setFlaw((cause as Error).message)
    }
  }
  return (
    <CodeEditor
      language="json"
      label={label ?? rest['aria-label'] ?? field.key}
      description={rest.description}
      required={rest.required}
      value={text}
      onChange={change}
      error={flaw ? 'This is not JSON yet.' : error}
      flaws={flaw ? [{ line: findFlawLine(flaw, text), message: flaw }] : undefined}
    />
  )
}

/** A form for an object whose schema names its properties, and a JSON editor for any other object. */
export function ObjectForm(props: InputProps) {
  const { field, value, onChange, onBlur, label, description, required, error, errorPath = '' } = props
  const parts = readObjectFields(field.schema)
  if (!parts) return <JsonEditor {...props} />
  const object = toObject(value)
  const change = (next: JsonObject) => onChange(isEmpty(next) ? undefined : next)
  const others = Object.fromEntries(Object.entries(object).filter(([key]) => !parts.some((part) => part.key === key)))
  const changeOthers = (next: unknown) =>
    change({ ...Object.fromEntries(parts.map(({ key }) => [key, object[key]])), ...toObject(next) })
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
          <JsonEditor field={field} value={others} onChange={changeOthers} label="Other properties" />
        )}
      </Stack>
    </Input.Wrapper>
  )
}
