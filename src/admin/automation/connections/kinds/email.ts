import type { ConnectionKind } from './connection-kind'

export const email: ConnectionKind = {
  label: 'Mail server',
  metadata: [
    { key: 'host', title: 'Host', description: 'Such as smtp.example.com.', type: 'string', required: true },
    { key: 'port', title: 'Port', description: 'Default: 587.', type: 'integer' },
    { key: 'secure', title: 'TLS from the start, as at port 465', type: 'boolean' },
    { key: 'user', title: 'User', type: 'string' },
    { key: 'from', title: 'Sender', description: 'Such as Shop <shop@example.com>.', type: 'string' },
  ],
  secrets: [{ key: 'password', title: 'Password', type: 'string' }],
}
