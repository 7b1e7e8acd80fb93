import { Problem } from '../../core/problem'
import { SEPARATORS } from './csv'
import type { CsvDialect } from './csv-dialect'

/** A record of a file, which spans several lines when quotes do: its first line number, and its text or a problem. */
export type Line = { line: number; text: string; bytes: Uint8Array; problem?: Problem }

const NO_BYTES = new Uint8Array()

const [LF, CR, QUOTE] = [10, 13, 34]
const UNKNOWN = -1
const SEPARATOR_CODES = SEPARATORS.map((separator) => separator.charCodeAt(0))

/**
 * Splits a UTF-8 file into lines as it arrives, and skips empty lines. At most one line of `maxBytes` bytes is kept in
 * memory. With a dialect, a line continues when its line break is inside quotes (RFC 4180).
 */
export class LineReader {
  #parts: Uint8Array[] = []
  #size = 0
  #line = 1
  #startLine = 1
  #state: 'start of cell' | 'cell' | 'quotes' | 'quote in quotes' = 'start of cell'
  /** The separator of the cells; before the header has been read, any may begin a cell. */
  #separator = UNKNOWN
  /** Old spreadsheets end lines with a carriage return alone. */
  #lineBreak = UNKNOWN
  /** What came before the first line break. */
  #start: Uint8Array | undefined
  #decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

  constructor(
    private dialect: CsvDialect | undefined,
    private maxBytes: number,
  ) {
    if (!dialect) this.#lineBreak = LF
  }

  push(bytes: Uint8Array): Line[] {
    const chunk = this.#start ? Buffer.concat([this.#start, bytes]) : bytes
    this.#start = undefined
    if (this.#lineBreak === UNKNOWN) {
      this.#lineBreak = chunk.length > this.maxBytes ? LF : findLineBreak(chunk)
      if (this.#lineBreak === UNKNOWN) {
        this.#start = chunk.slice()
        return []
      }
    }
    return this.#split(chunk)
  }

  #split(chunk: Uint8Array): Line[] {
    const lines: Line[] = []
    for (let from = 0; from < chunk.length; ) {
      const end = this.#endOf(chunk, from)
      this.#buffer(chunk.subarray(from, end < 0 ? chunk.length : end))
      if (end < 0) break
      this.#line++
      this.#completeLine(lines)
      from = end + 1
    }
    return lines
  }

  /** Returns the last line when the file has ended. */
  flush(): Line[] {
    const lines = this.#start ? this.#split(this.#start) : []
    this.#completeLine(lines)
    return lines
  }

  /** Returns the index at which the line ends; -1 when it does not end in this chunk. */
  #endOf(chunk: Uint8Array, from: number): number {
    if (!this.dialect) return chunk.indexOf(LF, from)
    const [lineBreak, separator] = [this.#lineBreak, this.#separator]
    let at = this.#state
    if (at !== 'quotes') {
      const [end, quote] = [chunk.indexOf(lineBreak, from), chunk.indexOf(QUOTE, from)]
      if (end >= 0 && (quote < 0 || quote > end)) {
        this.#state = 'start of cell'
        return end
      }
    }
    for (let n = from; n < chunk.length; n++) {
      const byte = chunk[n]
      if (at === 'quotes') {
        if (byte === QUOTE) at = 'quote in quotes'
        else if (byte === lineBreak) this.#line++
      } else if (byte === lineBreak) {
        this.#state = 'start of cell'
        return n
      } else if (byte === separator || (separator === UNKNOWN && SEPARATOR_CODES.includes(byte!))) at = 'start of cell'
      else if (byte === QUOTE && at !== 'cell') at = 'quotes'
      else if (byte !== CR || at === 'start of cell') at = 'cell'
    }
    this.#state = at
    return -1
  }

  #buffer(bytes: Uint8Array) {
    this.#size += bytes.length
    if (this.#size > this.maxBytes) this.#parts = []
    else if (bytes.length) this.#parts.push(bytes)
  }

  #completeLine(lines: Line[]) {
    const [line, parts, size] = [this.#startLine, this.#parts, this.#size]
    this.#startLine = this.#line
    this.#parts = []
    this.#size = 0
    if (!size) return
    const addProblem = (flaw: Problem) => lines.push({ line, text: '', bytes: NO_BYTES, problem: flaw })
    if (size > this.maxBytes)
      return addProblem(new Problem(400, 'LINE_TOO_LONG', `A line has at most ${this.maxBytes} bytes.`))
    const whole = parts.length === 1 ? parts[0]! : Buffer.concat(parts)
    const bytes = whole.at(-1) === CR ? whole.subarray(0, -1) : whole
    let text: string
    try {
      text = this.#decoder.decode(bytes)
    } catch {
      return addProblem(
        new Problem(
          400,
          'MALFORMED_LINE',
          'This line is not valid UTF-8. Save the file as UTF-8, or name its encoding: Content-Type: text/csv; charset=windows-1252.',
        ),
      )
    }
    if (!text.trim()) return
    if (this.dialect && !this.dialect.separator) {
      if (!this.dialect.readFirstLine(text)) return
      this.#separator = this.dialect.separator!.charCodeAt(0)
    }
    lines.push({ line, text, bytes })
  }
}

/** Returns what ends the lines of a file that begins like this, as far as it is certain. */
function findLineBreak(chunk: Uint8Array): number {
  let isQuoted = false
  for (const [n, byte] of chunk.entries()) {
    if (byte === QUOTE) isQuoted = !isQuoted
    if (isQuoted || (byte !== LF && byte !== CR)) continue
    if (byte === CR && n === chunk.length - 1) break
    return byte === CR && chunk[n + 1] !== LF ? CR : LF
  }
  return UNKNOWN
}
