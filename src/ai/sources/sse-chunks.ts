import { createParser } from 'eventsource-parser'

const MAX_EVENT_BYTES = 8 << 20 // bytes in which an event has to end
const BYTES_BETWEEN_YIELDS = 64 << 10 // bytes, after which others get theirs

/**
 * What a completion is streamed as, in the pieces in which it comes: of a piece all chunks at once. The client's own stream
 * takes three times as long for each.
 * @throws SyntaxError for what is no JSON, RangeError for an event without end, and what reading throws
 */
export async function* readChunks({ body }: Response): AsyncGenerator<unknown[], void> {
  let chunks: unknown[] = []
  let isDone = false
  let [eventBytes, bytesSinceYield] = [0, 0]
  const parser = createParser({
    onEvent({ data }) {
      eventBytes = 0
      isDone ||= data === '[DONE]'
      if (!isDone) chunks.push(JSON.parse(data))
    },
  })
  const decoder = new TextDecoder()
  for await (const bytes of (body ?? []) as AsyncIterable<Uint8Array>) {
    eventBytes += bytes.byteLength
    if (eventBytes > MAX_EVENT_BYTES) throw new RangeError('An event does not end.')
    parser.feed(decoder.decode(bytes, { stream: true }))
    if (chunks.length) yield chunks
    chunks = []
    if (isDone) return
    bytesSinceYield += bytes.byteLength
    if (bytesSinceYield < BYTES_BETWEEN_YIELDS) continue
    await new Promise(setImmediate)
    bytesSinceYield = 0
  }
  // Some leave the last empty line out.
  parser.feed('\n\n')
  if (chunks.length) yield chunks
}
