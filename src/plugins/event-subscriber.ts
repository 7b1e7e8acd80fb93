import { eq } from 'drizzle-orm'
import { sha256 } from '../core/crypto'
import type { EventSubscriber } from '../jobs/event-dispatcher'
import type { EventHead } from '../jobs/outbox'
import type { Db } from '../storage/port'
import { plugins } from './tables'

export const DELIVERY_JOB = 'delivery'

type EventKey = Pick<EventHead, 'source' | 'kind' | 'eventName'>

/**
 * The payload of a delivery job: an event, its plugin and the URL to send it to. The rest of the event is read when it
 * is sent, because thousands of jobs may share it.
 */
export type DeliveryPayload = { plugin: string; hookUrl: string; event: EventKey & Pick<EventHead, '_id'> }

/** A subscriber is a plugin at one URL: it receives each event once, and all events in order. */
const toSubscriberKey = (plugin: string, hookUrl: string) => sha256(`${plugin} ${hookUrl}`).slice(0, 24)

/** Returns the job that delivers an event. Its id is the `webhook-id`, which stays the same for each attempt. */
export const buildDeliveryJob = (
  { plugin, hookUrl, event }: DeliveryPayload,
  _id = `${event._id}_${toSubscriberKey(plugin, hookUrl)}`,
) => ({
  ...{ _id, kind: DELIVERY_JOB, orderingKey: `${DELIVERY_JOB} ${toSubscriberKey(plugin, hookUrl)}` },
  payload: { plugin, hookUrl, event } satisfies DeliveryPayload,
})

/** Creates a delivery job for each event and each subscriber whose active subscriptions match it. */
export const pluginSubscriber: EventSubscriber = {
  async startsAfter(db) {
    const positions = (await listSubscribers(db)).flatMap(({ entries }) => entries.map(({ since }) => since))
    return positions.length ? Math.min(...positions) : undefined
  },
  async jobsFor({ db }, events) {
    const plugins = await listSubscribers(db)
    return events.flatMap((event) =>
      plugins.flatMap(({ plugin, entries }) => {
        const matching = entries.filter((entry) => event.seq > entry.since && matchesEvent(entry, event))
        const addresses = new Set(matching.map(({ hookUrl }) => hookUrl))
        const { _id, source, kind, eventName } = event
        const eventRef = { _id, source, kind, eventName }
        return [...addresses].map((hookUrl) => ({
          ...buildDeliveryJob({ plugin, hookUrl, event: eventRef }),
          trace: event.trace,
        }))
      }),
    )
  },
}

const matchesEvent = (entry: EventKey, event: EventKey) =>
  (['source', 'kind', 'eventName'] as const).every((name) => entry[name] === '*' || entry[name] === event[name])

async function listSubscribers(db: Db) {
  const { _id, subscribedEvents, active } = plugins
  const rows = await db.select({ plugin: _id, subscribedEvents }).from(plugins).where(eq(active, true))
  return rows.map(({ plugin, subscribedEvents }) => ({
    plugin,
    entries: subscribedEvents.filter((entry) => entry.active),
  }))
}
