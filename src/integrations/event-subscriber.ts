import { and, asc, eq, min } from 'drizzle-orm'
import type { EventSubscriber } from '../jobs/event-dispatcher'
import type { EventHead } from '../jobs/outbox'
import type { Db } from '../storage/port'
import { MAX_RUN_DEPTH } from './loop-guard'
import { buildRunJob } from './run-job'
import { type IntegrationRow, integrations } from './tables'
import { matchesEvent } from './triggers/event'
import type { Trigger } from './triggers/index'

const isActiveEventTrigger = and(eq(integrations.triggerKind, 'event'), eq(integrations.active, true))

/**
 * Creates a run job for each event and each active integration whose trigger matches it. Events caused by its own runs,
 * or by a chain of `MAX_RUN_DEPTH` runs, are skipped: runs could otherwise trigger each other forever.
 */
export const integrationSubscriber: EventSubscriber = {
  async startsAfter(db) {
    const first = await db
      .select({ since: min(integrations.since) })
      .from(integrations)
      .where(isActiveEventTrigger)
      .get()
    return first?.since ?? undefined
  },
  async jobsFor({ db }, events) {
    const listenerRows = await findListeners(db)
    return events.flatMap((event) =>
      listenerRows.filter((listener) => shouldRun(listener, event)).map((listener) => toRunJob(listener, event)),
    )
  },
}

type Listener = Pick<IntegrationRow, '_id' | 'since'> & { trigger: Trigger<'event'> }

async function findListeners(db: Db): Promise<Listener[]> {
  const { _id, since, trigger } = integrations
  const rows = await db.select({ _id, since, trigger }).from(integrations).where(isActiveEventTrigger).orderBy(asc(_id))
  return rows as Listener[]
}

const shouldRun = ({ _id, since, trigger }: Listener, event: EventHead) =>
  event.seq > since && event.depth < MAX_RUN_DEPTH && event.cause !== _id && matchesEvent(trigger, event)

const toRunJob = ({ _id }: Listener, event: EventHead) => ({
  ...buildRunJob({ integration: _id, depth: event.depth + 1, event: event._id }, `${event._id}_${_id}`),
  trace: event.trace,
})
