import type { TSchema } from '@sinclair/typebox'
import { badRequest } from './problem'
import { tooManyItemsMessage, tooManyKeysMessage } from './validation'
import { weakCached } from './weak-cache'

/** How long the lists of a shape may be and how many properties its objects may have; nothing where neither is bounded. */
type LengthBounds = {
  maxItems?: number
  ofItems?: LengthBounds
  maxKeys?: number
  ofProperties?: Record<string, LengthBounds | undefined>
}

/** Unknown properties that are looked at beside those that a shape names. */
const MAX_UNNAMED_PROPERTIES = 100

const getBounds = weakCached(boundsOf)

/**
 * Refuses lists and objects that are longer than their shape allows, before anything looks at what is in them: a shape is
 * otherwise judged item by item, however many there are.
 * @throws 400 naming the first that is too long
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

/** What is allowed by any of several shapes; nothing is bounded by one that takes everything. */
function boundsOfUnion(shapes: TSchema[]): LengthBounds | undefined {
  const several = shapes.filter(({ type }) => type === 'array' || type === 'object')
  if (shapes.some(({ type, anyOf, const: only }) => !type && !anyOf && only === undefined)) return
  if (several.length > 1 || shapes.some(({ anyOf }) => anyOf)) return
  return several[0] && boundsOf(several[0])
}
