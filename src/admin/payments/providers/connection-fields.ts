import type { FormField } from '../../fields/field-form'
import { SecretInput } from '../../fields/password'

/** The address of another server than the provider's own, as tests and proxies use it. */
export const apiUrlField: FormField = {
  key: 'metadata/apiUrl',
  type: 'url',
  title: 'Address of the API',
  description: 'Only for a test server or a proxy.',
}

/** Whether real money moves. */
export const environmentField: FormField = {
  key: 'metadata/environment',
  type: 'string',
  title: 'Environment',
  enum: ['live', 'sandbox'],
  description: 'No money moves in the sandbox. Default: live.',
}

/** Returns the field of a secret, which is written and never read. */
export const secretField = (key: string, title: string, description: string): FormField => ({
  key: `authentication/${key}`,
  type: 'string',
  title,
  description,
  isSecret: true,
  Input: SecretInput,
})

/** Returns whether the settings name the sandbox. */
export const isSandbox = ({ environment }: Record<string, unknown>) => environment === 'sandbox'
