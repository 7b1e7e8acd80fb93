import type { TSchema } from '@sinclair/typebox'
import { invalid } from './problem'

/** How long the lists of a shape may be and how many properties its objects may have; nothing where neither is bounded. */
type Bounds = { items?: number; each?: Bounds; keys?: number; of?: Record<string, Bounds | undefined> }

/** Unknown properties that are looked at beside those that a shape names. */
const SPARE_PROPERTIES = 100

const boundsByShape = new WeakMap<TSchema, { bounds: Bounds | undefined }>()

/**
 * Refuses lists and objects that are longer than their shape allows, before anything looks at what is in them: a shape is
 * otherwise judged item by item, however many there are.
 * @throws 400 naming the first that is too long
 */
export function assertLengths(shape: TSchema, value: unknown): void {
  const { bounds } = boundsByShape.get(shape) ?? { bounds: boundsOf(shape) }
  boundsByShape.set(shape, { bounds })
  if (bounds) judge(bounds, value, '')
}

function judge({ items, each, keys, of }: Bounds, value: unknown, path: string): void {
  if (value === null || typeof value !== 'object') return
  if (Array.isArray(value)) {
    if (value.length > (items ?? Number.POSITIVE_INFINITY))
      invalid({ path, message: `${named(path)} has ${value.length} items. At most ${items} are allowed.` })
    if (each) for (const [index, item] of value.entries()) judge(each, item, `${path}/${index}`)
    return
  }
  let count = 0
  for (const _ in value)
    if (++count > (keys ?? Number.POSITIVE_INFINITY))
      invalid({ path, message: `${named(path)} has too many properties. At most ${keys} are allowed.` })
  for (const key in of) if (of[key]) judge(of[key], (value as Record<string, unknown>)[key], `${path}/${key}`)
}

const named = (path: string) => path.slice(1).replaceAll('/', '.') || 'The body'

function boundsOf(shape: TSchema): Bounds | undefined {
  if (Array.isArray(shape.anyOf)) return joined(shape.anyOf)
  if (shape.type === 'array') return { items: shape.maxItems, each: boundsOf(shape.items ?? {}) }
  if (shape.type !== 'object') return
  const names = Object.keys(shape.properties ?? {})
  const free = shape.patternProperties || (shape.additionalProperties && typeof shape.additionalProperties === 'object')
  return {
    keys: shape.maxProperties ?? (free || !names.length ? undefined : names.length + SPARE_PROPERTIES),
    of: Object.fromEntries(names.map((name) => [name, boundsOf(shape.properties[name])])),
  }
}

/** What is allowed by any of several shapes; nothing is bounded by one that takes everything. */
function joined(shapes: TSchema[]): Bounds | undefined {
  const several = shapes.filter(({ type }) => type === 'array' || type === 'object')
  if (shapes.some(({ type, anyOf, const: only }) => !type && !anyOf && only === undefined)) return
  if (several.length > 1 || shapes.some(({ anyOf }) => anyOf)) return
  return several[0] && boundsOf(several[0])
}
