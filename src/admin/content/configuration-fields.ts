import type { FormField } from '../fields/field-form'
import { JsonInput } from '../fields/json-input'
import { mayBePublic } from './known-configurations'

/** The configuration that everybody may read, which has routes of its own. */
export const APP_KEY = 'app-configuration'

const metadataField: FormField = {
  ...{ key: 'metadata', title: 'Values', type: 'object', required: true, default: {}, Input: JsonInput },
}
const publicField: FormField = {
  ...{ key: 'public', title: 'Everybody may read it', type: 'boolean', required: true, default: false },
}
const descriptionField: FormField = { key: 'description', title: 'Description', type: 'string' }
const kindField: FormField = {
  key: 'kind',
  title: 'Kind',
  type: 'string',
  description: 'A word of your own that groups configurations.',
}
const keyField: FormField = {
  ...{ key: 'key', title: 'Key', type: 'string', required: true },
  description: 'The name in addresses: lower-case letters, digits and hyphens.',
}
const ownFields = [publicField, descriptionField, kindField, metadataField]

/** Returns the fields of a configuration. */
export const toConfigurationFields = (key: string): FormField[] =>
  key === APP_KEY ? [metadataField] : mayBePublic(key) ? ownFields : [descriptionField, metadataField]

/** The fields of a new configuration. */
export const newConfigurationFields = [keyField, ...ownFields]
