import { report } from '../../core/log'
import { Problem } from '../../core/problem'
import { headOf, lastEvent } from './answer'
import { failed, keep } from './ending'
import { gone } from './failures'
import type { Turn } from './turn'

const BEAT = 5_000 // ms
const STALLED = 60_000 // ms that a client may take to take something

const encoder = new TextEncoder()
const COMMENT = encoder.encode(': still here\n\n')

/**
 * A turn as server-sent events: chunks as OpenAI's API has them, or what the client's tools are to do, and `[DONE]`. What goes
 * wrong before the first word is refused like anything else, unless the model thinks for longer than a heartbeat; after
 * that it is an event. What the client does not take is not asked for. `over` is called at the end, however that comes.
 */
export async function streamed(turn: Turn, over: () => void): Promise<Response> {
  const state = { begun: false }
  const events = eventsOf(turn, state)
  let next: Promise<IteratorResult<string>> | undefined = events.next()
  await early(next, state)
  let waiting = false
  let taken = performance.now()
  const end = () => {
    clearInterval(beat)
    over()
  }
  const cancel = async () => {
    clearInterval(beat)
    turn.of.ending.abort(gone())
    await next?.catch(() => {})
    await events.return(undefined).catch(() => {})
    end()
  }
  let beat: ReturnType<typeof setInterval>
  const body = new ReadableStream<Uint8Array>(
    {
      start(controller) {
        beat = setInterval(() => {
          if (waiting) controller.enqueue(COMMENT)
          else if (performance.now() - taken > STALLED) {
            controller.error()
            void cancel()
          }
        }, BEAT)
      },
      async pull(controller) {
        waiting = true
        next ??= events.next()
        const { done, value } = await next
        next = undefined
        waiting = false
        taken = performance.now()
        if (!done) return controller.enqueue(encoder.encode(value))
        end()
        controller.close()
      },
      cancel,
    },
    { highWaterMark: 0 },
  )
  return new Response(body, { headers: HEADERS })
}

const HEADERS = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-cache, no-transform',
  // Else some proxies collect all of it before they pass it on.
  'x-accel-buffering': 'no',
}

/** Waits for the first event, but not for longer than a heartbeat. @throws what callers are told */
async function early(first: Promise<unknown>, state: { begun: boolean }) {
  const { promise, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(resolve, BEAT)
  await Promise.race([first, promise]).finally(() => clearTimeout(timer))
  state.begun = true
}

async function* eventsOf(turn: Turn, state: { begun: boolean }): AsyncGenerator<string> {
  const start = JSON.stringify(headOf(turn, 'chat.completion.chunk')).slice(0, -1)
  let named = false
  let over = false
  /** What does not change is written once. Readers take the first to say who speaks. */
  const chunk = (content: string) => {
    const role = named ? '' : '"role":"assistant",'
    named = true
    return `data: ${start},"choices":[{"index":0,"delta":{${role}"content":${JSON.stringify(content)}},"finish_reason":null}]}\n\n`
  }
  try {
    // What does not change is written once.
    for await (const content of turn.run(true)) yield chunk(content)
    if (!named && !turn.pause) yield chunk('')
    over = true
    await keep(turn, 'completed')
  } catch (error) {
    const problem = over ? error : await failed(turn, error)
    over = true
    if (!state.begun) throw problem
    yield `data: ${JSON.stringify({ error: toldOf(turn, problem) })}\n\n`
    yield DONE
    return
  } finally {
    // Whoever listened has gone between two words.
    if (!over) await keep(turn, 'aborted', 'CALLER_GONE')
  }
  yield `data: ${JSON.stringify(lastEvent(turn))}\n\n`
  yield DONE
}

const DONE = 'data: [DONE]\n\n'

function toldOf({ of: { ctx } }: Turn, problem: unknown) {
  if (problem instanceof Problem) return { code: problem.code, message: problem.message }
  report('COMPLETION_FAILED', { tenant: ctx.tenant, cause: problem })
  return { code: 'INTERNAL', message: 'Something went wrong on our side.' }
}
