import { createParser } from 'eventsource-parser'

const MAX_EVENT_BYTES = 8 << 20 // bytes of a single event
const BYTES_BETWEEN_YIELDS = 64 << 10 // bytes, after which other work gets a turn

/**
 * Yields the chunks of a streamed completion, those of one network read at once. The stream of OpenAI's client takes three
 * times as long for each chunk.
 * @throws SyntaxError for invalid JSON, RangeError for an event that is too long, and what reading throws
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
  // Some servers leave out the last empty line.
  parser.feed('\n\n')
  if (chunks.length) yield chunks
}
