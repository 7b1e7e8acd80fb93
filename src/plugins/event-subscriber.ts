import { eq } from 'drizzle-orm'
import { sha256 } from '../core/crypto'
import type { EventSubscriber } from '../jobs/event-dispatcher'
import { toPublicEvent } from '../jobs/outbox'
import type { Db } from '../storage/port'
import { type EventSubscription, plugins } from './tables'

export const DELIVERY_JOB = 'delivery'

/** What is to be delivered, and to whom. */
export type DeliveryPayload = { plugin: string; hookUrl: string; event: ReturnType<typeof toPublicEvent> }

/** A subscriber is a plugin at an address: the same event is sent there once, and all in their order. */
const toSubscriberKey = (plugin: string, hookUrl: string) => sha256(`${plugin} ${hookUrl}`).slice(0, 24)

/** The job that delivers an event. Its id is the message's, however often it is sent. */
export const buildDeliveryJob = (
  { plugin, hookUrl, event }: DeliveryPayload,
  _id = `${event._id}_${toSubscriberKey(plugin, hookUrl)}`,
) => ({
  ...{ _id, kind: DELIVERY_JOB, orderingKey: `${DELIVERY_JOB} ${toSubscriberKey(plugin, hookUrl)}` },
  payload: { plugin, hookUrl, event } satisfies DeliveryPayload,
})

/** Plugins hear of the events that they have subscribed to. */
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
        return [...addresses].map((hookUrl) => buildDeliveryJob({ plugin, hookUrl, event: toPublicEvent(event) }))
      }),
    )
  },
}

type EventKey = Pick<EventSubscription, 'source' | 'kind' | 'eventName'>

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
