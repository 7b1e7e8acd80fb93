import { Button, Group, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { meQuery } from '../../api/queries'
import { CopyButton } from '../../ui/copy-button'
import { ProblemMessage } from '../../ui/problem-message'
import type { ChatTurn } from './chat-turns'
import type { Citation } from './completion-stream'
import classes from './message.module.css'
import { MessageText } from './message-text'
import { ToolSteps } from './tool-steps'

type MessageProps = { turn: ChatTurn; agent?: string; onRetry?: () => void }

/** A question and its answer, with the tools that were called, the files it is based on, and what it cost. */
export function Message({ turn, agent, onRetry }: MessageProps) {
  const { question, answer, steps, state, citations, error } = turn
  return (
    <article className={classes.turn}>
      {question && (
        <p className={classes.question} dir="auto">
          {question}
        </p>
      )}
      <ToolSteps steps={steps} />
      {answer && <MessageText text={answer} />}
      {state === 'running' && !answer && (
        <span className={classes.waiting} role="img" aria-label="The answer is coming" />
      )}
      {state === 'stopped' && (
        <Text size="xs" c="dimmed">
          The answer was stopped.
        </Text>
      )}
      {state === 'failed' && <ProblemMessage error={error} />}
      {!!citations?.length && <Citations citations={citations} agent={agent} />}
      {state !== 'running' && <MessageFoot turn={turn} onRetry={onRetry} />}
    </article>
  )
}

function MessageFoot({ turn: { answer, tokens, cost }, onRetry }: MessageProps) {
  return (
    <Group gap="xs" mt={4}>
      {answer && (
        <CopyButton value={answer}>
          {({ copied, copy }) => (
            <Button variant="subtle" color="gray" size="compact-xs" onClick={copy}>
              {copied ? 'Copied' : 'Copy answer'}
            </Button>
          )}
        </CopyButton>
      )}
      {onRetry && (
        <Button variant="subtle" color="gray" size="compact-xs" onClick={onRetry}>
          Try again
        </Button>
      )}
      <Text size="xs" c="dimmed" component="span">
        {tokens && `${tokens.prompt.toLocaleString()} + ${tokens.completion.toLocaleString()} tokens`}
        {!!cost && ` · cost ${formatCost(cost)}`}
      </Text>
    </Group>
  )
}

/** Returns a cost, which has no currency of its own, with as many digits as a small one needs. */
export const formatCost = (cost: number) => cost.toLocaleString(undefined, { maximumSignificantDigits: 3 })

/** The files of an answer; only admins may look at them. */
function Citations({ citations, agent }: { citations: Citation[]; agent?: string }) {
  const { data: me } = useQuery(meQuery)
  return (
    <ol className={classes.citations} aria-label="Sources of the answer">
      {citations.map(({ fileId, fileName, chunk }, n) => {
        const label = `[${n + 1}] ${fileName || fileId.slice(0, 8)}, part ${chunk + 1}`
        return (
          <li key={`${fileId} ${chunk}`}>
            {me?.isPrivileged ? (
              <Link to="/ai/knowledge" search={{ agent, file: fileId } as never}>
                {label}
              </Link>
            ) : (
              label
            )}
          </li>
        )
      })}
    </ol>
  )
}
