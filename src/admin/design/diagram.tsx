import { Anchor, Button, Skeleton } from '@mantine/core'
import { IconPlus } from '@tabler/icons-react'
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { lazy, Suspense } from 'react'
import { blueprintsQuery } from '../api/queries'
import { BLUEPRINT_ROLES, useHasRole } from '../api/roles'
import { EmptyState } from '../ui/empty-state'
import { ProblemMessage } from '../ui/problem-message'
import { Screen } from '../ui/screen'
import classes from './diagram.module.css'
import { ON_DELETE_WORDS } from './field-traits'
import { listRelations } from './relations'

const DiagramCanvas = lazy(async () => ({ default: (await import('./diagram-canvas')).DiagramCanvas }))

/** All blueprints with their relations, as a diagram and as text. */
export function Diagram() {
  const { data: blueprints, error } = useQuery(blueprintsQuery)
  const mayCreate = useHasRole(BLUEPRINT_ROLES)
  const relations = listRelations(blueprints ?? [])
  return (
    <Screen
      title="Diagram"
      request={{ method: 'GET', path: '/api/blueprints' }}
      actions={
        <>
          <Button component={Link} to="/data" variant="default">
            List
          </Button>
          {mayCreate && (
            <Button component={Link} to="/blueprints/new" leftSection={<IconPlus size={14} />}>
              New blueprint
            </Button>
          )}
        </>
      }
    >
      <div className={classes.screen}>
        {error && <ProblemMessage error={error} />}
        {blueprints?.length === 0 && (
          <EmptyState
            text="There are no blueprints yet."
            action={mayCreate ? { label: 'Create a blueprint', to: '/blueprints/new' } : undefined}
          />
        )}
        {!!blueprints?.length && (
          <>
            <Suspense fallback={<Skeleton m="md" height={320} animate={false} />}>
              <DiagramCanvas key={blueprints.map(({ key, updated }) => key + updated).join()} blueprints={blueprints} />
            </Suspense>
            <details className={classes.relations}>
              <summary>{relations.length === 1 ? '1 relation' : `${relations.length} relations`} as text</summary>
              <ul>
                {relations.map(({ from, field, to }) => (
                  <li key={`${from.key}.${field.key}`}>
                    <Anchor component={Link} to={`/data/${from.key}/all/design`} size="sm">
                      <bdi>{from.name}</bdi>
                    </Anchor>
                    : {field.title || field.key} names {field.multi ? 'several of' : 'one of'}{' '}
                    <Anchor component={Link} to={`/data/${to.key}/all/design`} size="sm">
                      <bdi>{to.name}</bdi>
                    </Anchor>
                    . When that is deleted: {ON_DELETE_WORDS[field.onDelete ?? 'restrict'].toLowerCase()}.
                  </li>
                ))}
              </ul>
            </details>
          </>
        )}
      </div>
    </Screen>
  )
}
