import { Anchor, Button, Group, List, Modal, Skeleton, Text } from '@mantine/core'
import { useQueries } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { writeList } from '../../core/list-text'
import type { Blueprint, BlueprintChangeProblem, BlueprintDryRun } from '../api/schema'
import { entityCountQuery } from '../data/entity-queries'
import { ProblemMessage } from '../ui/problem-message'
import classes from './design.module.css'

const count = (number: number, name: string) => `${number.toLocaleString()} ${name}`

/** Returns what a change does to the entities of a blueprint, as one sentence. */
function summarizeEffect({ entities, breaking, rewritten }: BlueprintDryRun, name: string): string {
  if (!entities) return `There are no ${name} yet, so that nothing else changes.`
  if (breaking)
    return `${breaking.toLocaleString()} of ${count(entities, name)} do not fit. Change them first, or change the design.`
  if (rewritten) return `All ${count(entities, name)} fit. ${rewritten.toLocaleString()} of them are rewritten.`
  return `All ${count(entities, name)} fit, and none of them changes.`
}

/** One reason why entities do not fit, with the way to them. */
function Misfits({ blueprint, problem }: { blueprint: string; problem: BlueprintChangeProblem }) {
  const { message, count: total, examples, duplicates = [] } = problem
  return (
    <List.Item>
      {message} <Text span c="dimmed">{`(${total.toLocaleString()})`}</Text>
      <div className={classes.misfits}>
        {examples.map((identifier) => (
          <Anchor
            key={identifier}
            component={Link}
            to={`/data/${blueprint}/${encodeURIComponent(identifier)}`}
            size="sm"
            dir="auto"
          >
            {identifier}
          </Anchor>
        ))}
        {total > examples.length && examples.length > 0 && (
          <Text size="sm" c="dimmed">
            and {(total - examples.length).toLocaleString()} more
          </Text>
        )}
      </div>
      {duplicates.length > 0 && (
        <Text size="xs" c="dimmed">
          The same value: {duplicates.map(({ value }) => JSON.stringify(value)).join(', ')}
        </Text>
      )}
      {examples.length > 0 && (
        <Anchor
          component={Link}
          to={`/data/${blueprint}`}
          search={{ 'identifier[$in]': writeList(examples) } as never}
          size="sm"
        >
          Show {examples.length === 1 ? 'it' : `these ${examples.length}`} in the list
        </Anchor>
      )}
    </List.Item>
  )
}

type ChangeReviewProps = {
  blueprint: Blueprint
  sentences: string[]
  removedKeys: string[]
  report?: BlueprintDryRun
  error: unknown
  isSaving: boolean
  onSave: () => void
  onClose: () => void
}

/** A dialog that shows what a change does to the entities before it is saved. */
export function ChangeReview({ blueprint, sentences, removedKeys, report, error, ...rest }: ChangeReviewProps) {
  const name = blueprint.name.toLowerCase()
  const counts = useQueries({
    queries: removedKeys.map((key) => ({
      ...entityCountQuery(blueprint.key, { [`${key}[$exists]`]: 'true' }),
      retry: false,
    })),
  })
  const isSettled = report || error
  const label = report?.rewritten ? `Save and rewrite ${count(report.rewritten, name)}` : 'Save'
  return (
    <Modal opened onClose={rest.onClose} title={`Changes of ${blueprint.name}`} size="lg">
      <List size="sm" mb="md" className={classes.changes}>
        {sentences.map((sentence) => (
          <List.Item key={sentence}>
            <span dir="auto">{sentence}</span>
          </List.Item>
        ))}
        {removedKeys.map((key, n) =>
          counts[n]?.data ? (
            <List.Item key={key} c="var(--mantine-color-error)">
              {count(counts[n].data, name)} lose their value of “{key}”.
            </List.Item>
          ) : null,
        )}
      </List>
      {!isSettled && <Skeleton height={16} width="70%" aria-label="Checking what this changes" />}
      {report && (
        <Text role="status" fw={500}>
          {summarizeEffect(report, name)}
        </Text>
      )}
      {!!report?.problems.length && (
        <List size="sm" mt="xs" spacing="xs">
          {report.problems.map((problem) => (
            <Misfits key={`${problem.field} ${problem.code}`} blueprint={blueprint.key} problem={problem} />
          ))}
        </List>
      )}
      {!!error && <ProblemMessage error={error} />}
      <Group mt="md" justify="flex-end">
        <Button variant="default" onClick={rest.onClose}>
          Continue editing
        </Button>
        {report && !report.breaking && (
          <Button onClick={rest.onSave} loading={rest.isSaving} data-autofocus>
            {label}
          </Button>
        )}
      </Group>
    </Modal>
  )
}
