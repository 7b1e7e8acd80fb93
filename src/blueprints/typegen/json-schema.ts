import { printLiteral, printProperty } from './printer'

type JsonSchema = Record<string, unknown>

const UNKNOWN_TYPE = 'unknown'
const MAX_SCHEMA_DEPTH = 20 // a deeper part is `unknown`

/**
 * Returns the TypeScript type of a JSON Schema without references (of any dialect).
 * Constraints that TypeScript cannot express are left out: every valid value has this type, but not the other way
 * round. `inheritedTypes` are the possible types when the schema has none.
 */
export function typeOfSchema(schema: unknown, inheritedTypes?: string[], depth = 0): string {
  if (schema === false) return 'never'
  if (depth > MAX_SCHEMA_DEPTH || schema === null || typeof schema !== 'object') return UNKNOWN_TYPE
  const { type, nullable, enum: choices, const: only, anyOf, oneOf, allOf } = schema as JsonSchema
  const ownTypes = type === undefined ? inheritedTypes : toTypeNames(type)
  const types = ownTypes && nullable === true ? [...ownTypes, 'null'] : ownTypes
  const typeOfPart = (part: unknown) => typeOfSchema(part, types, depth + 1)
  const own = types ? union(types.map((name) => typeOfInstance(name, schema as JsonSchema, depth))) : UNKNOWN_TYPE
  const all = [own, ...toArray(allOf).map(typeOfPart)]
  for (const alternatives of [anyOf, oneOf])
    if (Array.isArray(alternatives)) all.push(union(alternatives.map(typeOfPart)))
  if (Object.hasOwn(schema, 'const')) return typeOfValue(only, depth)
  if (Array.isArray(choices)) return typeOfChoices(choices, depth)
  return intersection(all)
}

/** Returns the union of the literal types of values. */
export const typeOfChoices = (choices: unknown[], depth = 0) =>
  union(choices.map((choice) => typeOfValue(choice, depth)))

function typeOfInstance(type: string, schema: JsonSchema, depth: number): string {
  if (type === 'object') return typeOfObjectSchema(schema, depth)
  if (type === 'array') return typeOfListSchema(schema, depth)
  if (type === 'integer') return 'number'
  return ['string', 'number', 'boolean', 'null'].includes(type) ? type : UNKNOWN_TYPE
}

function typeOfObjectSchema(
  { properties, required, additionalProperties, patternProperties }: JsonSchema,
  depth: number,
): string {
  const [propertySchemas, requiredKeys] = [
    isObject(properties) ? properties : {},
    toArray(required).filter((key) => isString(key)),
  ]
  const keys = [...new Set([...Object.keys(propertySchemas), ...requiredKeys])]
  const members = keys.map((key) => {
    const type = Object.hasOwn(propertySchemas, key)
      ? typeOfSchema(propertySchemas[key], undefined, depth + 1)
      : UNKNOWN_TYPE
    return `${printProperty(key)}${requiredKeys.includes(key) ? '' : '?'}: ${type}`
  })
  // An index signature with a type would also apply to the named properties.
  if (additionalProperties !== false || patternProperties)
    members.push(
      `[key: string]: ${keys.length || patternProperties ? UNKNOWN_TYPE : typeOfSchema(additionalProperties, undefined, depth + 1)}`,
    )
  return members.length ? `{ ${members.join('; ')} }` : '{}'
}

function typeOfListSchema({ items, prefixItems }: JsonSchema, depth: number): string {
  // A list of schemas describes only the first values, and then `items` the others.
  const of = prefixItems || Array.isArray(items) ? UNKNOWN_TYPE : typeOfSchema(items, undefined, depth + 1)
  return `(${of})[]`
}

function typeOfValue(value: unknown, depth: number): string {
  if (depth > MAX_SCHEMA_DEPTH) return UNKNOWN_TYPE
  if (Array.isArray(value)) return `[${value.map((one) => typeOfValue(one, depth + 1)).join(', ')}]`
  if (!isObject(value)) return printLiteral(value as string)
  const members = Object.entries(value).map(([key, one]) => `${printProperty(key)}: ${typeOfValue(one, depth + 1)}`)
  return members.length ? `{ ${members.join('; ')} }` : '{ [key: string]: never }'
}

function union(types: string[]): string {
  const all = [...new Set(types)].filter((type) => type !== 'never')
  if (all.includes(UNKNOWN_TYPE)) return UNKNOWN_TYPE
  if (all.length < 2) return all[0] ?? 'never'
  return all.map((type) => (type.includes(' & ') ? `(${type})` : type)).join(' | ')
}

function intersection(types: string[]): string {
  const all = [...new Set(types)].filter((type) => type !== UNKNOWN_TYPE)
  if (all.length < 2) return all[0] ?? UNKNOWN_TYPE
  return all.map((type) => `(${type})`).join(' & ')
}

const isObject = (value: unknown): value is JsonSchema =>
  value !== null && typeof value === 'object' && !Array.isArray(value)
const isString = (value: unknown): value is string => typeof value === 'string'
const toTypeNames = (type: unknown) => (Array.isArray(type) ? type : [type]).map(String)
const toArray = (value: unknown): unknown[] => (Array.isArray(value) ? value : [])
