import { Problem } from '../../core/problem'

/** The beginnings of files whose first character says how they are encoded. */
const BYTE_ORDER_MARKS = [
  { bytes: [0xef, 0xbb, 0xbf], encoding: 'utf-8' },
  { bytes: [0xff, 0xfe], encoding: 'utf-16le' },
  { bytes: [0xfe, 0xff], encoding: 'utf-16be' },
  // What LibreOffice writes of a mark that it took for text.
  { bytes: [0xc3, 0xaf, 0xc2, 0xbb, 0xc2, 0xbf], encoding: 'utf-8' },
]
const BYTES_LOOKED_AT = 6
const ZIP_MARK = [0x50, 0x4b, 3, 4]

/** Returns the WHATWG name of the `charset` that a `Content-Type` names; UTF-8 without one. @throws 415 */
export function parseCharset(contentType: string): string {
  const label = (/;\s*charset\s*=\s*"?([^\s";]+)/i.exec(contentType)?.[1] ?? 'utf-8') as Bun.Encoding
  try {
    return new TextDecoder(label).encoding
  } catch {
    throw new Problem(415, 'UNSUPPORTED_MEDIA_TYPE', `The charset "${label}" is not known. Save the file as UTF-8.`)
  }
}

/** Makes UTF-8 of a text that arrives in pieces, without its byte order mark. */
export class TextTranscoder {
  #start: Uint8Array | undefined = new Uint8Array()
  #decoder: TextDecoder | undefined
  #encoder = new TextEncoder()

  /** `encoding` is that of a file without a byte order mark, which has the last word. */
  constructor(public encoding: string) {}

  /** @throws 400 MALFORMED_BODY for bytes that are no text of the encoding; UTF-8 is checked line by line */
  push(bytes: Uint8Array, isLast = false): Uint8Array {
    let piece = bytes
    if (this.#start) {
      piece = this.#start.length ? Buffer.concat([this.#start, bytes]) : bytes
      if (piece.length < BYTES_LOOKED_AT && !isLast) {
        this.#start = piece.slice()
        return new Uint8Array()
      }
      this.#start = undefined
      piece = this.#open(piece)
    }
    if (!this.#decoder) return piece
    try {
      return this.#encoder.encode(this.#decoder.decode(piece, { stream: !isLast }))
    } catch (cause) {
      throw new Problem(400, 'MALFORMED_BODY', `The file is not valid ${this.encoding}. Save it as UTF-8.`, { cause })
    }
  }

  /** Finds out the encoding, and returns what follows the byte order mark. */
  #open(piece: Uint8Array): Uint8Array {
    if (beginsWith(piece, ZIP_MARK))
      throw new Problem(
        400,
        'MALFORMED_BODY',
        'This is a workbook or an archive. Save the table as CSV, and import that.',
      )
    const mark = BYTE_ORDER_MARKS.find(({ bytes }) => beginsWith(piece, bytes))
    this.encoding = mark?.encoding ?? guessUtf16(piece) ?? this.encoding
    if (this.encoding !== 'utf-8') this.#decoder = new TextDecoder(this.encoding as Bun.Encoding, { fatal: true })
    return mark ? piece.subarray(mark.bytes.length) : piece
  }
}

const beginsWith = (bytes: Uint8Array, mark: number[]) => mark.every((byte, n) => bytes[n] === byte)

/** The first line names columns, which have no NUL: every other byte is 0 only in UTF-16. */
function guessUtf16([first, second, third, fourth]: Uint8Array): string | undefined {
  if (first && second === 0 && third && fourth === 0) return 'utf-16le'
  return first === 0 && second && third === 0 && fourth ? 'utf-16be' : undefined
}
