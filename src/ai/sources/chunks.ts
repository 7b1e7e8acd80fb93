import { createParser } from 'eventsource-parser'

/**
 * What a completion is streamed as, in the pieces in which it comes: of a piece all chunks at once. The client's own stream
 * takes three times as long for each.
 * @throws SyntaxError for what is no JSON, and what reading throws
 */
export async function* chunksOf({ body }: Response): AsyncGenerator<unknown[], void> {
  let chunks: unknown[] = []
  let over = false
  const parser = createParser({
    onEvent({ data }) {
      over ||= data === '[DONE]'
      if (!over) chunks.push(JSON.parse(data))
    },
  })
  const decoder = new TextDecoder()
  for await (const bytes of (body ?? []) as AsyncIterable<Uint8Array>) {
    parser.feed(decoder.decode(bytes, { stream: true }))
    if (chunks.length) yield chunks
    chunks = []
    if (over) return
  }
  // Some leave the last empty line out.
  parser.feed('\n\n')
  if (chunks.length) yield chunks
}
