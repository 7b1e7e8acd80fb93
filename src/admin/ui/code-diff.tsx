import { Skeleton } from '@mantine/core'
import { lazy, Suspense } from 'react'
import type { CodeMergeProps } from './code-merge'

const CodeMerge = lazy(async () => ({ default: (await import('./code-merge')).CodeMerge }))

/** Two texts of code as one, with what was removed and what was added. The library is loaded when the first one is shown. */
export const CodeDiff = (props: CodeMergeProps) => (
  <Suspense fallback={<Skeleton height={160} animate={false} />}>
    <CodeMerge {...props} />
  </Suspense>
)
