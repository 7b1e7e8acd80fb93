import { CodeBlock } from '../../ui/code-block'

type Failure = { code: string; message: string; stack?: string }

/** Why a run failed, with the lines of the code that led to it. */
export const RunFailure = ({ failure: { code, message, stack } }: { failure: Failure }) => (
  <CodeBlock label={code} code={stack ? `${message}\n${stack.trimEnd()}` : message} />
)
