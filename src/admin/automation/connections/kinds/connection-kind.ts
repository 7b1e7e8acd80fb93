import type { IntegrationSource } from '../../../api/schema'
import type { FormField } from '../../../fields/field-form'

export type ConnectionKindName = IntegrationSource['kind']

/** What the page has to know about one kind of connections: its settings, and the secrets that nobody can read again. */
export type ConnectionKind = { label: string; metadata: FormField[]; secrets: FormField[] }

export const API_URL: FormField = {
  key: 'apiUrl',
  title: 'Address of the API',
  description: 'Without one, that of the provider.',
  type: 'url',
}

export const ENVIRONMENT: FormField = {
  key: 'environment',
  title: 'Environment',
  description: 'Without a choice, live.',
  type: 'string',
  enum: ['live', 'sandbox'],
}

export const WEBHOOK_SECRET: FormField = {
  key: 'webhookSecret',
  title: 'Secret of the webhook',
  description: 'During a rotation, two with a comma between them.',
  type: 'string',
  multi: true,
}
