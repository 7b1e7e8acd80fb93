import { HeadersSecretInput } from '../secret-inputs'
import type { ConnectionKind } from './connection-kind'

export const http: ConnectionKind = {
  label: 'HTTP server',
  metadata: [{ key: 'url', title: 'Address', description: 'What all paths begin with.', type: 'url', required: true }],
  secrets: [
    {
      key: 'headers',
      title: 'Headers',
      description: 'They are sent with each request, such as authorization.',
      type: 'object',
      Input: HeadersSecretInput,
    },
  ],
}
