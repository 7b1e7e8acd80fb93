import { now, toIsoString } from '../core/clock'
import { currentTraceparent } from '../core/trace'
import type { Tx } from '../storage/port'
import type { Tenant } from '../tenancy/tenants'
import type { events } from './tables'
import { wake } from './wake'

/** An event to be emitted. */
export type NewEvent = {
  /** The emitter: an area or a plugin, such as `accounts`, `payments` or `plugin:…`. */
  source: string
  /** What it is about, such as the key of a blueprint. */
  kind: string
  eventName: string
  /** A sentence for people. */
  description?: string
  metadata?: Record<string, unknown>
  /** The user who caused it, and the workspace. */
  user?: string | null
  workspace?: string | null
}

export type Event = typeof events.$inferSelect

/** What decides who receives an event. It is small, unlike the metadata. */
export type EventHead = Pick<Event, 'seq' | '_id' | 'source' | 'kind' | 'eventName' | 'cause' | 'depth' | 'trace'>

/** Returns an event as the API shows it. */
export const toPublicEvent = ({ seq: _, cause: __, depth: ___, trace: ____, created, ...event }: Event) => ({
  ...event,
  created: toIsoString(created),
})

const INSERT_EVENT = `insert into events (_id, source, kind, event_name, description, metadata, "user", workspace, created, trace)
  values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

/** Stores an event in the transaction that causes it, and returns it. Subscribers are notified after the commit. */
export async function emit({ tenant }: Pick<Tenant, 'tenant'>, tx: Tx, newEvent: NewEvent): Promise<Event> {
  const event = withDefaults(newEvent)
  const [row] = await tx.query(`${INSERT_EVENT} returning seq`, toRow(event))
  tx.afterCommit(() => wake(tenant))
  return { seq: row![0] as number, cause: null, depth: 0, ...event }
}

/** Stores several events of one transaction. */
export async function emitAll({ tenant }: Pick<Tenant, 'tenant'>, tx: Tx, newEvents: NewEvent[]) {
  const rows = newEvents.map((newEvent) => toRow(withDefaults(newEvent)))
  await tx.executeMany(INSERT_EVENT, rows)
  tx.afterCommit(() => wake(tenant))
}

const withDefaults = ({ description = '', metadata = {}, user = null, workspace = null, ...newEvent }: NewEvent) => ({
  _id: Bun.randomUUIDv7(),
  ...newEvent,
  ...{ description, metadata, user, workspace, created: now(), trace: currentTraceparent() },
})

const toRow = (event: ReturnType<typeof withDefaults>) => {
  const { _id, source, kind, eventName, description, metadata, user, workspace, created, trace } = event
  return [_id, source, kind, eventName, description, JSON.stringify(metadata), user, workspace, created, trace]
}
