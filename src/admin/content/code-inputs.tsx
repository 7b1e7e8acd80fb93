import { useMemo, useState } from 'react'
import { ApiProblem } from '../api/problem'
import type { InputProps } from '../fields/field-kind'
import { CodeEditor } from '../ui/code-editor'
import type { CodeLanguage } from '../ui/code-mirror'

/** Returns an input for a text of code. An error that names a line also stands at the line. */
export const codeInput = (language: CodeLanguage) =>
  function CodeInput({ label = '', description, error, required, value, onChange }: InputProps) {
    const flaws = useMemo(() => {
      const line = /^Line (\d+)/.exec(error ?? '')?.[1]
      return error && line ? [{ line: Number(line), message: error }] : []
    }, [error])
    const text = typeof value === 'string' ? value : ''
    return <CodeEditor {...{ label, description, error, required, language, flaws }} value={text} onChange={onChange} />
  }

/** What cannot be read as JSON yet is a text. */
const write = (value: unknown) => (typeof value === 'string' ? value : JSON.stringify(value ?? {}, null, 2))

/** An input for an object, as JSON. What is typed stays as it is until it can be read. */
export function JsonCodeInput({ field, value, onChange, label, description, error, required }: InputProps) {
  const [text, setText] = useState(() => write(value))
  const [flaw, setFlaw] = useState<string>()
  const change = (typed: string) => {
    setText(typed)
    try {
      onChange(JSON.parse(typed))
      setFlaw(undefined)
    } catch (cause) {
      onChange(typed)
      setFlaw(`This is not JSON yet: ${(cause as Error).message}`)
    }
  }
  return (
    <CodeEditor
      {...{ label: label ?? field.key, description, required }}
      language="json"
      value={text}
      onChange={change}
      error={flaw ?? error}
    />
  )
}

/** Returns the object of a `JsonCodeInput`. @throws ApiProblem at the field when it is not one */
export function requireJsonObject(value: unknown, key: string): Record<string, unknown> {
  if (value && typeof value === 'object' && !Array.isArray(value)) return value as Record<string, unknown>
  const message = 'Write a JSON object, such as {"monday": "9-17"}.'
  throw new ApiProblem(400, 'JSON', message, [{ path: `/${key}`, message }], null)
}
