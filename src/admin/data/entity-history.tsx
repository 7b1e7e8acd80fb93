import { Anchor, Text, Timeline } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { BLUEPRINT_ROLES, useHasRole } from '../api/roles'
import type { Blueprint, Entity, Event } from '../api/schema'
import { EmptyState } from '../ui/empty-state'
import { ProblemMessage } from '../ui/problem-message'
import { RelativeTime } from '../ui/relative-time'
import { EVENT_READERS, entityEventsQuery, recordsChanges } from './entity-events'
import type { LoadedEntity } from './entity-queries'
import { EntityTimeline } from './entity-timeline'
import { UserLabel } from './system-fields'

const EVENT_WORDS: Record<string, string> = { create: 'Created', update: 'Changed', delete: 'Deleted' }

/** Returns the titles of the fields that an event names. */
function listChanged({ metadata }: Event, { fields }: Blueprint): string {
  const { changed } = metadata as { changed?: unknown }
  if (!Array.isArray(changed)) return ''
  const titles = new Map(fields.map(({ key, title }) => [key, title || key]))
  return changed.map((key) => titles.get(String(key)) ?? String(key)).join(', ')
}

/** What happened to an entity: its versions where the blueprint has a history, else what events know. */
export function EntityHistory({ blueprint, loaded }: { blueprint: Blueprint; loaded: LoadedEntity }) {
  if (blueprint.history) return <EntityTimeline blueprint={blueprint} loaded={loaded} />
  return (
    <>
      <RecordedEvents blueprint={blueprint} entity={loaded.entity} />
      <HistoryHint blueprint={blueprint} />
    </>
  )
}

/** Tells those who design blueprints how to keep former values from now on. */
function HistoryHint({ blueprint: { key } }: { blueprint: Blueprint }) {
  if (!useHasRole(BLUEPRINT_ROLES)) return null
  return (
    <Text size="xs" c="dimmed" mt="md">
      With a history, former values are shown here and can be restored.{' '}
      <Anchor
        component={Link}
        to="/data/$blueprint/all/design/settings"
        params={{ blueprint: key } as never}
        size="xs"
        underline="always"
      >
        Switch it on in the design
      </Anchor>
      .
    </Text>
  )
}

/** Who changed what, and when. Events know it, where the blueprint records changes. */
function RecordedEvents({ blueprint, entity }: { blueprint: Blueprint; entity: Entity }) {
  const mayRead = useHasRole(EVENT_READERS)
  const events = useQuery({
    ...entityEventsQuery(blueprint.key, entity._id, entity.updated),
    enabled: mayRead && recordsChanges(blueprint),
  })
  if (!mayRead) return <EmptyState text="Administrators and editors see who changed what." />
  if (!recordsChanges(blueprint))
    return (
      <EmptyState
        text={`Changes of ${blueprint.name.toLowerCase()} are not recorded. The settings of their design turn this on.`}
      />
    )
  if (events.error) return <ProblemMessage error={events.error} />
  if (events.data?.length === 0) return <EmptyState text="No changes recorded yet." />
  return (
    <Timeline bulletSize={12} lineWidth={1} aria-label="History">
      {events.data?.map((event) => (
        <Timeline.Item key={event._id}>
          <Text size="sm" component="div">
            {EVENT_WORDS[event.eventName] ?? event.eventName} by{' '}
            {event.user ? <UserLabel id={event.user} /> : 'the system'}{' '}
            <Text span size="xs" c="dimmed">
              <RelativeTime time={event.created} />
            </Text>
          </Text>
          <Text size="xs" c="dimmed">
            {listChanged(event, blueprint)}
          </Text>
        </Timeline.Item>
      ))}
    </Timeline>
  )
}
