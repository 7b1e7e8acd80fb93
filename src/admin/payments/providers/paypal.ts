import { apiUrlField, environmentField, isSandbox, secretField } from './connection-fields'
import type { ProviderDescription } from './provider-kind'

/** https://developer.paypal.com/api/rest */
export const paypal: ProviderDescription = {
  label: 'PayPal',
  settings: [{ key: 'metadata/clientId', type: 'string', title: 'Client ID' }, environmentField, apiUrlField],
  secrets: [
    secretField('clientSecret', 'Client secret', 'Stands beside the client ID in the developer dashboard.'),
    secretField('webhookId', 'ID of the webhook', 'PayPal shows it once the webhook is registered.'),
  ],
  planIds: { monthlyPlanId: 'Monthly plan', yearlyPlanId: 'Yearly plan' },
  webhookPage: 'https://developer.paypal.com/dashboard/applications',
  webhookEvents: [
    'BILLING.SUBSCRIPTION.ACTIVATED',
    'BILLING.SUBSCRIPTION.RE-ACTIVATED',
    'BILLING.SUBSCRIPTION.UPDATED',
    'BILLING.SUBSCRIPTION.CANCELLED',
    'BILLING.SUBSCRIPTION.SUSPENDED',
    'BILLING.SUBSCRIPTION.EXPIRED',
    'BILLING.SUBSCRIPTION.PAYMENT.FAILED',
    'PAYMENT.SALE.COMPLETED',
  ],
  isTest: isSandbox,
  subscriptionPage: (id, metadata) =>
    `https://www.${isSandbox(metadata) ? 'sandbox.' : ''}paypal.com/billing/subscriptions/${encodeURIComponent(id)}`,
}
