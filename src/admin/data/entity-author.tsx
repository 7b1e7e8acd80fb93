import { useQuery } from '@tanstack/react-query'
import { useHasRole } from '../api/roles'
import type { Blueprint, Entity } from '../api/schema'
import { RelativeTime } from '../ui/relative-time'
import { EVENT_READERS, entityEventsQuery } from './entity-events'
import { UserLabel } from './system-fields'

/** Says who changed an entity last, and when. Events name them, where the blueprint records changes. */
export function EntityAuthor({ blueprint, entity }: { blueprint: Blueprint; entity: Entity }) {
  const mayRead = useHasRole(EVENT_READERS)
  const { data: events = [] } = useQuery({
    ...entityEventsQuery(blueprint.key, entity._id, entity.updated),
    enabled: mayRead && !!blueprint.dispatchers?.update,
  })
  const user = events.find(({ eventName }) => eventName === 'update')?.user
  return (
    <>
      Changed by {user ? <UserLabel id={user} /> : 'somebody else'} <RelativeTime time={entity.updated ?? ''} />
    </>
  )
}
