import { Alert, type AlertProps, Code, UnstyledButton } from '@mantine/core'
import { ApiProblem } from '../api/problem'
import { CopyButton } from './copy-button'

/** The sentence of an error, with its code and the id of the request beneath. */
export function ProblemMessage({ error, m = 'md' }: { error: unknown; m?: AlertProps['m'] }) {
  const message = error instanceof Error ? error.message : String(error)
  return (
    <Alert color="red" variant="light" role="alert" m={m}>
      {message}
      {error instanceof ApiProblem && (
        <div>
          <Code>{error.code}</Code>{' '}
          {error.requestId && (
            <CopyButton value={error.requestId}>
              {({ copied, copy }) => (
                <UnstyledButton fz="xs" c="dimmed" onClick={copy}>
                  {copied ? 'Copied' : `Request ${error.requestId}`}
                </UnstyledButton>
              )}
            </CopyButton>
          )}
        </div>
      )}
    </Alert>
  )
}
