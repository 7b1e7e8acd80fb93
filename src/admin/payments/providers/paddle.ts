import { apiUrlField, environmentField, isSandbox, secretField } from './connection-fields'
import type { ProviderDescription } from './provider-kind'

/** https://developer.paddle.com/api-reference */
export const paddle: ProviderDescription = {
  label: 'Paddle',
  settings: [environmentField, apiUrlField],
  secrets: [
    secretField('apiKey', 'API key', 'Made under Developer tools, Authentication.'),
    secretField('webhookSecret', 'Secret of the notification', 'Paddle shows it once the destination is registered.'),
  ],
  planIds: { productId: 'Product', monthlyPriceId: 'Monthly price', yearlyPriceId: 'Yearly price' },
  webhookPage: 'https://vendors.paddle.com/notifications',
  webhookEvents: [
    'subscription.created',
    'subscription.activated',
    'subscription.trialing',
    'subscription.updated',
    'subscription.resumed',
    'subscription.past_due',
    'subscription.canceled',
    'subscription.paused',
    'transaction.completed',
    'transaction.payment_failed',
  ],
  isTest: isSandbox,
  subscriptionPage: (id, metadata) =>
    `https://${isSandbox(metadata) ? 'sandbox-' : ''}vendors.paddle.com/subscriptions-v2/${encodeURIComponent(id)}`,
}
