import { useMemo } from 'react'
import { CodeEditor } from '../ui/code-editor'
import type { CodeLanguage } from '../ui/code-mirror'
import type { InputProps } from './field-kind'

/** Returns an input for a text of code. An error that names a line also stands at the line. */
export const codeInput = (language: CodeLanguage) =>
  function CodeInput({ label = '', description, error, required, value, onChange }: InputProps) {
    const flaws = useMemo(() => {
      const line = /^Line (\d+)/.exec(error ?? '')?.[1]
      return error && line ? [{ line: Number(line), message: error }] : []
    }, [error])
    const text = typeof value === 'string' ? value : ''
    return (
      <CodeEditor
        {...{ label, description, error, required, language, flaws }}
        value={text}
        onChange={(typed) => onChange(typed || undefined)}
      />
    )
  }
