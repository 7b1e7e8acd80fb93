import type { TSchema } from '@sinclair/typebox'
import { badRequest } from './problem'
import { tooManyItemsMessage, tooManyKeysMessage } from './validation'
import { weakCached } from './weak-cache'

/** The limits of a shape's lists and objects; a part without limits has no entry. */
type LengthBounds = {
  maxItems?: number
  ofItems?: LengthBounds
  maxKeys?: number
  ofProperties?: Record<string, LengthBounds | undefined>
}

/** How many properties an object may have besides those that its shape names. */
const MAX_UNNAMED_PROPERTIES = 100

const getBounds = weakCached(boundsOf)

/**
 * Checks the lengths of lists and objects before their contents: validation would otherwise visit every item, however
 * many there are.
 * @throws 400 INVALID_INPUT for the first list or object that is longer than its shape allows
 */
export function assertLengths(shape: TSchema, value: unknown): void {
  const bounds = getBounds(shape)
  if (bounds) assertBounds(bounds, value, '')
}

function assertBounds({ maxItems, ofItems, maxKeys, ofProperties }: LengthBounds, value: unknown, path: string): void {
  if (value === null || typeof value !== 'object') return
  if (Array.isArray(value)) {
    if (value.length > (maxItems ?? Number.POSITIVE_INFINITY))
      badRequest({ path, message: tooManyItemsMessage(path, maxItems) })
    if (ofItems) for (const [index, item] of value.entries()) assertBounds(ofItems, item, `${path}/${index}`)
    return
  }
  let count = 0
  for (const _ in value)
    if (++count > (maxKeys ?? Number.POSITIVE_INFINITY))
      badRequest({ path, message: tooManyKeysMessage(path, maxKeys) })
  for (const key in ofProperties)
    if (ofProperties[key]) assertBounds(ofProperties[key], (value as Record<string, unknown>)[key], `${path}/${key}`)
}

function boundsOf(shape: TSchema): LengthBounds | undefined {
  if (Array.isArray(shape.anyOf)) return boundsOfUnion(shape.anyOf)
  if (shape.type === 'array') return { maxItems: shape.maxItems, ofItems: boundsOf(shape.items ?? {}) }
  if (shape.type !== 'object') return
  const names = Object.keys(shape.properties ?? {})
  const isOpen =
    shape.patternProperties || (shape.additionalProperties && typeof shape.additionalProperties === 'object')
  return {
    maxKeys: shape.maxProperties ?? (isOpen || !names.length ? undefined : names.length + MAX_UNNAMED_PROPERTIES),
    ofProperties: Object.fromEntries(names.map((name) => [name, boundsOf(shape.properties[name])])),
  }
}

/** Returns the limits that hold for every branch of a union; undefined when one branch accepts any value. */
function boundsOfUnion(shapes: TSchema[]): LengthBounds | undefined {
  const several = shapes.filter(({ type }) => type === 'array' || type === 'object')
  if (shapes.some(({ type, anyOf, const: only }) => !type && !anyOf && only === undefined)) return
  if (several.length > 1 || shapes.some(({ anyOf }) => anyOf)) return
  return several[0] && boundsOf(several[0])
}
