import type { Field } from '../api/schema'

type JsonSchema = {
  type?: unknown
  format?: string
  title?: string
  description?: string
  enum?: unknown[]
  default?: unknown
  minimum?: number
  maximum?: number
  minLength?: number
  maxLength?: number
  minItems?: number
  maxItems?: number
  pattern?: string
  items?: JsonSchema
  properties?: Record<string, JsonSchema>
  required?: string[]
}

const TYPES_BY_FORMAT: Record<string, Field['type']> = {
  date: 'date',
  time: 'time',
  'date-time': 'datetime',
  email: 'email',
  uri: 'url',
}

function toFieldType({ type, format }: JsonSchema): Field['type'] | undefined {
  if (type === 'string') return TYPES_BY_FORMAT[format ?? ''] ?? 'string'
  return (['number', 'integer', 'boolean', 'object'] as const).find((each) => each === type)
}

function toField(key: string, schema: JsonSchema, required: boolean): Field | undefined {
  const isList = schema.type === 'array'
  const of = isList ? (schema.items ?? {}) : schema
  const type = toFieldType(of)
  if (!type) return undefined
  return {
    ...{ key, type, required },
    title: schema.title,
    description: schema.description,
    default: schema.default,
    enum: of.enum,
    pattern: of.pattern,
    min: isList ? schema.minItems : (of.minimum ?? of.minLength),
    max: isList ? schema.maxItems : (of.maximum ?? of.maxLength),
    ...(isList && { multi: true }),
    ...(type === 'object' && { schema: of as Field['schema'] }),
  }
}

/** Returns the properties that a JSON Schema describes as fields, or undefined when a form cannot show one of them. */
export function readObjectFields(schema: Field['schema']): Field[] | undefined {
  const { properties, required = [] } = (schema ?? {}) as JsonSchema
  if (!properties || typeof properties !== 'object') return undefined
  const fields = Object.entries(properties).map(([key, each]) => toField(key, each ?? {}, required.includes(key)))
  return fields.length && fields.every((field) => field !== undefined) ? fields : undefined
}

/** The paths of all plain values in an object that its schema names, such as `address.city`, with their types. */
export function listObjectPaths({ key, schema, title }: Field): Field[] {
  return (readObjectFields(schema) ?? []).flatMap((part) => {
    const named = { ...part, key: `${key}.${part.key}`, title: `${title || key} › ${part.title || part.key}` }
    return part.type === 'object' ? listObjectPaths(named) : [named]
  })
}
