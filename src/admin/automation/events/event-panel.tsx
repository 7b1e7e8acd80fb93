import { Anchor, Group, Space } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi, Link, useNavigate, useSearch } from '@tanstack/react-router'
import type { Event } from '../../api/schema'
import { CodeBlock } from '../../ui/code-block'
import { Details } from '../../ui/details'
import { ProblemMessage } from '../../ui/problem-message'
import { RelativeTime } from '../../ui/relative-time'
import { ShortId } from '../../ui/short-id'
import { SidePanel } from '../../ui/side-panel'
import { UserName } from '../user-name'
import { listEventLinks } from './event-links'
import { type EventFilters, eventQuery } from './event-queries'

const route = getRouteApi('/frame/automation/events/$id')

/** One event beside the list, with links to what it is about. */
export function EventPanel() {
  const { id } = route.useParams()
  const filters = useSearch({ strict: false }) as EventFilters
  const navigate = useNavigate()
  const { data: event, error } = useQuery(eventQuery(id))
  const openList = (search: EventFilters) => navigate({ to: '/automation/events', search: search as never })
  return (
    <SidePanel title={event?.eventName ?? 'Event'} onClose={() => openList(filters)}>
      {error && <ProblemMessage error={error} />}
      {event && <EventDetails event={event} onFilter={(part) => openList({ ...filters, ...part })} />}
    </SidePanel>
  )
}

type EventDetailsProps = { event: Event; onFilter: (filters: EventFilters) => void }

function EventDetails({ event, onFilter }: EventDetailsProps) {
  const { _id, description, source, kind, user, workspace, created } = event
  const links = listEventLinks(event)
  return (
    <>
      <Details
        items={[
          ['Description', description],
          ['When', <RelativeTime key="created" time={created} />],
          ['Kind', kind],
          ['Source', source],
          ['User', user && <UserName id={user} />],
          [
            'About',
            links.length > 0 && (
              <Group gap="sm">
                {links.map(({ label, path, search }) => (
                  <Anchor key={path} component={Link} to={path} search={search as never} size="sm">
                    {label}
                  </Anchor>
                ))}
              </Group>
            ),
          ],
          [
            'Workspace',
            workspace && (
              <Anchor component="button" type="button" size="sm" onClick={() => onFilter({ workspace })}>
                Show only this workspace
              </Anchor>
            ),
          ],
          ['ID', <ShortId key="id" id={_id} />],
        ]}
      />
      <Space h="sm" />
      <CodeBlock label="JSON" code={JSON.stringify(event, null, 2)} />
    </>
  )
}
