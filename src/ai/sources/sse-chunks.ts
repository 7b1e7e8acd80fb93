import { createParser } from 'eventsource-parser'
import type { UpstreamBody } from '../../core/http-stream'

const MAX_EVENT_BYTES = 8 << 20 // bytes of a single event
const DRAIN_MS = 1_000 // ms that the end of an answer may take after its last event
const BYTES_BETWEEN_YIELDS = 64 << 10 // bytes, after which other work gets a turn

/**
 * Yields the chunks of a streamed completion, those of one network read at once.
 * @throws SyntaxError for invalid JSON, RangeError for an event that is too long, and what reading throws
 */
export async function* readChunks(body: UpstreamBody): AsyncGenerator<unknown[], void> {
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
  const reader = new Response(body ?? '').body!.getReader()
  try {
    for (;;) {
      const { done, value: bytes } = await reader.read()
      if (done) break
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
  } finally {
    // Nobody waits for how the rest ends.
    if (isDone) void drain(reader)
    else reader.cancel().catch(() => {})
  }
}

/** Reads what follows the last event, which is the end: the connection can be used again. */
async function drain(reader: { read(): Promise<{ done: boolean }>; cancel(): Promise<void> }) {
  const timer = setTimeout(() => void reader.cancel().catch(() => {}), DRAIN_MS)
  try {
    while (!(await reader.read()).done);
  } catch {
    // The turn has all that it needs.
  } finally {
    clearTimeout(timer)
  }
}
