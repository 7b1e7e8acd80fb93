import type { Block } from './block'

const MAX_PATH_LENGTH = 200

/**
 * Yields the blocks of a JSON value. A record of at most `maxLength` characters stays together, a larger one is split. Each
 * line has the path of its value, `orders[3].city: Porto`, so that it can be understood by itself.
 */
export function* readJsonBlocks(value: unknown, maxLength: number): Generator<Block> {
  const small = yield* readBlocks(value, maxLength, '', () => [])
  if (small) yield toBlock(small)
}

/** The lines of a value, and their total length in characters. */
type Lines = { lines: string[]; size: number }

/**
 * Returns the lines of a small value. Yields the blocks of a larger one, after the pending blocks of its parents
 * (`flushParents`). Each value is visited once, at any depth.
 */
function* readBlocks(
  value: unknown,
  maxLength: number,
  path: string,
  flushParents: FlushPending,
): Generator<Block, Lines | undefined> {
  let pending: Lines[] | undefined = []
  let size = 0
  function* flush(): Generator<Block> {
    if (!pending) return
    const flushed = pending
    pending = undefined
    yield* flushParents()
    for (const lines of flushed) yield toBlock(lines)
  }
  for (const [key, part] of listEntries(value)) {
    const small: Lines | undefined = yield* readBlocks(part, maxLength, joinPath(path, key), flush)
    if (!small) continue
    size += small.size
    if (size > maxLength) yield* flush()
    if (pending) pending.push(small)
    else yield toBlock(small)
  }
  if (!pending) return
  if (pending.length) return { lines: pending.flatMap(({ lines }) => lines), size }
  const line = toLine(path, value)
  if (line.length < maxLength) return { lines: [line], size: line.length + 1 }
  yield* flushParents()
  yield { text: line, headings: '' }
}

type FlushPending = () => Iterable<Block>

const toBlock = ({ lines }: Lines): Block => ({ text: lines.join('\n'), headings: '', isCode: true })

const toLine = (path: string, value: unknown) =>
  `${path ? `${path}: ` : ''}${typeof value === 'string' ? value : JSON.stringify(value)}`

function* listEntries(value: unknown): Generator<[string, unknown]> {
  if (value === null || typeof value !== 'object') return
  if (Array.isArray(value)) for (const [n, part] of value.entries()) yield [`[${n}]`, part]
  else for (const key in value) yield [key, (value as Record<string, unknown>)[key]]
}

/** Appends a key to a path, and cuts the beginning of a long path, because keys may have any length. */
function joinPath(path: string, key: string) {
  const fullPath = key.startsWith('[') || !path ? `${path}${key}` : `${path}.${key}`
  return fullPath.length > MAX_PATH_LENGTH ? `…${fullPath.slice(-MAX_PATH_LENGTH)}`.toWellFormed() : fullPath
}
