import type { TypeName } from '../../blueprints/fields/types'
import { unfolded } from '../../blueprints/model'
import type { Field } from '../../blueprints/shapes'
import { isSchema, mapParts, type Schema } from './schema'

/** The values of each kind of field. */
const kinds: Record<TypeName, Schema> = {
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

/** The values that a field takes, as a schema. What JSON Schema cannot say exactly stands in the description. */
export function schemaOfField(field: Field): Schema {
  const { title, multi, default: value, target, pattern } = field
  const about = [
    field.description,
    target && `The identifier of an entity of the blueprint \`${target}\`.`,
    pattern !== undefined && `Matches the RE2 pattern \`${pattern}\`.`,
  ]
  const said = {
    ...(title && { title }),
    ...(about.some(Boolean) && { description: about.filter(Boolean).join(' ') }),
    ...(value !== undefined && value !== null && { default: value }),
  }
  if (!multi) return { ...said, ...oneValue(field), ...boundsOf(field) }
  return { ...said, type: 'array', items: oneValue(field), ...lengthOf(field, 'Items') }
}

function oneValue({ type, enum: choices, schema }: Field): Schema {
  if (choices) return { ...(kinds[type].type ? { type: kinds[type].type } : {}), enum: choices }
  return { ...kinds[type], ...(schema && objectOf(schema)) }
}

const lengthOf = ({ min, max }: Field, of: 'Items' | 'Length'): Schema => ({
  ...(isNumber(min) && { [`min${of}`]: Number(min) }),
  ...(isNumber(max) && { [`max${of}`]: Number(max) }),
})

function boundsOf(field: Field): Schema {
  const { type } = kinds[field.type]
  if (type === 'number' || type === 'integer')
    return {
      ...(isNumber(field.min) && { minimum: Number(field.min) }),
      ...(isNumber(field.max) && { maximum: Number(field.max) }),
    }
  return ['string', 'text', 'url', 'file', 'email'].includes(field.type) ? lengthOf(field, 'Length') : {}
}

const isNumber = (bound: unknown) => bound !== undefined && bound !== '' && Number.isFinite(Number(bound))

/** The schema of a field is of draft 7; one that was good when it was saved must not make the description unusable. */
function objectOf(schema: Schema): Schema {
  try {
    return modern(unfolded(schema))
  } catch {
    return {}
  }
}

/** A schema of draft 7 without references, in the words of 2020-12. */
function modern(schema: Schema): Schema {
  const {
    nullable,
    items,
    additionalItems,
    dependencies: _,
    ...rest
  } = mapParts(schema, (part) => (isSchema(part) ? modern(part) : {}))
  const typed = nullable === true && typeof rest.type === 'string' ? { ...rest, type: [rest.type, 'null'] } : rest
  if (!Array.isArray(items)) return { ...typed, ...(items !== undefined && { items }) }
  const each = items.map((part) => (isSchema(part) ? modern(part) : {}))
  return { ...typed, prefixItems: each, ...(additionalItems !== undefined && { items: additionalItems }) }
}
