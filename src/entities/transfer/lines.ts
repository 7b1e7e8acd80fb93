import { Problem } from '../../core/problem'

/** A line of a file, or several where quotes span them: where it begins, and its text or why it has none. */
export type Line = { line: number; text: string; flaw?: Problem }

const [LF, CR, QUOTE, COMMA] = [10, 13, 34, 44]

/**
 * The lines of a file of UTF-8, as many at a time as have come in; empty ones are left out. No more than one line of at
 * most `longest` bytes is kept in memory. With `quoted`, a line goes on where its end is in quotes (RFC 4180).
 */
export class Lines {
  #parts: Uint8Array[] = []
  #size = 0
  #line = 1
  #began = 1
  #at: 'start of cell' | 'cell' | 'quotes' | 'quote in quotes' = 'start of cell'
  #decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

  constructor(
    private quoted: boolean,
    private longest: number,
  ) {}

  take(chunk: Uint8Array): Line[] {
    const lines: Line[] = []
    for (let from = 0; from < chunk.length; ) {
      const end = this.#endOf(chunk, from)
      this.#keep(chunk.subarray(from, end < 0 ? chunk.length : end))
      if (end < 0) break
      this.#line++
      this.#finish(lines)
      from = end + 1
    }
    return lines
  }

  /** What is left when nothing more comes. */
  end(): Line[] {
    const lines: Line[] = []
    this.#finish(lines)
    return lines
  }

  /** Where the line ends; -1 for not in this chunk. */
  #endOf(chunk: Uint8Array, from: number): number {
    if (!this.quoted) return chunk.indexOf(LF, from)
    let at = this.#at
    for (let n = from; n < chunk.length; n++) {
      const byte = chunk[n]
      if (at === 'quotes') {
        if (byte === QUOTE) at = 'quote in quotes'
        else if (byte === LF) this.#line++
      } else if (byte === LF) {
        this.#at = 'start of cell'
        return n
      } else if (byte === COMMA) at = 'start of cell'
      else if (byte === QUOTE && at !== 'cell') at = 'quotes'
      else if (byte !== CR || at === 'start of cell') at = 'cell'
    }
    this.#at = at
    return -1
  }

  #keep(bytes: Uint8Array) {
    this.#size += bytes.length
    if (this.#size > this.longest) this.#parts = []
    else if (bytes.length) this.#parts.push(bytes)
  }

  #finish(lines: Line[]) {
    const [line, parts, size] = [this.#began, this.#parts, this.#size]
    this.#began = this.#line
    this.#parts = []
    this.#size = 0
    if (!size) return
    const refuse = (flaw: Problem) => lines.push({ line, text: '', flaw })
    if (size > this.longest)
      return refuse(new Problem(400, 'LINE_TOO_LONG', `A line has at most ${this.longest} bytes.`))
    const whole = parts.length === 1 ? parts[0]! : Buffer.concat(parts)
    let text: string
    try {
      text = this.#decoder.decode(whole.at(-1) === CR ? whole.subarray(0, -1) : whole)
    } catch {
      return refuse(new Problem(400, 'MALFORMED_LINE', 'This line is not UTF-8.'))
    }
    if (line === 1 && text.startsWith('\ufeff')) text = text.slice(1)
    if (text.trim()) lines.push({ line, text })
  }
}
