import { eq } from 'drizzle-orm'
import { hashed } from '../core/secret'
import type { Hearer } from '../jobs/fanout'
import { toldEvent } from '../jobs/outbox'
import type { Db } from '../storage/port'
import { plugins, type Subscription } from './tables'

export const DELIVERY = 'delivery'

/** What is to be delivered, and to whom. */
export type Load = { plugin: string; hookUrl: string; event: ReturnType<typeof toldEvent> }

/** A subscriber is a plugin at an address: the same event is sent there once, and all in their order. */
const subscriber = (plugin: string, hookUrl: string) => hashed(`${plugin} ${hookUrl}`).slice(0, 24)

/** The job that delivers an event. Its id is the message's, however often it is sent. */
export const deliveryOf = ({ plugin, hookUrl, event }: Load, _id = `${event._id}_${subscriber(plugin, hookUrl)}`) => ({
  ...{ _id, kind: DELIVERY, lane: `${DELIVERY} ${subscriber(plugin, hookUrl)}` },
  payload: { plugin, hookUrl, event } satisfies Load,
})

/** Plugins hear of the events that they have subscribed to. */
export const hearing: Hearer = {
  async since(db) {
    const all = (await listening(db)).flatMap(({ entries }) => entries.map(({ since }) => since))
    return all.length ? Math.min(...all) : undefined
  },
  async hear({ db }, events) {
    const plugins = await listening(db)
    return events.flatMap((event) =>
      plugins.flatMap(({ plugin, entries }) => {
        const wanting = entries.filter((entry) => event.seq > entry.since && wants(entry, event))
        const addresses = new Set(wanting.map(({ hookUrl }) => hookUrl))
        return [...addresses].map((hookUrl) => deliveryOf({ plugin, hookUrl, event: toldEvent(event) }))
      }),
    )
  },
}

type Named = Pick<Subscription, 'source' | 'kind' | 'eventName'>

const wants = (entry: Named, event: Named) =>
  (['source', 'kind', 'eventName'] as const).every((name) => entry[name] === '*' || entry[name] === event[name])

async function listening(db: Db) {
  const { _id, subscribedEvents, active } = plugins
  const rows = await db.select({ plugin: _id, subscribedEvents }).from(plugins).where(eq(active, true))
  return rows.map(({ plugin, subscribedEvents }) => ({ plugin, entries: subscribedEvents.filter((one) => one.active) }))
}
