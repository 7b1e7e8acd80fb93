import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { api, fetchData } from '../api/client'
import type { Event } from '../api/schema'
import { RelativeTime } from '../ui/relative-time'
import { describeEvent, isFailure, toEventLink } from './event-description'
import classes from './latest-events.module.css'

const EVENTS_PATH: string = '/automation/events'
const EVENTS_SHOWN = 25
const POLL_INTERVAL_MS = 5_000

/** The names of those who caused events, by their ids. Only administrators may read them. */
function useUserNames(events: Event[], isAdmin: boolean) {
  const ids = [...new Set(events.flatMap(({ user }) => user ?? []))].sort().join(',')
  const { data = [] } = useQuery({
    queryKey: ['users', 'names', ids],
    queryFn: () => fetchData(api.GET('/api/users', { params: { query: { _id: ids, select: 'username,name' } } })),
    enabled: isAdmin && ids !== '',
    placeholderData: keepPreviousData,
    staleTime: 300_000,
  })
  return new Map(data.map(({ _id, name, username }) => [_id, name || username]))
}

/** What happened last. The list follows new events. */
export function LatestEvents({ isAdmin }: { isAdmin: boolean }) {
  const { data: events = [], isSuccess } = useQuery({
    queryKey: ['events', 'latest'],
    queryFn: () => fetchData(api.GET('/api/events', { params: { query: { limit: EVENTS_SHOWN } } })),
    refetchInterval: POLL_INTERVAL_MS,
  })
  const names = useUserNames(events, isAdmin)
  return (
    <section className={classes.latest} aria-labelledby="latest-events">
      <header className={classes.header}>
        <h2 id="latest-events" className={classes.heading}>
          Latest
        </h2>
        <span className={classes.live}>live</span>
        <Link to={EVENTS_PATH} className={classes.all}>
          All events
        </Link>
      </header>
      {isSuccess && !events.length && <p className={classes.empty}>Nothing has happened yet.</p>}
      <ol className={classes.events}>
        {events.map((event) => (
          <EventLine key={event._id} event={event} userName={names.get(event.user ?? '')} />
        ))}
      </ol>
    </section>
  )
}

function EventLine({ event, userName }: { event: Event; userName?: string }) {
  const { to, search } = toEventLink(event)
  return (
    <li>
      <Link to={to} search={(search ?? {}) as never} className={classes.event}>
        <span className={`${classes.mark} ${isFailure(event) ? classes.bad : ''}`} aria-hidden />
        <span className={classes.text} title={event.description}>
          {describeEvent(event)}
        </span>
        <span className={classes.source}>
          {userName && `${userName} · `}
          <RelativeTime time={event.created} />
        </span>
      </Link>
    </li>
  )
}
