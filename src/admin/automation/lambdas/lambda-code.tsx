import { useMemo } from 'react'
import { ApiProblem, findFieldError } from '../../api/problem'
import { CodeEditor } from '../../ui/code-editor'
import type { CodeFlaw } from '../../ui/code-mirror'
import { completeAtoll } from './atoll-completion'

/** Returns the flaws that the compiler found, at their lines. */
const readFlaws = (error: unknown): CodeFlaw[] =>
  error instanceof ApiProblem
    ? error.fieldErrors.flatMap(({ message, ...detail }) =>
        'line' in detail && typeof detail.line === 'number' ? [{ line: detail.line, message }] : [],
      )
    : []

type LambdaCodeProps = { code: string; error: unknown; onChange: (code: string) => void }

/** The editor of a lambda, with what the server's compiler found at its lines. */
export function LambdaCode({ code, error, onChange }: LambdaCodeProps) {
  const flaws = useMemo(() => readFlaws(error), [error])
  return (
    <CodeEditor
      label="Code"
      language="typescript"
      isTall
      value={code}
      onChange={onChange}
      flaws={flaws}
      error={findFieldError(error, 'code')}
      complete={completeAtoll}
    />
  )
}
