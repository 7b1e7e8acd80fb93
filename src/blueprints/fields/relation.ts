import { fieldType } from './field-type'

/** The identifier of an entity of the blueprint `target`. */
export const relation = fieldType<string>({
  typescript: 'string',
  jsonSchema: { type: 'string' },
  check: (value) =>
    typeof value === 'string' && /^[^\s/]{1,128}$/.test(value) ? undefined : 'must be the identifier of an entity',
  toIndexKey: (value) => value,
  fromIndexKey: (key) => key,
  parse: (text) => text,
  supportsPatterns: true,
})
