import { logError } from '../../core/log'
import { Problem } from '../../core/problem'
import { callerGoneProblem } from './errors'
import { toFinalEvent, toResponseHead } from './openai-response'
import type { Turn } from './turn'
import { saveFailedTurn, saveTurn } from './turn-store'

const HEARTBEAT_MS = 5_000 // ms
const MAX_STALL_MS = 60_000 // ms that a client may take to take something

const HEARTBEAT_COMMENT = ': still here\n\n'
const DONE_EVENT = 'data: [DONE]\n\n'

/**
 * A turn as server-sent events: chunks as OpenAI's API has them, or what the client's tools are to do, and `[DONE]`. What goes
 * wrong before the first word is refused like anything else, unless the model thinks for longer than a heartbeat; after
 * that it is an event. What the client does not take is not asked for. `over` is called at the end, however that comes.
 */
export async function streamTurn(turn: Turn, onEnd: () => void): Promise<Response> {
  const writer = new SseWriter(() => turn.input.abortController.abort(callerGoneProblem()))
  let hasSentRole = false
  const chunkStart = JSON.stringify(toResponseHead(turn, 'chat.completion.chunk')).slice(0, -1)
  /** What does not change is written once. Readers take the first to say who speaks. */
  const chunk = (content: string) => {
    const role = hasSentRole ? '' : '"role":"assistant",'
    hasSentRole = true
    const delta = `{${role}"content":${JSON.stringify(content)}}`
    return `data: ${chunkStart},"choices":[{"index":0,"delta":${delta},"finish_reason":null}]}\n\n`
  }
  const onText = (words: string[]) => writer.send(words.map(chunk).join(''))
  const work = async () => {
    try {
      await turn.run(true, onText)
      await saveTurn(turn, 'completed')
      if (!hasSentRole && !turn.pause) await onText([''])
      await writer.send(`data: ${JSON.stringify(toFinalEvent(turn))}\n\n`)
    } catch (error) {
      const problem = await saveFailedTurn(turn, error)
      if (!writer.hasStarted) throw problem
      await writer.send(`data: ${JSON.stringify({ error: toErrorBody(turn, problem) })}\n\n`)
    }
    await writer.send(DONE_EVENT)
  }
  const finished = work().finally(() => {
    writer.end()
    onEnd()
  })
  await writer.waitForStart(finished)
  return new Response(writer.body, { headers: SSE_HEADERS })
}

/** The way out to one client, who takes one thing after the other. */
class SseWriter {
  readonly body: ReadableStream<Uint8Array>
  hasStarted = false
  #controller!: ReadableStreamDefaultController<Uint8Array>
  #encoder = new TextEncoder()
  #firstSend = Promise.withResolvers<void>()
  #demand = Promise.withResolvers<void>()
  #isPulled = false
  #isClosed = false
  #lastPullTime = performance.now()
  #heartbeat = setInterval(() => this.#tick(), HEARTBEAT_MS)

  /** `leave` is called when the client goes. */
  constructor(private onDisconnect: () => void) {
    this.body = new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          this.#controller = controller
        },
        pull: () => {
          this.#isPulled = true
          this.#lastPullTime = performance.now()
          this.#demand.resolve()
        },
        cancel: () => this.#disconnect(),
      },
      { highWaterMark: 0 },
    )
  }

  /** Waits for the first thing to send, or for a heartbeat. @throws what the work does before that */
  async waitForStart(work: Promise<void>) {
    // What goes wrong later is told by the work itself.
    work.catch(() => {})
    const timer = setTimeout(this.#firstSend.resolve, HEARTBEAT_MS)
    await Promise.race([this.#firstSend.promise, work]).finally(() => clearTimeout(timer))
    this.hasStarted = true
  }

  /** Sends something as soon as the client takes it. */
  async send(text: string) {
    this.hasStarted = true
    this.#firstSend.resolve()
    if (!this.#isPulled) await this.#demand.promise
    if (this.#isClosed) return
    this.#isPulled = false
    this.#demand = Promise.withResolvers()
    this.#controller.enqueue(this.#encoder.encode(text))
  }

  end() {
    if (this.#close()) this.#controller.close()
  }

  #tick() {
    if (this.#isPulled && this.hasStarted) this.#controller.enqueue(this.#encoder.encode(HEARTBEAT_COMMENT))
    else if (performance.now() - this.#lastPullTime > MAX_STALL_MS) {
      this.#disconnect()
      this.#controller.error()
    }
  }

  #disconnect() {
    if (this.#close()) this.onDisconnect()
  }

  /** Nobody takes anything any more; false when that was so before. */
  #close(): boolean {
    if (this.#isClosed) return false
    this.#isClosed = true
    clearInterval(this.#heartbeat)
    this.#demand.resolve()
    return true
  }
}

const SSE_HEADERS = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-cache, no-transform',
  // Else some proxies collect all of it before they pass it on.
  'x-accel-buffering': 'no',
}

function toErrorBody({ input: { ctx } }: Turn, problem: unknown) {
  if (problem instanceof Problem) return { code: problem.code, message: problem.message }
  logError('COMPLETION_FAILED', { tenant: ctx.tenant, cause: problem })
  return { code: 'INTERNAL', message: 'Something went wrong on our side.' }
}
