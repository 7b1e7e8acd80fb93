import { Problem } from '../../core/problem'

/** A record of a file, which spans several lines when quotes do: its first line number, and its text or a problem. */
export type Line = { line: number; text: string; problem?: Problem }

const [LF, CR, QUOTE, COMMA] = [10, 13, 34, 44]

/**
 * Splits a UTF-8 file into lines as it arrives, and skips empty lines. At most one line of `maxBytes` bytes is kept in
 * memory. With `hasQuotes`, a line continues when its line break is inside quotes (RFC 4180).
 */
export class LineReader {
  #parts: Uint8Array[] = []
  #size = 0
  #line = 1
  #startLine = 1
  #state: 'start of cell' | 'cell' | 'quotes' | 'quote in quotes' = 'start of cell'
  #decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

  constructor(
    private hasQuotes: boolean,
    private maxBytes: number,
  ) {}

  push(chunk: Uint8Array): Line[] {
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
    const lines: Line[] = []
    this.#completeLine(lines)
    return lines
  }

  /** Returns the index at which the line ends; -1 when it does not end in this chunk. */
  #endOf(chunk: Uint8Array, from: number): number {
    if (!this.hasQuotes) return chunk.indexOf(LF, from)
    let at = this.#state
    for (let n = from; n < chunk.length; n++) {
      const byte = chunk[n]
      if (at === 'quotes') {
        if (byte === QUOTE) at = 'quote in quotes'
        else if (byte === LF) this.#line++
      } else if (byte === LF) {
        this.#state = 'start of cell'
        return n
      } else if (byte === COMMA) at = 'start of cell'
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
    const addProblem = (flaw: Problem) => lines.push({ line, text: '', problem: flaw })
    if (size > this.maxBytes)
      return addProblem(new Problem(400, 'LINE_TOO_LONG', `A line has at most ${this.maxBytes} bytes.`))
    const bytes = parts.length === 1 ? parts[0]! : Buffer.concat(parts)
    let text: string
    try {
      text = this.#decoder.decode(bytes.at(-1) === CR ? bytes.subarray(0, -1) : bytes)
    } catch {
      return addProblem(new Problem(400, 'MALFORMED_LINE', 'This line is not valid UTF-8.'))
    }
    if (line === 1 && text.startsWith('\ufeff')) text = text.slice(1)
    if (text.trim()) lines.push({ line, text })
  }
}
