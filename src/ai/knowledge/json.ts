import type { Block } from './chunking'

const PLACE = 200

/**
 * The blocks of a JSON value: each record that is no longer than `most` characters stands together, larger ones come in
 * their parts. A line is a value with the way to it, `orders[3].city: Porto`, so that each is understood by itself.
 */
export function* jsonBlocks(value: unknown, most: number): Generator<Block> {
  const small = yield* blocksOf(value, most, '', () => [])
  if (small) yield blockOf(small)
}

/** The lines of a value, and how long they are together. */
type Lines = { lines: string[]; size: number }

/**
 * The lines of a value that is small; of a larger one its blocks, and before those what was waiting for them (`before`).
 * Each value is looked at once, however deep it lies.
 */
function* blocksOf(value: unknown, most: number, way: string, before: Waiting): Generator<Block, Lines | undefined> {
  let held: Lines[] | undefined = []
  let size = 0
  function* release(): Generator<Block> {
    if (!held) return
    const some = held
    held = undefined
    yield* before()
    for (const one of some) yield blockOf(one)
  }
  for (const [key, part] of partsOf(value)) {
    const small: Lines | undefined = yield* blocksOf(part, most, joined(way, key), release)
    if (!small) continue
    size += small.size
    if (size > most) yield* release()
    if (held) held.push(small)
    else yield blockOf(small)
  }
  if (!held) return
  if (held.length) return { lines: held.flatMap(({ lines }) => lines), size }
  const line = lineOf(way, value)
  if (line.length < most) return { lines: [line], size: line.length + 1 }
  yield* before()
  yield { text: line, place: '' }
}

type Waiting = () => Iterable<Block>

const blockOf = ({ lines }: Lines): Block => ({ text: lines.join('\n'), place: '', code: true })

const lineOf = (way: string, value: unknown) =>
  `${way ? `${way}: ` : ''}${typeof value === 'string' ? value : JSON.stringify(value)}`

function* partsOf(value: unknown): Generator<[string, unknown]> {
  if (value === null || typeof value !== 'object') return
  if (Array.isArray(value)) for (const [n, part] of value.entries()) yield [`[${n}]`, part]
  else for (const key in value) yield [key, (value as Record<string, unknown>)[key]]
}

/** Keys may be as long as they like, but not the way to each value. */
function joined(way: string, key: string) {
  const all = key.startsWith('[') || !way ? `${way}${key}` : `${way}.${key}`
  return all.length > PLACE ? `…${all.slice(-PLACE)}`.toWellFormed() : all
}
