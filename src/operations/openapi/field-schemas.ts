import { fieldTypes } from '../../blueprints/fields'
import { describeFileField } from '../../blueprints/file-fields'
import type { Field } from '../../blueprints/shapes'
import { dereferenceSchema } from '../../core/json-schema/references'
import { isSchema, mapParts, type Schema } from './schema'

/** Returns the schema of a field's values. What JSON Schema cannot express exactly is in the description. */
export function toFieldSchema(field: Field): Schema {
  const { title, multi, default: value, target, pattern } = field
  const about = [
    field.description,
    describeFileField(field),
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
  const { jsonSchema } = fieldTypes[type]
  if (choices) return { type: jsonSchema.type, enum: choices }
  return { ...jsonSchema, ...(schema && toObjectSchema(schema)) }
}

const toLengthBounds = ({ min, max }: Field, of: 'Items' | 'Length'): Schema => ({
  ...(isNumeric(min) && { [`min${of}`]: Number(min) }),
  ...(isNumeric(max) && { [`max${of}`]: Number(max) }),
})

function toBounds(field: Field): Schema {
  const { bounds, jsonSchema } = fieldTypes[field.type]
  if (jsonSchema.type === 'number' || jsonSchema.type === 'integer')
    return {
      ...(isNumeric(field.min) && { minimum: Number(field.min) }),
      ...(isNumeric(field.max) && { maximum: Number(field.max) }),
    }
  return bounds === 'length' ? toLengthBounds(field, 'Length') : {}
}

const isNumeric = (bound: unknown) => bound !== undefined && bound !== '' && Number.isFinite(Number(bound))

/**
 * Converts the schema of a field to 2020-12. A schema that was valid when it was saved must not make the document
 * unusable, so an error yields an empty schema.
 */
function toObjectSchema(schema: Schema): Schema {
  try {
    return toDraft2020(dereferenceSchema(schema))
  } catch {
    return {}
  }
}

/** Converts a schema without references, of any dialect, to 2020-12. */
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
