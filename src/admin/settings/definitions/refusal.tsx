import { Button, List, Text } from '@mantine/core'
import { ApiProblem } from '../../api/problem'
import { CodeDiff } from '../../ui/code-diff'
import { ProblemMessage } from '../../ui/problem-message'
import { readFailure } from './definition-push'
import classes from './definitions.module.css'

/** Why a plan or a push was refused: what is wrong in which file, or both sides of what somebody else has changed. */
export function Refusal({ error, onOverwrite }: { error: unknown; onOverwrite: () => void }) {
  const { flaws } = readFailure(error)
  const [ours, theirs] = flaws
  if (error instanceof ApiProblem && error.status === 412 && ours && theirs)
    return (
      <div>
        <ProblemMessage error={error} m={0} />
        <div className={classes.texts}>
          <p className={classes.path}>{ours.path}, from the tenant to your file:</p>
          <CodeDiff label="Both sides" language="text" before={theirs.message} after={ours.message} />
        </div>
        <Button mt="sm" variant="default" onClick={onOverwrite}>
          Compare with what is there now
        </Button>
        <Text size="xs" c="dimmed" mt={4}>
          A push then replaces what others have changed since your pull.
        </Text>
      </div>
    )
  return (
    <div>
      <ProblemMessage error={error} m={0} />
      {flaws.length > 1 && (
        <List size="sm" mt="xs" aria-label="What is wrong">
          {flaws.map(({ path, message }) => (
            <List.Item key={`${path} ${message}`}>{message}</List.Item>
          ))}
        </List>
      )}
    </div>
  )
}
