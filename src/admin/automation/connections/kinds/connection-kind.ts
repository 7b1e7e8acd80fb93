import type { IntegrationSource } from '../../../api/schema'
import type { FormField } from '../../../fields/field-form'

export type ConnectionKindName = IntegrationSource['kind']

/** What the page has to know about one kind of connections: its settings, and the secrets that nobody can read again. */
export type ConnectionKind = { label: string; metadata: FormField[]; secrets: FormField[] }

export const API_URL: FormField = {
  key: 'apiUrl',
  title: 'Address of the API',
  description: 'Default: the one of the provider.',
  type: 'url',
}

export const ENVIRONMENT: FormField = {
  key: 'environment',
  title: 'Environment',
  description: 'Default: live.',
  type: 'string',
  enum: ['live', 'sandbox'],
}

export const WEBHOOK_SECRET: FormField = {
  key: 'webhookSecret',
  title: 'Webhook secret',
  description: 'While you rotate it, enter the old and the new one, separated by a comma.',
  type: 'string',
  multi: true,
}
