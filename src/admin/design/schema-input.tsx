import { useState } from 'react'
import { CodeEditor } from '../ui/code-editor'
import { findJsonFlaw } from '../ui/json-flaw'
import type { DraftField } from './design-draft'

type SchemaInputProps = { value: DraftField['schema']; error?: string; onChange: (part: Partial<DraftField>) => void }

/** The JSON Schema of an object. What is typed counts as soon as it is JSON. */
export function SchemaInput({ value, error, onChange }: SchemaInputProps) {
  const [text, setText] = useState(() => (value ? JSON.stringify(value, null, 2) : ''))
  const flaw = text.trim() ? findJsonFlaw(text) : undefined
  const change = (next: string) => {
    setText(next)
    if (!next.trim()) onChange({ schema: undefined })
    else if (!findJsonFlaw(next)) onChange({ schema: JSON.parse(next) })
  }
  return (
    <CodeEditor
      label="Schema"
      description="A JSON Schema, which its values match."
      language="json"
      value={text}
      error={error}
      flaws={flaw ? [flaw] : undefined}
      onChange={change}
    />
  )
}
