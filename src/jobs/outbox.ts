import { iso, now } from '../core/clock'
import type { Tx } from '../storage/port'
import type { Tenant } from '../tenancy/tenants'
import type { events } from './tables'
import { wake } from './wake'

/** What has happened, as its author tells it. */
export type Telling = {
  /** Which part of the platform, or whose plugin, tells it: `accounts`, `payments`, `plugin:…`. */
  source: string
  /** What it is about, such as the key of a blueprint. */
  kind: string
  eventName: string
  /** A sentence for people. */
  description?: string
  metadata?: Record<string, unknown>
  /** Who did it, and in which workspace. */
  user?: string | null
  workspace?: string | null
}

export type Event = typeof events.$inferSelect

/** An event as it is told to those outside. */
export const toldEvent = ({ seq: _, cause: __, depth: ___, created, ...event }: Event) => ({
  ...event,
  created: iso(created),
})

const INSERT = `insert into events (_id, source, kind, event_name, description, metadata, "user", workspace, created)
  values (?, ?, ?, ?, ?, ?, ?, ?, ?)`

/** Writes down what has happened, in the transaction in which it happens. Who wants to know is told after the commit. */
export async function emit({ tenant }: Pick<Tenant, 'tenant'>, tx: Tx, telling: Telling): Promise<Event> {
  const event = eventOf(telling)
  const [row] = await tx.ask(`${INSERT} returning seq`, rowOf(event))
  tx.afterwards(() => wake(tenant))
  return { seq: row![0] as number, cause: null, depth: 0, ...event }
}

/** The same for many things that happen together. */
export async function emitAll({ tenant }: Pick<Tenant, 'tenant'>, tx: Tx, tellings: Telling[]) {
  const rows = tellings.map((telling) => rowOf(eventOf(telling)))
  await tx.each(INSERT, rows)
  tx.afterwards(() => wake(tenant))
}

const eventOf = ({ description = '', metadata = {}, user = null, workspace = null, ...telling }: Telling) => ({
  _id: Bun.randomUUIDv7(),
  ...telling,
  ...{ description, metadata, user, workspace, created: now() },
})

const rowOf = (event: ReturnType<typeof eventOf>) => {
  const { _id, source, kind, eventName, description, metadata, user, workspace, created } = event
  return [_id, source, kind, eventName, description, JSON.stringify(metadata), user, workspace, created]
}
