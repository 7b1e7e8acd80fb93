import type { FieldTypeName } from '../../blueprints/fields'
import { dereferenceSchema } from '../../blueprints/model'
import type { Field } from '../../blueprints/shapes'
import { isSchema, mapParts, type Schema } from './schema'

/** The schemas of the types of fields. */
const TYPE_SCHEMAS: Record<FieldTypeName, Schema> = {
  string: { type: 'string' },
  text: { type: 'string' },
  number: { type: 'number' },
  integer: { type: 'integer' },
  decimal: { type: 'string', pattern: '^-?\\d{1,60}(\\.\\d{1,60})?$' },
  boolean: { type: 'boolean' },
  date: { type: 'string', format: 'date' },
  datetime: { type: 'string', format: 'date-time' },
  time: { type: 'string', pattern: '^([01]\\d|2[0-3]):[0-5]\\d(:[0-5]\\d)?$' },
  object: { type: 'object', additionalProperties: true },
  file: { type: 'string' },
  email: { type: 'string', format: 'email' },
  url: { type: 'string', format: 'uri' },
  relation: { type: 'string' },
}

/** Returns the schema of a field's values. What JSON Schema cannot express exactly is in the description. */
export function toFieldSchema(field: Field): Schema {
  const { title, multi, default: value, target, pattern } = field
  const about = [
    field.description,
    target && `The identifier of an entity of the blueprint \`${target}\`.`,
    pattern !== undefined && `Matches the RE2 pattern \`${pattern}\`.`,
  ]
  const annotations = {
    ...(title && { title }),
    ...(about.some(Boolean) && { description: about.filter(Boolean).join(' ') }),
    ...(value !== undefined && value !== null && { default: value }),
  }
  if (!multi) return { ...annotations, ...valueSchema(field), ...toBounds(field) }
  return { ...annotations, type: 'array', items: valueSchema(field), ...toLengthBounds(field, 'Items') }
}

function valueSchema({ type, enum: choices, schema }: Field): Schema {
  if (choices) return { ...(TYPE_SCHEMAS[type].type ? { type: TYPE_SCHEMAS[type].type } : {}), enum: choices }
  return { ...TYPE_SCHEMAS[type], ...(schema && toObjectSchema(schema)) }
}

const toLengthBounds = ({ min, max }: Field, of: 'Items' | 'Length'): Schema => ({
  ...(isNumeric(min) && { [`min${of}`]: Number(min) }),
  ...(isNumeric(max) && { [`max${of}`]: Number(max) }),
})

function toBounds(field: Field): Schema {
  const { type } = TYPE_SCHEMAS[field.type]
  if (type === 'number' || type === 'integer')
    return {
      ...(isNumeric(field.min) && { minimum: Number(field.min) }),
      ...(isNumeric(field.max) && { maximum: Number(field.max) }),
    }
  return ['string', 'text', 'url', 'file', 'email'].includes(field.type) ? toLengthBounds(field, 'Length') : {}
}

const isNumeric = (bound: unknown) => bound !== undefined && bound !== '' && Number.isFinite(Number(bound))

/**
 * Converts the schema of a field from draft 7. A schema that was valid when it was saved must not make the document
 * unusable, so an error yields an empty schema.
 */
function toObjectSchema(schema: Schema): Schema {
  try {
    return toDraft2020(dereferenceSchema(schema))
  } catch {
    return {}
  }
}

/** Converts a draft 7 schema without references to 2020-12. */
function toDraft2020(schema: Schema): Schema {
  const {
    nullable,
    items,
    additionalItems,
    dependencies: _,
    ...rest
  } = mapParts(schema, (part) => (isSchema(part) ? toDraft2020(part) : {}))
  const typed = nullable === true && typeof rest.type === 'string' ? { ...rest, type: [rest.type, 'null'] } : rest
  if (!Array.isArray(items)) return { ...typed, ...(items !== undefined && { items }) }
  const tupleItems = items.map((part) => (isSchema(part) ? toDraft2020(part) : {}))
  return { ...typed, prefixItems: tupleItems, ...(additionalItems !== undefined && { items: additionalItems }) }
}
