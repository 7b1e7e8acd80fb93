import { Input, Skeleton } from '@mantine/core'
import { lazy, Suspense, useId } from 'react'
import type { CodeMirrorProps } from './code-mirror'

const CodeMirror = lazy(async () => ({ default: (await import('./code-mirror')).CodeMirror }))

type CodeEditorProps = Omit<CodeMirrorProps, 'labelId'> & {
  label: string
  description?: string
  error?: string
  required?: boolean
}

/** An input for code. The editor itself is loaded when the first one is shown. */
export function CodeEditor({ label, description, error, required, ...editor }: CodeEditorProps) {
  const labelId = useId()
  return (
    <Input.Wrapper
      label={label}
      description={description}
      error={error}
      required={required}
      labelElement="div"
      labelProps={{ id: labelId }}
    >
      <Suspense fallback={<Skeleton height={160} animate={false} />}>
        <CodeMirror {...editor} labelId={labelId} />
      </Suspense>
    </Input.Wrapper>
  )
}
