import { toChunks } from './chunks'
import { assertExactNumbers } from './exact-numbers'

/** Runs a short piece of work when it is the turn of whoever it is done for. */
export type RunSlice = <T>(slice: () => T) => Promise<T>

const SLICE_LENGTH = 1 << 16 // bytes of a text that is parsed, characters of one that is written
const MAX_CONTINUATION_BYTES = 3 // of a character in UTF-8
const [QUOTE, COMMA, COLON, BACKSLASH, LOWER_U] = [34, 44, 58, 92, 117]
const [LEFT_BRACKET, RIGHT_BRACKET, LEFT_BRACE, RIGHT_BRACE] = [91, 93, 123, 125]
const NOT_BEFORE_COMMA = [0, COMMA, COLON, LEFT_BRACKET, LEFT_BRACE]
const NOT_AFTER_COMMA = [undefined, COMMA, RIGHT_BRACKET, RIGHT_BRACE]

/** The text is nested deeper than allowed. */
export class NestedTooDeep extends Error {}
/** The text is not UTF-8. */
export class InvalidUtf8 extends Error {
  override name = 'InvalidUtf8'
}

/**
 * Returns the value of a JSON text in UTF-8, as `JSON.parse` would. That parses each slice, which is cut off after a
 * value or within a text, and completed by what is open at its ends.
 * @throws SyntaxError, InvalidUtf8, InexactNumber, NestedTooDeep beyond `maxDepth` lists and objects
 */
export async function parseInSlices(
  bytes: Uint8Array,
  maxDepth: number,
  run: RunSlice,
  sliceLength = SLICE_LENGTH,
): Promise<unknown> {
  const parser = new SlicedParser(bytes, maxDepth, sliceLength)
  while (!parser.isDone) await run(() => parser.parseSlice())
  return parser.value
}

type Container = unknown[] | Record<string, unknown>
/** A list or an object that is open at some place of the text, and where the key of its current value is. */
type Level = { isList: boolean; keyStart: number; keyEnd: number }
/** The container of a level, and the key of its last value. */
type OpenContainer = { container: Container; key: PropertyKey }

class SlicedParser {
  #decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
  /** Has the value as its only item, so that a text can be cut even outside of lists and objects. */
  #root: unknown[] = []
  #levels: Level[] = [{ isList: true, keyStart: 0, keyEnd: 0 }]
  #open: OpenContainer[] = [{ container: this.#root, key: 0 }]
  #at: number
  /** Whether the last slice was cut off within a text. */
  #isInText = false
  /** Stands for the key of a value that an earlier slice has begun. No body can know it. */
  #continuedKey = crypto.randomUUID()

  constructor(
    private bytes: Uint8Array,
    private maxDepth: number,
    private sliceLength: number,
  ) {
    const hasByteOrderMark = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf
    this.#at = hasByteOrderMark ? 3 : 0
  }

  get isDone() {
    return this.#at >= this.bytes.length
  }

  get value() {
    if (this.#root.length !== 1 || this.#levels.length !== 1) throw new SyntaxError('The text is not one value.')
    return this.#root[0]
  }

  parseSlice() {
    const [continuesText, start] = [this.#isInText, this.#at]
    const opening = this.#writeOpening()
    const end = this.#findEnd()
    const slice = this.#decode(start, end)
    const whole = opening + slice + this.#writeClosing()
    this.#append(JSON.parse(whole), continuesText)
    assertExactNumbers(whole)
    this.#findOpenContainers()
  }

  #writeOpening() {
    const { length } = this.#levels
    const brackets = this.#levels.map(({ isList }, n) => {
      if (isList) return '['
      return n < length - 1 || this.#isInText ? `{"${this.#continuedKey}":` : '{'
    })
    return brackets.join('') + (this.#isInText ? '"' : '')
  }

  #writeClosing() {
    const brackets = this.#levels.map(({ isList }) => (isList ? ']' : '}')).reverse()
    return (this.#isInText ? '"' : '') + brackets.join('')
  }

  /** Returns the end of the slice. A comma between two slices belongs to neither. */
  #findEnd(): number {
    const { bytes } = this
    const { length } = bytes
    const goal = this.#at + this.sliceLength
    let at = this.#at
    let previous = 0
    if (this.#isInText) {
      at = this.#skipText(at, goal)
      previous = QUOTE
    }
    while (at < length && !this.#isInText) {
      const byte = bytes[at]!
      if (byte === QUOTE) {
        const level = this.#levels.at(-1)!
        const isKey = !level.isList && previous !== COLON
        const start = at
        at = this.#skipText(at + 1, isKey ? Number.POSITIVE_INFINITY : goal)
        if (isKey) Object.assign(level, { keyStart: start, keyEnd: at })
        previous = QUOTE
        continue
      }
      if (byte === COMMA && at >= goal && this.#isBetweenValues(previous, at)) {
        this.#at = at + 1
        return at
      }
      if (byte === LEFT_BRACKET || byte === LEFT_BRACE) this.#openLevel(byte === LEFT_BRACKET)
      else if (byte === RIGHT_BRACKET || byte === RIGHT_BRACE) this.#closeLevel()
      if (byte > 32) previous = byte
      at++
    }
    this.#at = at
    return at
  }

  /** Returns the place after the closing quote of a text, or the place where the text is cut. */
  #skipText(start: number, goal: number): number {
    const { bytes } = this
    const { length } = bytes
    this.#isInText = false
    for (let at = start; at < length; ) {
      const byte = bytes[at]!
      if (byte === QUOTE) return at + 1
      if (at >= goal && ((byte & 0xc0) !== 0x80 || at > goal + MAX_CONTINUATION_BYTES)) {
        this.#isInText = true
        return at
      }
      if (byte === BACKSLASH) at += bytes[at + 1] === LOWER_U ? 6 : 2
      else at++
    }
    throw new SyntaxError('A text has no closing quote.')
  }

  /** Tells whether a text stays valid, or invalid, when it is cut at a comma. */
  #isBetweenValues(previous: number, comma: number) {
    let next = comma + 1
    while (this.bytes[next]! <= 32) next++
    return !NOT_BEFORE_COMMA.includes(previous) && !NOT_AFTER_COMMA.includes(this.bytes[next])
  }

  #openLevel(isList: boolean) {
    if (this.#levels.length > this.maxDepth) throw new NestedTooDeep()
    this.#levels.push({ isList, keyStart: 0, keyEnd: 0 })
  }

  #closeLevel() {
    this.#levels.pop()
    if (!this.#levels.length) throw new SyntaxError('A bracket is closed that is not open.')
  }

  /** Adds what a slice has to the containers that were open at its beginning. */
  #append(slice: Container, continuesText: boolean) {
    let part = slice
    for (const [n, { container, key }] of this.#open.entries()) {
      const isDeepest = n === this.#open.length - 1
      const isContinued = !isDeepest || continuesText
      const continuedKey = Array.isArray(part) ? 0 : this.#continuedKey
      const continued = isContinued ? getOwn(part, continuedKey) : undefined
      // The pieces of a text are joined before its key may occur again.
      if (isDeepest && continuesText) setOwn(container, key, `${getOwn(container, key)}${continued}`)
      appendValues(container, part, isContinued ? continuedKey : undefined)
      part = continued as Container
    }
  }

  #findOpenContainers() {
    let container: Container = this.#root
    this.#open = this.#levels.map(({ isList, keyStart, keyEnd }) => {
      const open = { container, key: isList ? (container as unknown[]).length - 1 : this.#readKey(keyStart, keyEnd) }
      container = getOwn(container, open.key) as Container
      return open
    })
  }

  #decode(start: number, end: number): string {
    try {
      return this.#decoder.decode(this.bytes.subarray(start, end))
    } catch (cause) {
      throw new InvalidUtf8('The text is not UTF-8.', { cause })
    }
  }

  #readKey = (start: number, end: number): string => (end ? JSON.parse(this.#decode(start, end)) : '')
}

// An object may have a property `__proto__`, which can only be read and set in these ways.
const getOwn = (container: Container, key: PropertyKey): unknown =>
  Object.getOwnPropertyDescriptor(container, key)?.value
const setOwn = (container: Container, key: PropertyKey, value: unknown) =>
  Object.defineProperty(container, key, { value, writable: true, enumerable: true, configurable: true })

/** Appends the values of `part`, but for the one with the key `omitted`. */
function appendValues(container: Container, part: Container, omitted: PropertyKey | undefined) {
  if (Array.isArray(container)) {
    const items = part as unknown[]
    for (let n = omitted === undefined ? 0 : 1; n < items.length; n++) container.push(items[n])
    return
  }
  for (const [key, value] of Object.entries(part))
    if (key === '__proto__') setOwn(container, key, value)
    else if (key !== omitted) container[key] = value
}

/** Returns the JSON of a value in UTF-8, as `JSON.stringify` would write it. */
export async function stringifyInSlices(value: unknown, run: RunSlice, sliceLength = SLICE_LENGTH): Promise<Buffer> {
  const pieces = writePieces(value, sliceLength)
  const slices: Uint8Array[] = []
  let isDone = false
  const writeSlice = () => {
    let text = ''
    while (text.length < sliceLength) {
      const { done, value: piece } = pieces.next()
      isDone = !!done
      if (done) break
      text += piece
    }
    slices.push(Buffer.from(text))
  }
  while (!isDone) await run(writeSlice)
  return joinInSlices(slices, run)
}

const SLICES_PER_COPY = 16

/** Returns all bytes together. To fill the memory of a long text for the first time takes ms, too. */
async function joinInSlices(slices: Uint8Array[], run: RunSlice): Promise<Buffer> {
  const joined = Buffer.allocUnsafe(slices.reduce((length, slice) => length + slice.length, 0))
  let at = 0
  for (const some of toChunks(slices, SLICES_PER_COPY))
    await run(() => {
      for (const slice of some) {
        joined.set(slice, at)
        at += slice.length
      }
    })
  return joined
}

function* writePieces(value: unknown, sliceLength: number): Generator<string> {
  if (typeof value === 'string') yield* writeText(value, sliceLength)
  else if (Array.isArray(value)) {
    let before = '['
    for (const item of value) {
      yield before
      yield* writePieces(item ?? null, sliceLength)
      before = ','
    }
    yield before === '[' ? '[]' : ']'
  } else if (typeof value === 'object' && value !== null) {
    let before = '{'
    for (const [key, property] of Object.entries(value)) {
      if (property === undefined) continue
      yield `${before}${JSON.stringify(key)}:`
      yield* writePieces(property, sliceLength)
      before = ','
    }
    yield before === '{' ? '{}' : '}'
  } else yield JSON.stringify(value)
}

const isHighSurrogate = (code: number) => code >= 0xd800 && code < 0xdc00

function* writeText(text: string, sliceLength: number): Generator<string> {
  if (text.length <= sliceLength) return yield JSON.stringify(text)
  yield '"'
  for (let from = 0; from < text.length; ) {
    const goal = from + sliceLength
    const to = isHighSurrogate(text.charCodeAt(goal - 1)) ? goal + 1 : goal
    yield JSON.stringify(text.slice(from, to)).slice(1, -1)
    from = to
  }
  yield '"'
}
