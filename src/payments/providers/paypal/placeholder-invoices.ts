import { toIsoString } from '../../../core/clock'
import { priceOf } from '../../subscriptions/serializer'
import type { Subscription } from '../../tables'
import type { Provider } from '../provider'

// A failed payment has no id at PayPal, so its open invoice gets one of ours. What is paid instead has another one.

/** Returns the id of a placeholder. `part` is the cycle or the day of the failed payment. */
export const placeholderId = (externalSubscriptionId: string, part: string | number) =>
  `${externalSubscriptionId}-${part}`

/** Returns the date of a time (ms since 1970), in UTC. */
export const dayOf = (time: number) => toIsoString(time).slice(0, 10)

/** The event of a failed payment may name no amount. The price of the subscription is owed then. */
export const createPlaceholderInvoice: Provider['createPlaceholderInvoice'] = (subscription, { occurredAt }) => {
  const { externalSubscriptionId: external, currency } = subscription
  const amount = priceOf(subscription)
  if (!external || !amount) return
  return { externalInvoiceId: placeholderId(external, dayOf(occurredAt)), amount, currency }
}

export const isPlaceholderInvoice = (externalInvoiceId: string, { externalSubscriptionId: external }: Subscription) =>
  external !== null && externalInvoiceId.startsWith(placeholderId(external, ''))
