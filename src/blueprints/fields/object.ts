import { fieldType } from './field-type'

/** A JSON object; `schema` says more. Its parts are found by dotted paths. */
export const object = fieldType<Record<string, unknown>>({
  typescript: '{ [key: string]: unknown }',
  check: (value) =>
    value !== null && typeof value === 'object' && !Array.isArray(value) ? undefined : 'must be an object',
})
