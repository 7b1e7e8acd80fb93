import { and, asc, eq, min } from 'drizzle-orm'
import type { Hearer } from '../../jobs/fanout'
import type { Event } from '../../jobs/outbox'
import type { Db } from '../../storage/port'
import { DEEPEST } from './causing'
import { runOf } from './running'
import { integrations, type Row } from './tables'
import type { Trigger } from './triggers'
import { wants } from './triggers/event'

const listening = and(eq(integrations.triggerKind, 'event'), eq(integrations.active, true))

/**
 * Integrations hear of the events that they wait for, but of none that comes of their own runs, nor of one that a chain
 * of runs led to: else they could go on forever.
 */
export const hearing: Hearer = {
  async since(db) {
    const first = await db
      .select({ since: min(integrations.since) })
      .from(integrations)
      .where(listening)
      .get()
    return first?.since ?? undefined
  },
  async hear({ db }, events) {
    const all = await listeners(db)
    return events.flatMap((event) => all.filter((one) => hears(one, event)).map((one) => heard(one, event)))
  },
}

type Listener = Pick<Row, '_id' | 'since'> & { trigger: Trigger<'event'> }

async function listeners(db: Db): Promise<Listener[]> {
  const { _id, since, trigger } = integrations
  const rows = await db.select({ _id, since, trigger }).from(integrations).where(listening).orderBy(asc(_id))
  return rows as Listener[]
}

const hears = ({ _id, since, trigger }: Listener, event: Event) =>
  event.seq > since && event.depth < DEEPEST && event.cause !== _id && wants(trigger, event)

const heard = ({ _id }: Listener, event: Event) =>
  runOf({ integration: _id, depth: event.depth + 1, event: event._id }, `${event._id}_${_id}`)
