import type { Block } from './chunking'

const PLACE = 200

/**
 * The blocks of a JSON value: each record that is no longer than `most` characters stands together, larger ones come in
 * their parts. A line is a value with the way to it, `orders[3].city: Porto`, so that each is understood by itself.
 */
export function* jsonBlocks(value: unknown, most: number, way = ''): Generator<Block> {
  const lines: string[] = []
  if (linesOf(way, value, most, lines) >= 0) yield { text: lines.join('\n'), place: '', code: true }
  else if (value === null || typeof value !== 'object') yield { text: lineOf(way, value), place: '' }
  else for (const [key, part] of partsOf(value)) yield* jsonBlocks(part, most, joined(way, key))
}

/** Adds the lines of a value, and returns what is left of the characters; less than 0 as soon as there is too much. */
function linesOf(way: string, value: unknown, left: number, lines: string[]): number {
  const inner = value !== null && typeof value === 'object' ? partsOf(value) : undefined
  let [rest, empty] = [left, true]
  for (const [key, part] of inner ?? []) {
    rest = linesOf(joined(way, key), part, rest, lines)
    empty = false
    if (rest < 0) return rest
  }
  if (!empty) return rest
  const line = lineOf(way, value)
  lines.push(line)
  return rest - line.length - 1
}

const lineOf = (way: string, value: unknown) =>
  `${way ? `${way}: ` : ''}${typeof value === 'string' ? value : JSON.stringify(value)}`

function* partsOf(value: object): Generator<[string, unknown]> {
  if (Array.isArray(value)) for (const [n, part] of value.entries()) yield [`[${n}]`, part]
  else for (const key in value) yield [key, (value as Record<string, unknown>)[key]]
}

/** Keys may be as long as they like, but not the way to each value. */
function joined(way: string, key: string) {
  const all = key.startsWith('[') || !way ? `${way}${key}` : `${way}.${key}`
  return all.length > PLACE ? `…${all.slice(-PLACE)}`.toWellFormed() : all
}
