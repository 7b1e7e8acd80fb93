import { literal, property } from './text'

type Schema = Record<string, unknown>

const ANY = 'unknown'
const DEPTH = 20 // beyond it, anything

/**
 * The type of what a JSON Schema without references allows (draft 7, as fields are checked by). What TypeScript can't
 * say is left out, so whatever fits the schema is of this type, but not the other way round. `known` are the types of
 * values that are possible where the schema names none.
 */
export function typeOf(schema: unknown, known?: string[], depth = 0): string {
  if (schema === false) return 'never'
  if (depth > DEPTH || schema === null || typeof schema !== 'object') return ANY
  const { type, nullable, enum: choices, const: only, anyOf, oneOf, allOf } = schema as Schema
  const named = type === undefined ? known : listed(type)
  const types = named && nullable === true ? [...named, 'null'] : named
  const below = (part: unknown) => typeOf(part, types, depth + 1)
  const own = types ? union(types.map((name) => instance(name, schema as Schema, depth))) : ANY
  const all = [own, ...parts(allOf).map(below)]
  for (const some of [anyOf, oneOf]) if (Array.isArray(some)) all.push(union(some.map(below)))
  if (Object.hasOwn(schema, 'const')) return valueType(only, depth)
  if (Array.isArray(choices)) return choicesType(choices, depth)
  return intersection(all)
}

/** The type of some values, none of which is more than it is. */
export const choicesType = (choices: unknown[], depth = 0) => union(choices.map((one) => valueType(one, depth)))

function instance(type: string, schema: Schema, depth: number): string {
  if (type === 'object') return objectType(schema, depth)
  if (type === 'array') return listType(schema, depth)
  if (type === 'integer') return 'number'
  return ['string', 'number', 'boolean', 'null'].includes(type) ? type : ANY
}

function objectType({ properties, required, additionalProperties, patternProperties }: Schema, depth: number): string {
  const [named, needed] = [isObject(properties) ? properties : {}, parts(required).filter((key) => isText(key))]
  const keys = [...new Set([...Object.keys(named), ...needed])]
  const members = keys.map((key) => {
    const type = Object.hasOwn(named, key) ? typeOf(named[key], undefined, depth + 1) : ANY
    return `${property(key)}${needed.includes(key) ? '' : '?'}: ${type}`
  })
  // Named properties would have to be of the type of the others.
  if (additionalProperties !== false || patternProperties)
    members.push(
      `[key: string]: ${keys.length || patternProperties ? ANY : typeOf(additionalProperties, undefined, depth + 1)}`,
    )
  return members.length ? `{ ${members.join('; ')} }` : '{}'
}

function listType({ items }: Schema, depth: number): string {
  // A list of schemas is about the first values only.
  const of = Array.isArray(items) ? ANY : typeOf(items, undefined, depth + 1)
  return `(${of})[]`
}

function valueType(value: unknown, depth: number): string {
  if (depth > DEPTH) return ANY
  if (Array.isArray(value)) return `[${value.map((one) => valueType(one, depth + 1)).join(', ')}]`
  if (!isObject(value)) return literal(value as string)
  const members = Object.entries(value).map(([key, one]) => `${property(key)}: ${valueType(one, depth + 1)}`)
  return members.length ? `{ ${members.join('; ')} }` : '{ [key: string]: never }'
}

function union(types: string[]): string {
  const all = [...new Set(types)].filter((type) => type !== 'never')
  if (all.includes(ANY)) return ANY
  if (all.length < 2) return all[0] ?? 'never'
  return all.map((type) => (type.includes(' & ') ? `(${type})` : type)).join(' | ')
}

function intersection(types: string[]): string {
  const all = [...new Set(types)].filter((type) => type !== ANY)
  if (all.length < 2) return all[0] ?? ANY
  return all.map((type) => `(${type})`).join(' & ')
}

const isObject = (value: unknown): value is Schema =>
  value !== null && typeof value === 'object' && !Array.isArray(value)
const isText = (value: unknown): value is string => typeof value === 'string'
const listed = (type: unknown) => (Array.isArray(type) ? type : [type]).map(String)
const parts = (value: unknown): unknown[] => (Array.isArray(value) ? value : [])
