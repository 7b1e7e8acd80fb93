import { API_URL, type ConnectionKind, ENVIRONMENT, WEBHOOK_SECRET } from './connection-kind'

export const paddle: ConnectionKind = {
  label: 'Paddle',
  metadata: [ENVIRONMENT, API_URL],
  secrets: [{ key: 'apiKey', title: 'API key', type: 'string' }, WEBHOOK_SECRET],
}
