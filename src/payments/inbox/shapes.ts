import { type Static, t } from 'elysia'
import { textMatching, time } from '../../core/shapes'
import { growingListing } from '../../storage/lists'
import { MOST } from '../money'

const maybe = t.Optional
const words = <Word extends string>(...all: Word[]) => t.Unsafe<Word>(t.Union(all.map((word) => t.Literal(word))))

const name = t.String({ minLength: 1, maxLength: 255 })
const ms = t.Number({ minimum: 1 })
const minor = t.Number({ multipleOf: 1, maximum: MOST, minimum: -MOST })

/** What an event must say to have an effect: a signature tells who has sent it, and not that it makes sense. */
export const SensibleEvent = t.Object({
  subscriptionId: maybe(name),
  externalSubscriptionId: maybe(name),
  cancelAtPeriodEnd: maybe(t.Boolean()),
  invoice: maybe(
    t.Object({
      externalInvoiceId: name,
      amount: minor,
      currency: textMatching('^[A-Z]{3,5}$', 'Write the currency as a code of ISO 4217, such as USD.'),
      invoiceUrl: maybe(t.Nullable(t.String({ maxLength: 5_000 }))),
      paidAt: maybe(ms),
      items: maybe(t.Array(t.Object({ description: t.String(), quantity: t.Number(), amount: minor }))),
    }),
  ),
})

/** What is answered to a provider. */
export const Receipt = t.Object({ status: words('processed', 'duplicate', 'ignored', 'parked') })
export type Receipt = Static<typeof Receipt>

export const ProviderEvent = t.Object({
  _id: t.String(),
  providerKind: t.String(),
  eventId: t.String({ description: 'how the provider calls it' }),
  type: t.String(),
  status: words('received', 'processed', 'ignored', 'parked', 'failed'),
  outcome: t.Nullable(t.String({ description: 'why it has had no effect, or another one' })),
  sourceId: t.Nullable(t.String({ description: 'the integration source whose secret has signed it' })),
  subscriptionId: t.Nullable(t.String()),
  externalSubscriptionId: t.Nullable(t.String()),
  attempts: t.Number(),
  nextAttempt: t.Nullable(time),
  occurredAt: time,
  created: time,
  updated: time,
})
export type ProviderEvent = Static<typeof ProviderEvent>

export const WholeProviderEvent = t.Object({ ...ProviderEvent.properties, body: t.Unknown() })
export type WholeProviderEvent = Static<typeof WholeProviderEvent>

export const ProviderEventList = t.Object({
  ...growingListing,
  status: maybe(t.String({ description: 'processed, ignored, parked, failed; comma-separated' })),
  providerKind: maybe(t.String({ description: 'comma-separated' })),
  type: maybe(t.String({ description: 'comma-separated' })),
  subscriptionId: maybe(t.String()),
})
export type ProviderEventFilters = Pick<
  Static<typeof ProviderEventList>,
  'status' | 'providerKind' | 'type' | 'subscriptionId'
>
