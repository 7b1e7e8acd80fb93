import { logError } from '../../core/log'
import { Problem } from '../../core/problem'
import { callerGoneProblem } from './errors'
import { ownFormat } from './openai-response'
import type { Turn } from './turn'
import { saveFailedTurn, saveTurn } from './turn-store'

const HEARTBEAT_MS = 5_000 // ms
const MAX_STALL_MS = 60_000 // ms that a client may go without reading

const HEARTBEAT_COMMENT = ': still here\n\n'
const DONE_EVENT = 'data: [DONE]\n\n'

/**
 * Runs a turn and returns it as server-sent events: chunks in the format of OpenAI's API, or the calls of client tools, and
 * `[DONE]`. An error before the first text is thrown, unless the model takes longer than a heartbeat. A later error is sent
 * as an event. The model's answer is read only as fast as the client reads. `onEnd` is called at the end in any case.
 * @throws the Problem of an error before the first text
 */
export async function streamTurn(turn: Turn, onEnd: () => void): Promise<Response> {
  const writer = new SseWriter(() => turn.input.abortController.abort(callerGoneProblem()))
  const { format = ownFormat } = turn.input.extras
  let hasSentRole = false
  const chunkStart = JSON.stringify(format.toHead(turn, 'chat.completion.chunk')).slice(0, -1)
  const toEvent = (data: object) => `data: ${JSON.stringify(data)}\n\n`
  /** The constant beginning of chunks is serialized once. The first chunk names the role. */
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
      await writer.send(format.toFinalEvents(turn).map(toEvent).join(''))
    } catch (error) {
      const problem = await saveFailedTurn(turn, error)
      if (!writer.hasStarted) throw problem
      await writer.send(toEvent(format.toErrorEvent(toErrorBody(turn, problem))))
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

/** Writes the events of one stream as fast as its client reads them, with heartbeats. */
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

  /** `onDisconnect` is called when the client disconnects or stops reading. */
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

  /** Waits for the first event, or for the time of a heartbeat. @throws what `work` throws before that */
  async waitForStart(work: Promise<void>) {
    // Later errors are sent as events by the work itself.
    work.catch(() => {})
    const timer = setTimeout(() => this.#start(), HEARTBEAT_MS)
    await Promise.race([this.#firstSend.promise, work]).finally(() => clearTimeout(timer))
  }

  #start() {
    this.hasStarted = true
    this.#firstSend.resolve()
  }

  /** Sends a text as soon as the client reads. Drops it if the client has gone. */
  async send(text: string) {
    this.#start()
    if (!this.#isPulled) await this.#demand.promise
    if (!this.#isClosed) this.#enqueue(text)
  }

  /** Answers the read of the client that is waiting. */
  #enqueue(text: string) {
    this.#isPulled = false
    this.#demand = Promise.withResolvers()
    this.#controller.enqueue(this.#encoder.encode(text))
  }

  end() {
    if (this.#close()) this.#controller.close()
  }

  #tick() {
    if (this.#isPulled && this.hasStarted) this.#enqueue(HEARTBEAT_COMMENT)
    else if (performance.now() - this.#lastPullTime > MAX_STALL_MS) {
      this.#disconnect()
      this.#controller.error()
    }
  }

  #disconnect() {
    if (this.#close()) this.onDisconnect()
  }

  /** Stops sending. Returns false if it was closed before. */
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
  // Without it, some proxies buffer the whole stream.
  'x-accel-buffering': 'no',
}

function toErrorBody({ input: { ctx } }: Turn, problem: unknown) {
  if (problem instanceof Problem) return problem
  logError('COMPLETION_FAILED', { tenant: ctx.tenant, cause: problem })
  return { status: 500, code: 'INTERNAL', message: 'Something went wrong on our side.' }
}
