import type { EventSourceMessage } from 'eventsource-parser'
import { useEffect, useRef, useState } from 'react'
import { followEvents, type LiveState } from '../api/event-stream'
import { queryClient } from '../api/queries'
import type { Entity } from '../api/schema'
import { forgetDeletion, isDeleted } from './deletions'
import { isOwnVersion, patchRows, refreshLists } from './entity-cache'
import { entityQuery, type ListSearch } from './entity-queries'

const GLOW_MS = 2_000
/** The list is fetched again so long after a change that moves its rows. */
const REFRESH_DELAY_MS = 700
/** Of more changes at once, single rows are not followed: the list is fetched again. */
const MAX_FOLLOWED_CHANGES = 50

const toAddress = (blueprint: string, query: ListSearch) => {
  const { $sort: _, ...filters } = query
  const parameters = new URLSearchParams(Object.entries(filters).filter(([, value]) => value !== ''))
  return `/api/blueprints/${encodeURIComponent(blueprint)}/entities/changes?${parameters}`
}

/** Collects changes for a moment, so that many of them cause one request. */
function createRefresher(blueprint: string) {
  let timer: ReturnType<typeof setTimeout> | undefined
  return {
    schedule: () => {
      timer ??= setTimeout(() => {
        timer = undefined
        void refreshLists(blueprint)
      }, REFRESH_DELAY_MS)
    },
    cancel: () => clearTimeout(timer),
  }
}

/** Follows the changes of a list: rows show them at once, and those that others changed glow. */
export function useLiveEntities(blueprint: string, query: ListSearch) {
  const [state, setState] = useState<LiveState>('connecting')
  const [glowing, setGlowing] = useState<ReadonlySet<string>>(new Set())
  const sortKeys = useRef<string[]>([])
  sortKeys.current = (query.$sort ?? '').split(',').map((key) => key.replace(/^-/, ''))
  const address = toAddress(blueprint, query)
  useEffect(() => {
    const stop = new AbortController()
    const refresher = createRefresher(blueprint)
    let recent = 0
    const glow = (identifier: string) => {
      setGlowing((all) => new Set(all).add(identifier))
      setTimeout(() => setGlowing((all) => new Set([...all].filter((each) => each !== identifier))), GLOW_MS)
    }
    const update = (entity: Entity) => {
      if (isDeleted(blueprint, entity.identifier)) return
      let before: Entity | undefined
      patchRows(blueprint, entity.identifier, (row) => {
        before = row
        return entity
      })
      const key = entityQuery(blueprint, entity.identifier).queryKey
      if (queryClient.getQueryData(key)?.entity.updated !== entity.updated)
        void queryClient.invalidateQueries({ queryKey: key })
      if (!isOwnVersion(entity)) glow(entity.identifier)
      if (sortKeys.current.some((each) => before && before[each] !== entity[each])) refresher.schedule()
    }
    const handle = ({ event, data }: EventSourceMessage) => {
      if (event === 'ready') return
      recent++
      setTimeout(() => recent--, REFRESH_DELAY_MS)
      if (event === 'reset' || recent > MAX_FOLLOWED_CHANGES) return refresher.schedule()
      const entity = JSON.parse(data) as Entity
      if (event === 'update') return update(entity)
      if (event === 'create') forgetDeletion(blueprint, entity.identifier)
      if (event === 'create' && !isOwnVersion(entity)) glow(entity.identifier)
      refresher.schedule()
    }
    void followEvents(address, { onEvent: handle, onState: setState }, stop.signal)
    return () => {
      stop.abort()
      refresher.cancel()
    }
  }, [blueprint, address])
  return { state, glowing }
}
