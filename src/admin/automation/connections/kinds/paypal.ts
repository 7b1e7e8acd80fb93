import { API_URL, type ConnectionKind, ENVIRONMENT, WEBHOOK_SECRET } from './connection-kind'

export const paypal: ConnectionKind = {
  label: 'PayPal',
  metadata: [{ key: 'clientId', title: 'Client ID', type: 'string' }, ENVIRONMENT, API_URL],
  secrets: [
    { key: 'clientSecret', title: 'Client secret', type: 'string' },
    { ...WEBHOOK_SECRET, key: 'webhookId', title: 'ID of the webhook' },
  ],
}
