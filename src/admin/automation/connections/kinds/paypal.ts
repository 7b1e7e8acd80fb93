import { API_URL, type ConnectionKind, ENVIRONMENT, WEBHOOK_SECRET } from './connection-kind'

export const paypal: ConnectionKind = {
  label: 'PayPal',
  metadata: [{ key: 'clientId', title: 'Client id', type: 'string' }, ENVIRONMENT, API_URL],
  secrets: [
    { key: 'clientSecret', title: 'Client secret', type: 'string' },
    { ...WEBHOOK_SECRET, key: 'webhookId', title: 'Id of the webhook' },
  ],
}
