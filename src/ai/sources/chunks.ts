import { createParser } from 'eventsource-parser'

const LONGEST = 8 << 20 // bytes in which an event has to end
const TURN = 64 << 10 // bytes, after which others get theirs

/**
 * What a completion is streamed as, in the pieces in which it comes: of a piece all chunks at once. The client's own stream
 * takes three times as long for each.
 * @throws SyntaxError for what is no JSON, RangeError for an event without end, and what reading throws
 */
export async function* chunksOf({ body }: Response): AsyncGenerator<unknown[], void> {
  let chunks: unknown[] = []
  let over = false
  let [open, read] = [0, 0]
  const parser = createParser({
    onEvent({ data }) {
      open = 0
      over ||= data === '[DONE]'
      if (!over) chunks.push(JSON.parse(data))
    },
  })
  const decoder = new TextDecoder()
  for await (const bytes of (body ?? []) as AsyncIterable<Uint8Array>) {
    open += bytes.byteLength
    if (open > LONGEST) throw new RangeError('An event does not end.')
    parser.feed(decoder.decode(bytes, { stream: true }))
    if (chunks.length) yield chunks
    chunks = []
    if (over) return
    read += bytes.byteLength
    if (read < TURN) continue
    await new Promise(setImmediate)
    read = 0
  }
  // Some leave the last empty line out.
  parser.feed('\n\n')
  if (chunks.length) yield chunks
}
