import { AtollError } from './errors'
import { waitFor } from './platform'
import { readEvents } from './streams'
import type { Init, Transport } from './transport'

/** What happened to the entities of a list. */
export type EntityChange<E> =
  | { type: 'create' | 'update'; entity: E }
  | { type: 'delete'; _id: string; identifier: string }
  /** The stream has begun. */
  | { type: 'ready' }
  /** Changes may be missing: load the list again. */
  | { type: 'reset' }

const SILENCE_MS = 45_000 // ms; the server sends a heartbeat every 15 s
const MAX_WAIT_MS = 10_000 // ms between two attempts to connect
const MAX_CHARACTERS = 4e6 // of a connection, because XMLHttpRequest keeps all that it has received

/** Follows a stream of changes. It connects again until the signal aborts or the server refuses it for good. */
export async function* followChanges<E>(
  { send }: Transport,
  path: string,
  query: string,
  { headers, signal }: Init,
): AsyncGenerator<EntityChange<E>, void> {
  let lastId = ''
  for (let failures = 0; ; failures++) {
    const connection = new AbortController()
    const abort = () => connection.abort(signal?.reason)
    if (signal?.aborted) abort()
    signal?.addEventListener('abort', abort)
    try {
      const resumed = { ...headers, accept: 'text/event-stream', ...(lastId && { 'last-event-id': lastId }) }
      const call = { query, headers: resumed, signal: connection.signal, isStreamed: true }
      const answer = await send('GET', path, call)
      for await (const { type, id, data } of readEvents(watch(answer.chunks(), connection))) {
        failures = 0
        lastId = id || lastId
        yield toChange<E>(type, JSON.parse(data))
      }
    } catch (error) {
      if (signal?.aborted || isFinal(error)) throw error
    } finally {
      signal?.removeEventListener('abort', abort)
      connection.abort()
    }
    await waitFor(Math.min(MAX_WAIT_MS, 250 * 2 ** failures) * (0.5 + Math.random() / 2), signal)
  }
}

/** Ends a connection that is silent, or has grown long. */
async function* watch(chunks: AsyncIterable<string>, connection: AbortController) {
  let [characters, timer] = [0, startTimer(connection)]
  try {
    for await (const chunk of chunks) {
      clearTimeout(timer)
      yield chunk
      characters += chunk.length
      if (characters > MAX_CHARACTERS) return
      timer = startTimer(connection)
    }
  } finally {
    clearTimeout(timer)
  }
}

const startTimer = (connection: AbortController) => setTimeout(() => connection.abort(), SILENCE_MS)

const toChange = <E>(type: string, data: unknown): EntityChange<E> =>
  (type === 'create' || type === 'update'
    ? { type, entity: data }
    : { type, ...(type === 'delete' && (data as object)) }) as EntityChange<E>

/** Whether another attempt would end in the same way. */
const isFinal = (error: unknown) =>
  error instanceof AtollError && error.status < 500 && ![408, 425, 429].includes(error.status)
