import { report } from '../../core/log'
import { Problem } from '../../core/problem'
import { headOf, lastEvent } from './answer'
import { failed, keep } from './ending'
import { gone } from './failures'
import type { Turn } from './turn'

const BEAT = 5_000 // ms
const STALLED = 60_000 // ms that a client may take to take something

const COMMENT = ': still here\n\n'
const DONE = 'data: [DONE]\n\n'

/**
 * A turn as server-sent events: chunks as OpenAI's API has them, or what the client's tools are to do, and `[DONE]`. What goes
 * wrong before the first word is refused like anything else, unless the model thinks for longer than a heartbeat; after
 * that it is an event. What the client does not take is not asked for. `over` is called at the end, however that comes.
 */
export async function streamed(turn: Turn, over: () => void): Promise<Response> {
  const out = new Outlet(() => turn.of.ending.abort(gone()))
  let named = false
  const start = JSON.stringify(headOf(turn, 'chat.completion.chunk')).slice(0, -1)
  /** What does not change is written once. Readers take the first to say who speaks. */
  const chunk = (content: string) => {
    const role = named ? '' : '"role":"assistant",'
    named = true
    const delta = `{${role}"content":${JSON.stringify(content)}}`
    return `data: ${start},"choices":[{"index":0,"delta":${delta},"finish_reason":null}]}\n\n`
  }
  const say = (words: string[]) => out.send(words.map(chunk).join(''))
  const work = async () => {
    try {
      await turn.run(true, say)
      await keep(turn, 'completed')
      if (!named && !turn.pause) await say([''])
      await out.send(`data: ${JSON.stringify(lastEvent(turn))}\n\n`)
    } catch (error) {
      const problem = await failed(turn, error)
      if (!out.begun) throw problem
      await out.send(`data: ${JSON.stringify({ error: toldOf(turn, problem) })}\n\n`)
    }
    await out.send(DONE)
  }
  const done = work().finally(() => {
    out.end()
    over()
  })
  await out.beginning(done)
  return new Response(out.body, { headers: HEADERS })
}

/** The way out to one client, who takes one thing after the other. */
class Outlet {
  readonly body: ReadableStream<Uint8Array>
  begun = false
  #controller!: ReadableStreamDefaultController<Uint8Array>
  #encoder = new TextEncoder()
  #first = Promise.withResolvers<void>()
  #wanted = Promise.withResolvers<void>()
  #waiting = false
  #over = false
  #taken = performance.now()
  #beat = setInterval(() => this.#tick(), BEAT)

  /** `leave` is called when the client goes. */
  constructor(private leave: () => void) {
    this.body = new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          this.#controller = controller
        },
        pull: () => {
          this.#waiting = true
          this.#taken = performance.now()
          this.#wanted.resolve()
        },
        cancel: () => this.#gone(),
      },
      { highWaterMark: 0 },
    )
  }

  /** Waits for the first thing to send, or for a heartbeat. @throws what the work does before that */
  async beginning(work: Promise<void>) {
    // What goes wrong later is told by the work itself.
    work.catch(() => {})
    const timer = setTimeout(this.#first.resolve, BEAT)
    await Promise.race([this.#first.promise, work]).finally(() => clearTimeout(timer))
    this.begun = true
  }

  /** Sends something as soon as the client takes it. */
  async send(text: string) {
    this.begun = true
    this.#first.resolve()
    if (!this.#waiting) await this.#wanted.promise
    if (this.#over) return
    this.#waiting = false
    this.#wanted = Promise.withResolvers()
    this.#controller.enqueue(this.#encoder.encode(text))
  }

  end() {
    if (this.#close()) this.#controller.close()
  }

  #tick() {
    if (this.#waiting && this.begun) this.#controller.enqueue(this.#encoder.encode(COMMENT))
    else if (performance.now() - this.#taken > STALLED) {
      this.#gone()
      this.#controller.error()
    }
  }

  #gone() {
    if (this.#close()) this.leave()
  }

  /** Nobody takes anything any more; false when that was so before. */
  #close(): boolean {
    if (this.#over) return false
    this.#over = true
    clearInterval(this.#beat)
    this.#wanted.resolve()
    return true
  }
}

const HEADERS = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-cache, no-transform',
  // Else some proxies collect all of it before they pass it on.
  'x-accel-buffering': 'no',
}

function toldOf({ of: { ctx } }: Turn, problem: unknown) {
  if (problem instanceof Problem) return { code: problem.code, message: problem.message }
  report('COMPLETION_FAILED', { tenant: ctx.tenant, cause: problem })
  return { code: 'INTERNAL', message: 'Something went wrong on our side.' }
}
