import { fieldTypes } from '../../blueprints/fields'
import { toPartKey } from '../store/index-keys'

export type PartType = 'string' | 'number' | 'boolean'

const PART_TYPES: Record<string, PartType> = {
  string: 'string',
  number: 'number',
  integer: 'number',
  boolean: 'boolean',
}

/**
 * Returns the type that an object's schema declares at a path, looking through lists; undefined when it is not a plain
 * type.
 */
export function getTypeAtPath(schema: unknown, path: string): PartType | undefined {
  let here = unwrapList(schema)
  for (const step of path.split('.')) here = unwrapList(getOwn(getOwn(here, 'properties'), step))
  const type = getOwn(here, 'type')
  return typeof type === 'string' ? PART_TYPES[type] : undefined
}

const unwrapList = (schema: unknown): unknown =>
  getOwn(schema, 'type') === 'array' && getOwn(schema, 'items') ? unwrapList(getOwn(schema, 'items')) : schema

/** Returns a property that an object has itself, or undefined. */
export const getOwn = (of: unknown, key: string): unknown =>
  of !== null && typeof of === 'object' && Object.hasOwn(of, key) ? (of as Record<string, unknown>)[key] : undefined

/**
 * Returns the index keys for a value in an object. Without a type, these are the keys of all types that the text can
 * mean; the last one is the most likely for a range.
 */
export function toPartKeys(text: string, type?: PartType): string[] {
  if (type)
    return [fieldTypes[type].parse!(text)].flatMap((value) => (value === undefined ? [] : toPartKey(value as string)))
  const keys = [toPartKey(text)]
  if (text === 'true' || text === 'false') keys.push(toPartKey(text === 'true'))
  const number = fieldTypes.number.parse!(text)
  if (number !== undefined) keys.push(toPartKey(number as number))
  return keys
}
