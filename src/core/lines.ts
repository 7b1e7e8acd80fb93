/** The longest line that is read (characters): more than the longest row takes, but not all memory. */
const MAX_LINE_LENGTH = 128 << 20

/** A line is longer than any that was written. */
export class LineTooLong extends Error {}

/** Yields the lines of a UTF-8 text that comes in pieces. @throws LineTooLong */
export async function* splitLines(
  content: AsyncIterable<Uint8Array>,
  maxLength = MAX_LINE_LENGTH,
): AsyncGenerator<string> {
  const decoder = new TextDecoder()
  // The pieces of a line are joined once: joining them with each further one takes quadratic time.
  let pieces: string[] = []
  let length = 0
  for await (const chunk of content) {
    const [first = '', ...lines] = decoder.decode(chunk, { stream: true }).split('\n')
    pieces.push(first)
    length += first.length
    if (length > maxLength) throw new LineTooLong(`A line is longer than ${maxLength} characters.`)
    if (!lines.length) continue
    yield pieces.join('')
    const last = lines.pop()!
    yield* lines
    pieces = [last]
    length = last.length
  }
  if (length) yield pieces.join('')
}

const PIECE_LENGTH = 64 << 10 // characters

/** Yields a text of lines in pieces of some length. */
export async function* joinLines(lines: AsyncIterable<string>): AsyncGenerator<string> {
  let piece = ''
  for await (const line of lines) {
    piece += `${line}\n`
    if (piece.length < PIECE_LENGTH) continue
    yield piece
    piece = ''
  }
  if (piece) yield piece
}
