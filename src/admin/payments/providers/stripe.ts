import { apiUrlField, secretField } from './connection-fields'
import type { ProviderDescription } from './provider-kind'

/** https://docs.stripe.com/api */
export const stripe: ProviderDescription = {
  label: 'Stripe',
  settings: [
    {
      key: 'metadata/checkoutMode',
      type: 'string',
      title: 'Checkout',
      enum: ['hosted', 'embedded'],
      description: 'A page of Stripe, or a form within your own page. Default: hosted.',
    },
    {
      key: 'metadata/requireExternalPrice',
      type: 'boolean',
      title: 'Plans need a price at Stripe',
      description: 'Otherwise a plan without one is sold at its own price.',
    },
    apiUrlField,
  ],
  secrets: [
    secretField('secretKey', 'Secret key', 'Begins with sk_test_ for the test mode, or with sk_live_.'),
    secretField('webhookSecret', 'Signing secret of the webhook', 'Stripe shows it once the webhook is registered.'),
  ],
  planIds: { productId: 'Product', monthlyPriceId: 'Monthly price', yearlyPriceId: 'Yearly price' },
  webhookPage: 'https://dashboard.stripe.com/webhooks',
  webhookEvents: [
    'checkout.session.completed',
    'checkout.session.expired',
    'customer.subscription.created',
    'customer.subscription.updated',
    'customer.subscription.paused',
    'customer.subscription.resumed',
    'customer.subscription.trial_will_end',
    'customer.subscription.deleted',
    'invoice.paid',
    'invoice.payment_failed',
    'invoice.voided',
    'invoice.marked_uncollectible',
  ],
  isTest: () => undefined,
  subscriptionPage: (id) => `https://dashboard.stripe.com/subscriptions/${encodeURIComponent(id)}`,
}
