import { createParser, type EventSourceMessage } from 'eventsource-parser'
import { connection, noteAnswer } from './connection'
import { readProblem } from './problem'
import { commonHeaders } from './session'
import { noteSuspension, suspension } from './suspension'

const RETRY_MS = 2_000
const RETRY_AFTER_REFUSAL_MS = 30_000

/** Whether a list follows its changes: it is being connected, it does, or it cannot. */
export type LiveState = 'connecting' | 'live' | 'off'

type Listener = { onEvent(event: EventSourceMessage): void; onState(state: LiveState): void }

const wait = (ms: number, signal: AbortSignal) =>
  new Promise<void>((resolve) => {
    const stop = new AbortController()
    const finish = () => {
      clearTimeout(timer)
      unsubscribe()
      stop.abort()
      resolve()
    }
    const timer = setTimeout(finish, ms)
    // A tenant that is resumed answers again.
    const unsubscribe = suspension.subscribe(() => suspension.get() === 'none' && finish())
    signal.addEventListener('abort', finish, { signal: stop.signal })
  })

/**
 * Follows a stream of server-sent events until the signal aborts it. After a lost connection it resumes where it ended.
 * `EventSource` cannot send the headers that name the tenant.
 */
export async function followEvents(address: string, listener: Listener, signal: AbortSignal) {
  let lastId = ''
  while (!signal.aborted) {
    listener.onState('connecting')
    let isRefused = false
    try {
      const headers = { ...commonHeaders(), accept: 'text/event-stream', ...(lastId && { 'last-event-id': lastId }) }
      const response = await fetch(address, { headers, signal }).catch((error) => {
        if (!signal.aborted) connection.set('lost')
        throw error
      })
      isRefused = !response.ok
      if (isRefused) noteSuspension(await readProblem(response))
      if (response.ok && response.body) {
        noteAnswer()
        listener.onState('live')
        const parser = createParser({
          onEvent: (event) => {
            lastId = event.id ?? lastId
            listener.onEvent(event)
          },
        })
        const reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
        for (let part = await reader.read(); !part.done; part = await reader.read()) parser.feed(part.value)
      }
    } catch {
      // The connection was lost, or the listener left.
    }
    if (signal.aborted) return
    listener.onState(isRefused ? 'off' : 'connecting')
    await wait(isRefused ? RETRY_AFTER_REFUSAL_MS : RETRY_MS, signal)
  }
}
