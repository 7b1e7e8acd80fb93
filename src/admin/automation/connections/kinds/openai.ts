import { API_URL, type ConnectionKind } from './connection-kind'

export const openai: ConnectionKind = {
  label: 'Model (OpenAI-compatible)',
  metadata: [
    { ...API_URL, description: 'Default: https://api.openai.com/v1.' },
    { key: 'model', title: 'Model', description: 'For requests and agents that name none.', type: 'string' },
    { key: 'embeddingModel', title: 'Embedding model', type: 'string' },
    {
      key: 'roles',
      title: 'Roles that may call it directly',
      description: 'Default: all users.',
      type: 'string',
      multi: true,
    },
  ],
  secrets: [{ key: 'token', title: 'Token', type: 'string' }],
}
