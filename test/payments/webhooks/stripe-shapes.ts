import type Stripe from 'stripe'
import type { Json, Span } from './vendor-scenarios'

export type Sent = { type: string; object: Json }

/** The shapes of an API version: where it has the periods of subscriptions and the subscription of invoices. */
export type Shapes = {
  version: string
  subscription(id: string, ours: string, fields: Json, periods: Span[]): Json
  invoice(id: string, of: string, ours: string, fields: Json, periods: Span[]): Json
}

/** A part of an object of the vendor's package, which knows one version: members that it types differently are errors. */
type Part<T> = T extends (infer Item)[] ? Part<Item>[] : T extends object ? { [Key in keyof T]?: Part<T[Key]> } : T

type Owner = (subscription: string) => { tenant: string; subscription: string }
const inSeconds = ({ start, end }: Span) => ({ current_period_start: start, current_period_end: end })

const beforeBasil = (version: string, metadataOf: Owner): Shapes => ({
  version,
  subscription: (id, ours, fields, periods) => ({
    ...{ id, object: 'subscription', metadata: metadataOf(ours), cancel_at_period_end: false, pause_collection: null },
    ...inSeconds(periods[0]!),
    items: { object: 'list', data: periods.map((_, n) => ({ id: `si_${n}`, object: 'subscription_item' })) },
    ...fields,
  }),
  invoice: (id, of, ours, fields, periods) => ({
    ...{ id, object: 'invoice', subscription: of, subscription_details: { metadata: metadataOf(ours) }, paid: true },
    lines: {
      object: 'list',
      data: periods.map((period, n) => ({ id: `il_${n}`, type: 'subscription', subscription: of, period, amount: 0 })),
    },
    ...fields,
  }),
})

const sinceBasil = (version: string, metadataOf: Owner): Shapes => ({
  version,
  subscription: (id, ours, fields, periods) => ({
    ...({
      ...{ id, object: 'subscription', metadata: metadataOf(ours), cancel_at_period_end: false },
      pause_collection: null,
      items: {
        object: 'list',
        data: periods.map((period, n) => ({ id: `si_${n}`, object: 'subscription_item', ...inSeconds(period) })),
      },
    } satisfies Part<Stripe.Subscription>),
    ...fields,
  }),
  invoice: (id, of, ours, fields, periods) => ({
    ...({
      ...{ id, object: 'invoice' },
      parent: {
        type: 'subscription_details',
        quote_details: null,
        subscription_details: { subscription: of, metadata: metadataOf(ours) },
      },
      lines: {
        object: 'list',
        data: periods.map((period, n) => ({
          ...{ id: `il_${n}`, period, amount: 0 },
          parent: { type: 'subscription_item_details', subscription_item_details: { subscription: of } },
        })),
      },
    } satisfies Part<Stripe.Invoice>),
    ...fields,
  }),
})

/** Returns the shapes of the API versions, with the newest one last. */
export const stripeShapes = (metadataOf: Owner) => [
  beforeBasil('2024-06-20', metadataOf),
  sinceBasil('2025-03-31.basil', metadataOf),
  sinceBasil('2026-09-30.endive', metadataOf),
]
