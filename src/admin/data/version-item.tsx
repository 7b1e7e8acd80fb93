import { Alert, Anchor, Button, List, Text } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { ApiProblem } from '../api/problem'
import type { Blueprint, Field } from '../api/schema'
import { confirmAction } from '../ui/confirmation'
import { showNotice } from '../ui/notices'
import { ProblemMessage } from '../ui/problem-message'
import { formatMoment, RelativeTime } from '../ui/relative-time'
import type { LoadedEntity } from './entity-queries'
import { type EntityVersion, restoreVersion } from './entity-versions'
import { systemFields, UserLabel } from './system-fields'
import { VersionChange } from './version-change'
import classes from './version-change.module.css'

const MAX_FIELDS_SHOWN = 8
const ACTION_WORDS = { create: 'Created', change: 'Changed', remove: 'Deleted' }

type VersionItemProps = { blueprint: Blueprint; loaded: LoadedEntity; version: EntityVersion; isLatest: boolean }

/** Returns the fields that a version changed, in the order of the blueprint. */
const listChanged = ({ fields }: Blueprint, { changes }: EntityVersion): Field[] =>
  [...fields, ...systemFields].filter(({ key }) => key in changes)

/** One version: who made it and when, what it changed, and the way back to it. */
export function VersionItem({ blueprint, loaded, version, isLatest }: VersionItemProps) {
  const { version: number, action, at, by } = version
  const restoring = useMutation({
    mutationFn: () => restoreVersion(blueprint.key, loaded, version),
    onSuccess: () => showNotice(`Restored version ${number}.`),
  })
  const confirmAndRestore = async () => {
    const isConfirmed = await confirmAction({
      title: `Restore version ${number}?`,
      text: `The fields get the values that they had after ${formatMoment(at)}. The current values stay in the history.`,
      action: 'Restore',
    })
    if (isConfirmed) restoring.mutate()
  }
  return (
    <>
      <Text size="sm" component="div">
        {ACTION_WORDS[action]}
        {by && (
          <>
            {' '}
            by <UserLabel id={by} />
          </>
        )}{' '}
        <Text span size="xs" c="dimmed">
          <RelativeTime time={at} /> · version {number}
          {isLatest && ', the present one'}
        </Text>
      </Text>
      <VersionChanges blueprint={blueprint} version={version} />
      {restoring.error && <RestoreProblem blueprint={blueprint} error={restoring.error} />}
      {!isLatest && action !== 'remove' && (
        <Button variant="default" size="compact-xs" mt={6} onClick={confirmAndRestore} loading={restoring.isPending}>
          Restore this version
        </Button>
      )}
    </>
  )
}

function VersionChanges({ blueprint, version }: Pick<VersionItemProps, 'blueprint' | 'version'>) {
  const [isWhole, setIsWhole] = useState(false)
  const changed = listChanged(blueprint, version)
  if (!changed.length)
    return (
      <Text size="xs" c="dimmed">
        The values before it are not known.
      </Text>
    )
  const rest = changed.length - MAX_FIELDS_SHOWN
  return (
    <>
      <dl className={classes.changes}>
        {(isWhole ? changed : changed.slice(0, MAX_FIELDS_SHOWN)).map((field) => (
          <VersionChange key={field.key} field={field} change={version.changes[field.key]!} />
        ))}
      </dl>
      {rest > 0 && !isWhole && (
        <Anchor component="button" type="button" size="xs" onClick={() => setIsWhole(true)}>
          {rest === 1 ? '1 more field' : `${rest} more fields`}
        </Anchor>
      )}
    </>
  )
}

/** Why a version cannot be restored: the values that no longer fit, by their fields. */
function RestoreProblem({ blueprint, error }: { blueprint: Blueprint; error: Error }) {
  const flaws = error instanceof ApiProblem ? error.fieldErrors : []
  if (error instanceof ApiProblem && error.status === 412)
    return (
      <Alert color="red" variant="light" role="alert" mt={6}>
        Someone else changed this in the meantime. Look at their change, then restore the version again.
      </Alert>
    )
  if (!flaws.length) return <ProblemMessage error={error} m={0} />
  const titles = new Map(blueprint.fields.map(({ key, title }) => [key, title || key]))
  const nameOf = (path: string) => {
    const [key = ''] = path.replace(/^\/(metadata\/)?/, '').split('/')
    return titles.get(key) ?? key
  }
  return (
    <Alert color="red" variant="light" role="alert" mt={6}>
      This version cannot be restored, because its values no longer fit.
      <List size="sm" mt={4}>
        {flaws.map(({ path, message }) => (
          <List.Item key={`${path} ${message}`}>
            <bdi>{nameOf(path)}</bdi>: {message}
          </List.Item>
        ))}
      </List>
    </Alert>
  )
}
