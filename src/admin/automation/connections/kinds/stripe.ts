import { API_URL, type ConnectionKind, WEBHOOK_SECRET } from './connection-kind'

export const stripe: ConnectionKind = {
  label: 'Stripe',
  metadata: [
    API_URL,
    { key: 'requireExternalPrice', title: 'Plans need a price at Stripe', type: 'boolean' },
    {
      key: 'checkoutMode',
      title: 'Checkout',
      description: 'Default: hosted.',
      type: 'string',
      enum: ['hosted', 'embedded'],
    },
  ],
  secrets: [{ key: 'secretKey', title: 'Secret key', type: 'string' }, WEBHOOK_SECRET],
}
