import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export type ToolCall = { id?: string; name?: string; arguments?: string }

/** What the model says to one question. Without any of it, it says `Hello there!`. */
export type ReplyPlan = {
  text?: string
  calls?: ToolCall[]
  /** In how many pieces a text, and the arguments of each call, come where they are streamed. */
  pieces?: number
  /** ms between two pieces. */
  pace?: number
  finish?: string
  /** Nothing, where it does not count. */
  usage?: { prompt_tokens: number; completion_tokens: number; total_tokens: number } | null
  /** What the answer, or each chunk of it, says otherwise. */
  other?: object
  /** An answer as it is, instead. */
  status?: number
  headers?: Record<string, string>
  body?: string
  /** Says nothing any more, before its head or after so many chunks. */
  hang?: number
  /** Breaks off, after so many chunks. */
  cut?: number
}

// biome-ignore lint/suspicious/noExplicitAny: what was asked is whatever came, and expectations say what it is
export type ReceivedRequest = { path: string; headers: Record<string, string>; body: any }

type PlannedReply = { id: string; model: string; plan: ReplyPlan }

/**
 * A server that speaks as OpenAI's does: chat completions, streamed or not, embeddings and models. It follows the plans
 * that it is given, one for each question, and then `always`.
 */
export async function startOpenai(always: ReplyPlan | ((asked: ReceivedRequest) => ReplyPlan) = {}) {
  const own = { always, sent: 0 }
  const plans: ReplyPlan[] = []
  const asked: ReceivedRequest[] = []
  /** When whoever asked went before the answer had ended. */
  const left: number[] = []
  const server = createServer(async (request, response) => {
    const body = await readJsonBody(request)
    const one = { path: request.url ?? '', headers: request.headers as Record<string, string>, body }
    asked.push(one)
    response.on('close', () => {
      if (!response.writableFinished) left.push(performance.now())
    })
    const path = one.path.replace(/^\/v1/, '')
    if (path === '/models') return sendJson(response, { object: 'list', data: [{ id: 'model-1', object: 'model' }] })
    const plan = plans.shift() ?? (typeof own.always === 'function' ? own.always(one) : own.always)
    if (plan.status || plan.body !== undefined) {
      response.writeHead(plan.status ?? 200, { 'content-type': 'application/json', ...plan.headers })
      return response.end(plan.body ?? JSON.stringify({ error: { message: 'No.', type: 'refused', code: 'refused' } }))
    }
    if (plan.hang === 0) return
    if (path === '/embeddings') return sendJson(response, toEmbeddings(body))
    const said = { id: `chatcmpl-${asked.length}`, model: body.model, plan }
    if (body.stream) await streamReply(response, said, own)
    else if (plan.cut !== undefined)
      response.writeHead(200, { 'content-length': '1000' }).write('{', () => response.destroy())
    else sendJson(response, toCompletion(said))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}/v1`,
    /** `sent`: how many chunks were taken from it. */
    own,
    asked,
    left,
    /** What was asked last. */
    last: () => asked.at(-1)!,
    /** Has it follow these plans next. */
    says: (...more: ReplyPlan[]) => void plans.push(...more),
    /** Forgets what was asked and planned. */
    clear() {
      plans.length = asked.length = left.length = own.sent = 0
    },
    async stop() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
export type OpenaiServer = Awaited<ReturnType<typeof startOpenai>>

async function readJsonBody(request: IncomingMessage) {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk)
  const text = Buffer.concat(chunks).toString()
  return text ? JSON.parse(text) : undefined
}

const sendJson = (response: ServerResponse, body: object) =>
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body))

const DEFAULT_USAGE = { prompt_tokens: 11, completion_tokens: 7, total_tokens: 18 }
const usageOf = ({ usage = DEFAULT_USAGE }: ReplyPlan) => (usage ? { usage } : {})
const textOf = ({ text, calls }: ReplyPlan) => text ?? (calls ? null : 'Hello there!')
const finishOf = ({ finish, calls }: ReplyPlan) => finish ?? (calls ? 'tool_calls' : 'stop')

function toCompletion({ id, model, plan }: PlannedReply) {
  const calls = plan.calls?.map(({ id, ...call }) => ({ ...(id && { id }), type: 'function', function: call }))
  const message = { role: 'assistant', content: textOf(plan), ...(calls && { tool_calls: calls }) }
  const choices = [{ index: 0, message, finish_reason: finishOf(plan) }]
  return { id, object: 'chat.completion', created: 1_700_000_000, model, choices, ...usageOf(plan), ...plan.other }
}

/** Calls come in pieces that are mixed: the first of each, then the second of each … */
function* toChunks({ plan }: PlannedReply): Generator<object> {
  const { pieces = 3, calls = [] } = plan
  yield { delta: { role: 'assistant', content: '' } }
  for (const content of splitText(textOf(plan) ?? '', pieces)) yield { delta: { content } }
  const parts = calls.map(({ arguments: text = '{}' }) => (text ? splitText(text, pieces) : ['']))
  for (let n = 0; n < Math.max(0, ...parts.map((one) => one.length)); n++)
    for (const [index, { id, name }] of calls.entries()) {
      const piece = parts[index]![n]
      if (piece === undefined) continue
      const first = n ? {} : { ...(id && { id }), type: 'function' }
      yield { delta: { tool_calls: [{ index, ...first, function: { ...(n ? {} : { name }), arguments: piece } }] } }
    }
  yield { delta: {}, finish_reason: finishOf(plan) }
}

async function streamReply(response: ServerResponse, said: PlannedReply, own: { sent: number }) {
  const { id, model, plan } = said
  const head = { id, object: 'chat.completion.chunk', created: 1_700_000_000, model }
  const closed = new Promise((resolve) => response.once('close', resolve))
  const write = async (text: string) => {
    if (!response.write(text)) await Promise.race([new Promise((resolve) => response.once('drain', resolve)), closed])
  }
  const data = (chunk: object) => write(`data: ${JSON.stringify({ ...head, ...chunk, ...plan.other })}\n\n`)
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  let count = 0
  for (const { delta, finish_reason = null } of toChunks(said) as Iterable<{ delta: object; finish_reason?: string }>) {
    if (response.destroyed || plan.hang === count) return
    if (plan.cut === count) return response.destroy()
    await data({ choices: [{ index: 0, delta, finish_reason }] })
    if (plan.pace) await Bun.sleep(plan.pace)
    count++
    own.sent++
  }
  if (plan.usage !== null) await data({ choices: [], ...usageOf(plan) })
  response.end('data: [DONE]\n\n')
}

const splitText = (text: string, pieces: number) => {
  const size = Math.max(1, Math.ceil(text.length / pieces))
  return Array.from({ length: Math.ceil(text.length / size) }, (_, n) => text.slice(n * size, (n + 1) * size))
}

type EmbeddingRequest = { input: string | string[]; model: string; dimensions?: number; encoding_format?: string }
const DEFAULT_DIMENSIONS = 64

/**
 * Texts with the same words have vectors that are close: each word goes to a place of its own, long ones with more weight,
 * for they say more. A model named `words-512` has so many places.
 */
function toEmbeddings({ input, model, dimensions, encoding_format: format }: EmbeddingRequest) {
  const texts = [input].flat()
  const size = dimensions ?? Number(/^words-(\d+)$/.exec(model)?.[1] ?? DEFAULT_DIMENSIONS)
  const data = texts.map((text, index) => {
    const vector = new Float32Array(size)
    for (const word of new Set(text.toLowerCase().match(/[\p{L}\p{N}]+/gu)))
      vector[Bun.hash.crc32(word) % size]! += Math.max(1, word.length - 2)
    const length = Math.hypot(...vector) || 1
    const unit = vector.map((value) => value / length)
    const embedding = format === 'base64' ? Buffer.from(unit.buffer).toString('base64') : [...unit]
    return { object: 'embedding', index, embedding }
  })
  const tokens = texts.join(' ').length >> 2
  return { object: 'list', model, data, usage: { prompt_tokens: tokens, total_tokens: tokens } }
}
