import { types } from '../blueprints/fields/types'
import { partKey } from './keys'

export type PartType = 'string' | 'number' | 'boolean'

const PARTS: Record<string, PartType> = { string: 'string', number: 'number', integer: 'number', boolean: 'boolean' }

/** Of which type the schema of an object has the part at a path; undefined where it doesn't simply say. Lists are passed through. */
export function partTypeOf(schema: unknown, path: string): PartType | undefined {
  let here = inList(schema)
  for (const step of path.split('.')) here = inList(own(own(here, 'properties'), step))
  const type = own(here, 'type')
  return typeof type === 'string' ? PARTS[type] : undefined
}

const inList = (schema: unknown): unknown =>
  own(schema, 'type') === 'array' && own(schema, 'items') ? inList(own(schema, 'items')) : schema

const own = (of: unknown, key: string): unknown =>
  of !== null && typeof of === 'object' && Object.hasOwn(of, key) ? (of as Record<string, unknown>)[key] : undefined

/** By which texts a part of an object is found that a query asks for; of no type, all that it can mean, the likeliest for a range last. */
export function partKeys(text: string, type?: PartType): string[] {
  if (type) return [types[type].parse!(text)].flatMap((value) => (value === undefined ? [] : partKey(value as string)))
  const keys = [partKey(text)]
  if (text === 'true' || text === 'false') keys.push(partKey(text === 'true'))
  const number = types.number.parse!(text)
  if (number !== undefined) keys.push(partKey(number as number))
  return keys
}
