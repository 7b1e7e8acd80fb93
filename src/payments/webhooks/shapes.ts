import { type Static, t } from 'elysia'
import { listParameter } from '../../core/query-lists'
import { textMatching, time } from '../../core/shapes'
import { growingListQuery } from '../../storage/pagination'
import { MAX_MINOR_AMOUNT } from '../money'

const maybe = t.Optional
const literalUnion = <Word extends string>(...all: Word[]) =>
  t.Unsafe<Word>(t.Union(all.map((word) => t.Literal(word))))

const externalName = t.String({ minLength: 1, maxLength: 255 })
const timestampMs = t.Number({ minimum: 1 })
const minorAmount = t.Number({ multipleOf: 1, maximum: MAX_MINOR_AMOUNT, minimum: -MAX_MINOR_AMOUNT })

/** The required form of a parsed event. A valid signature does not guarantee meaningful content. */
export const ParsedEvent = t.Object({
  subscriptionId: maybe(externalName),
  externalSubscriptionId: maybe(externalName),
  cancelAtPeriodEnd: maybe(t.Boolean()),
  invoice: maybe(
    t.Object({
      externalInvoiceId: externalName,
      amount: minorAmount,
      currency: textMatching('^[A-Z]{3,5}$', 'Use an ISO 4217 currency code, such as USD.'),
      invoiceUrl: maybe(t.Nullable(t.String({ maxLength: 5_000 }))),
      paidAt: maybe(timestampMs),
      items: maybe(t.Array(t.Object({ description: t.String(), quantity: t.Number(), amount: minorAmount }))),
    }),
  ),
})

/** The response to a webhook. */
export const ProviderEventReceipt = t.Object({
  status: literalUnion('processed', 'duplicate', 'ignored', 'parked', 'failed'),
})
export type ProviderEventReceipt = Static<typeof ProviderEventReceipt>

export const ProviderEvent = t.Object({
  _id: t.String(),
  providerKind: t.String(),
  eventId: t.String({ description: 'event id of the provider' }),
  type: t.String(),
  status: literalUnion('received', 'processed', 'ignored', 'parked', 'failed'),
  outcome: t.Nullable(t.String({ description: 'why it was ignored, parked or failed' })),
  sourceId: t.Nullable(t.String({ description: 'integration source whose secret verified it' })),
  subscriptionId: t.Nullable(t.String()),
  externalSubscriptionId: t.Nullable(t.String()),
  attempts: t.Number(),
  nextAttempt: t.Nullable(time),
  occurredAt: time,
  created: time,
  updated: time,
})
export type ProviderEvent = Static<typeof ProviderEvent>

export const ProviderEventDetails = t.Object({ ...ProviderEvent.properties, body: t.Unknown() })
export type ProviderEventDetails = Static<typeof ProviderEventDetails>

export const ProviderEventList = t.Object({
  ...growingListQuery,
  status: listParameter('processed, ignored, parked, failed'),
  providerKind: listParameter('several values'),
  type: listParameter('several values'),
  subscriptionId: maybe(t.String()),
})
export type ProviderEventFilters = Pick<
  Static<typeof ProviderEventList>,
  'status' | 'providerKind' | 'type' | 'subscriptionId'
>
