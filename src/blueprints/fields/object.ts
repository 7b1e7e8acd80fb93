import { fieldType } from './field-type'

/** A JSON object, optionally with a `schema`. Queries address its parts by dotted paths. */
export const object = fieldType<Record<string, unknown>>({
  typescript: '{ [key: string]: unknown }',
  jsonSchema: { type: 'object', additionalProperties: true },
  check: (value) =>
    value !== null && typeof value === 'object' && !Array.isArray(value) ? undefined : 'must be an object',
})
