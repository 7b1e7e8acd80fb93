import { useState } from 'react'
import { CodeEditor } from '../ui/code-editor'
import { findJsonFlaw } from '../ui/json-flaw'
import type { InputProps } from './field-kind'

/** Returns what a text says as JSON: undefined when it is empty, the text itself while it cannot be read. */
function parse(text: string): unknown {
  if (!text.trim()) return undefined
  return findJsonFlaw(text) ? text : JSON.parse(text)
}

/** A text is what cannot be read as JSON yet. */
const write = (value: unknown) =>
  typeof value === 'string' ? value : value === undefined || value === null ? '' : JSON.stringify(value, null, 2)

const isEqual = (one: unknown, other: unknown) => JSON.stringify(one ?? null) === JSON.stringify(other ?? null)

/** An input for an object, as JSON. A text that cannot be read is sent as it is, so that the server refuses it. */
export function JsonInput({ field, value, onChange, label, description, error, required, ...rest }: InputProps) {
  const [text, setText] = useState(() => write(value))
  const [latestValue, setLatestValue] = useState(value)
  if (!isEqual(latestValue, value)) {
    setLatestValue(value)
    // Another value came from outside, such as what somebody else saved.
    if (!isEqual(parse(text), value)) setText(write(value))
  }
  const flaw = text.trim() ? findJsonFlaw(text) : undefined
  const change = (typed: string) => {
    setText(typed)
    onChange(parse(typed))
  }
  return (
    <CodeEditor
      language="json"
      label={label ?? rest['aria-label'] ?? field.key}
      description={description}
      required={required}
      value={text}
      onChange={change}
      error={flaw?.message ?? error}
      flaws={flaw && [flaw]}
    />
  )
}
