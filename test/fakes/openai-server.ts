import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export type ToolCall = { id?: string; name?: string; arguments?: string }

/** The reply of the model to one request. An empty plan replies `Hello there!`. */
export type ReplyPlan = {
  text?: string
  calls?: ToolCall[]
  /** The number of pieces in which a text, and the arguments of each call, are streamed. */
  pieces?: number
  /** The pause between two pieces, in ms. */
  pace?: number
  finish?: string
  /** null when the server reports no usage. */
  usage?: { prompt_tokens: number; completion_tokens: number; total_tokens: number } | null
  /** Properties that the answer, or each of its chunks, has in addition or instead. */
  other?: object
  /** The status of a raw answer; `headers` and `body` are also those of a raw answer. */
  status?: number
  headers?: Record<string, string>
  body?: string
  /** Sends nothing more after this many chunks; 0 also omits the head. */
  hang?: number
  /** Closes the connection after this many chunks. */
  cut?: number
  /** Keeps the response open after `[DONE]`. */
  stay?: boolean
}

/** `connection` is the port at its other end. */
// biome-ignore lint/suspicious/noExplicitAny: a body can be anything, and expectations say what it is
export type ReceivedRequest = { path: string; headers: Record<string, string>; body: any; connection: number }

type PlannedReply = { id: string; model: string; plan: ReplyPlan }

/**
 * Starts a server with the API of OpenAI: chat completions, streamed or not, embeddings and models. Each request takes
 * the next plan that was queued; without one it gets `always`.
 */
export async function startOpenai(always: ReplyPlan | ((request: ReceivedRequest) => ReplyPlan) = {}) {
  const own = { always, sent: 0 }
  const plans: ReplyPlan[] = []
  const requests: ReceivedRequest[] = []
  /** The times at which a client hung up before the answer had ended. */
  const left: number[] = []
  const server = createServer(async (request, response) => {
    const body = await readJsonBody(request)
    const received = {
      path: request.url ?? '',
      headers: request.headers as Record<string, string>,
      body,
      connection: request.socket.remotePort!,
    }
    requests.push(received)
    response.on('close', () => {
      if (!response.writableFinished) left.push(performance.now())
    })
    const path = received.path.replace(/^\/v1/, '')
    if (path === '/models') return sendJson(response, { object: 'list', data: [{ id: 'model-1', object: 'model' }] })
    const plan = plans.shift() ?? (typeof own.always === 'function' ? own.always(received) : own.always)
    if (plan.status || plan.body !== undefined) {
      response.writeHead(plan.status ?? 200, { 'content-type': 'application/json', ...plan.headers })
      return response.end(plan.body ?? JSON.stringify({ error: { message: 'No.', type: 'refused', code: 'refused' } }))
    }
    if (plan.hang === 0) return
    if (path === '/embeddings') return sendJson(response, toEmbeddings(body))
    const reply = { id: `chatcmpl-${requests.length}`, model: body.model, plan }
    if (body.stream) await streamReply(response, reply, own)
    else if (plan.cut !== undefined)
      response.writeHead(200, { 'content-length': '1000' }).write('{', () => response.destroy())
    else sendJson(response, toCompletion(reply))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}/v1`,
    /** `sent` is the number of chunks that were sent. */
    own,
    requests,
    left,
    /** Returns the latest request. */
    last: () => requests.at(-1)!,
    /** Queues plans for the next requests. */
    reply: (...more: ReplyPlan[]) => void plans.push(...more),
    /** Forgets all requests and plans. */
    clear() {
      plans.length = requests.length = left.length = own.sent = 0
    },
    /** Closes the connections on which nothing is being answered. */
    closeIdle: () => server.closeIdleConnections(),
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

/** The pieces of several calls are mixed: the first of each, then the second of each … */
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

async function streamReply(response: ServerResponse, reply: PlannedReply, own: { sent: number }) {
  const { id, model, plan } = reply
  const head = { id, object: 'chat.completion.chunk', created: 1_700_000_000, model }
  const closed = new Promise((resolve) => response.once('close', resolve))
  const write = async (text: string) => {
    if (!response.write(text)) await Promise.race([new Promise((resolve) => response.once('drain', resolve)), closed])
  }
  const data = (chunk: object) => write(`data: ${JSON.stringify({ ...head, ...chunk, ...plan.other })}\n\n`)
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  let count = 0
  for (const { delta, finish_reason = null } of toChunks(reply) as Iterable<{
    delta: object
    finish_reason?: string
  }>) {
    if (response.destroyed || plan.hang === count) return
    if (plan.cut === count) return response.destroy()
    await data({ choices: [{ index: 0, delta, finish_reason }] })
    if (plan.pace) await Bun.sleep(plan.pace)
    count++
    own.sent++
  }
  if (plan.usage !== null) await data({ choices: [], ...usageOf(plan) })
  response.write('data: [DONE]\n\n')
  if (!plan.stay) response.end()
}

const splitText = (text: string, pieces: number) => {
  const size = Math.max(1, Math.ceil(text.length / pieces))
  return Array.from({ length: Math.ceil(text.length / size) }, (_, n) => text.slice(n * size, (n + 1) * size))
}

type EmbeddingRequest = { input: string | string[]; model: string; dimensions?: number; encoding_format?: string }
const DEFAULT_DIMENSIONS = 64

/**
 * Texts with the same words have similar vectors: each word has its own dimension, and long words have more weight,
 * because they say more. A model named `words-512` has that many dimensions.
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
