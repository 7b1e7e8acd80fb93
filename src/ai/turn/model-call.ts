import type OpenAI from 'openai'
import { toStorableText } from '../../core/body'
import { type RunSlice, stringifyInSlices } from '../../core/sliced-json'
import type { ToolCall } from '../shapes'
import { SSE_CONTENT_TYPE } from '../sources/source-fetch'
import type { Source } from '../sources/sources'
import { readChunks } from '../sources/sse-chunks'
import { estimateMessageTokens, estimateTokens } from '../token-estimate'
import { MalformedReply, SourceCallError } from './errors'

type Params = Omit<OpenAI.ChatCompletionCreateParamsNonStreaming, 'stream'>

/** The answer of a model to one request. */
export type Reply = { content: string; calls: ToolCall[]; finish: string; model: string; usage: TokenUsage }

export type TokenUsage = { prompt: number; completion: number; estimated: boolean }

const MAX_TOOL_CALLS = 128
const MAX_REPLY_CHARACTERS = 4 << 20 // characters
const MAX_FINISH_REASON_LENGTH = 64 // characters
const MAX_PLAUSIBLE_TOKENS = 1_000_000_000 // a higher reported number is ignored

/** Receives the pieces of a text. The next chunks are read once it has resolved. */
export type OnText = (words: string[]) => void | Promise<void>

type CallOptions = { signal: AbortSignal; reply: ReplyBuilder; onText: OnText; stream: boolean; runSlice: RunSlice }

/**
 * Calls a model and returns its reply. `reply` holds what was received so far, also after an error. The body may be
 * large, so it is written in slices.
 * @throws SourceCallError, MalformedReply, the reason of the signal, and what `onText` throws
 */
export async function callModel(
  { client: { chat } }: Source,
  params: Params,
  { signal, reply, onText, stream, runSlice }: CallOptions,
): Promise<Reply> {
  const streamOptions = { stream: true, stream_options: { include_usage: true } } as const
  const body = await stringifyInSlices({ ...params, ...(stream ? streamOptions : { stream }) }, runSlice)
  const headers = { 'content-type': 'application/json' }
  if (stream) {
    const response = await chat.completions
      .create({ ...params, ...streamOptions }, { signal, body, headers: { ...headers, accept: SSE_CONTENT_TYPE } })
      .asResponse()
      .catch(throwSourceError)
    const chunkBatches = readChunks(response)
    try {
      for (;;) {
        const { done, value } = await chunkBatches.next().catch(throwSourceError)
        if (done) break
        await reply.addChunks(value as CompletionChunk[], onText)
      }
    } finally {
      // Stops reading when a chunk is malformed.
      chunkBatches.return().catch(() => {})
    }
  } else {
    const answer = await chat.completions
      .create({ ...params, stream: false }, { signal, body, headers })
      .catch(throwSourceError)
    const { model, usage, choices } = (answer ?? {}) as Partial<typeof answer>
    const choice = choices?.[0]
    await reply.addChunks(
      [{ model, usage, choices: choice && [{ ...choice, delta: choice.message as Delta }] }],
      onText,
    )
  }
  signal.throwIfAborted()
  return reply.toReply(params)
}

/** Wraps any error of the client, for all of them are failures of the source. */
const throwSourceError = (cause: unknown): never => {
  throw new SourceCallError(cause)
}

/** Chunks come from another server, so every part of them may be malformed. */
type ToolCallDelta = { index?: number; id?: string; function?: { name?: string; arguments?: string } }
type Delta = { content?: unknown; refusal?: unknown; tool_calls?: ToolCallDelta[] | null } | null
type ReportedUsage = { prompt_tokens?: unknown; completion_tokens?: unknown } | null
type CompletionChunk = {
  error?: unknown
  model?: unknown
  choices?: ({ delta?: Delta; finish_reason?: unknown } | null)[] | null
  usage?: ReportedUsage
}

/** Assembles the reply of a model, its text and its tool calls, from chunks. */
export class ReplyBuilder {
  content = ''
  #calls: { id: string; name: string; arguments: string }[] = []
  #finish = ''
  #model = ''
  #usage?: { prompt: number; completion: number }
  #size = 0

  /** Adds chunks and passes on their text. @throws MalformedReply, SourceCallError, and what `onText` throws */
  async addChunks(chunks: CompletionChunk[], onText: OnText) {
    const pieces: string[] = []
    try {
      for (const chunk of chunks) pieces.push(this.addChunk(chunk ?? {}))
    } finally {
      const texts = pieces.filter(Boolean)
      if (texts.length) await onText(texts)
    }
  }

  /** Adds a chunk and returns its text. @throws MalformedReply, SourceCallError */
  addChunk({ model, choices, usage, error }: CompletionChunk): string {
    if (error) throwSourceError(new Error('The AI source reported an error.'))
    if (typeof model === 'string') this.#model ||= model
    this.#usage = parseUsage(usage) ?? this.#usage
    const choice = choices?.[0]
    if (!choice) return ''
    this.#finish = toText(choice.finish_reason).slice(0, MAX_FINISH_REASON_LENGTH) || this.#finish
    const { content, refusal, tool_calls: parts } = choice.delta ?? {}
    for (const [n, part] of (Array.isArray(parts) ? parts : []).entries()) if (part) this.#addToolCall(part, n)
    const text = toText(content) || toText(refusal)
    this.content += text
    this.#addSize(text)
    return text
  }

  /** Returns the complete reply. @throws MalformedReply when there was no `finish_reason`, so that it broke off */
  toReply({ model, ...params }: Params): Reply {
    if (!this.#finish) throw new MalformedReply('The answer of the AI source broke off, or is malformed.')
    const calls = this.#calls
      .filter(Boolean)
      .map(({ id, name, ...call }) => ({
        ...{ id, type: 'function' as const },
        function: { name, arguments: call.arguments },
      }))
    const content = toStorableText(this.content)
    const usage = this.countUsage({ model, ...params })
    return { content, calls, finish: this.#finish, model: this.#model || model, usage }
  }

  /** Returns the usage that the source reported, or else an estimate. */
  countUsage(params: Params): TokenUsage {
    if (this.#usage) return { ...this.#usage, estimated: false }
    const calls = this.#calls.length ? estimateTokens(JSON.stringify(this.#calls)) : 0
    const tools = params.tools ? estimateTokens(JSON.stringify(params.tools)) : 0
    const prompt = estimateMessageTokens(params.messages) + tools
    return { prompt, completion: estimateTokens(this.content) + calls, estimated: true }
  }

  /** Some servers do not send the index of a call. For them, a new id begins the next call. */
  #addToolCall({ index, id, function: callFunction }: ToolCallDelta, n: number) {
    const startsCall = !!id && id !== this.#calls.at(-1)?.id
    const callIndex =
      index ?? (startsCall || !this.#calls.length ? this.#calls.length : Math.max(n, this.#calls.length - 1))
    if (!Number.isInteger(callIndex) || callIndex < 0 || callIndex >= MAX_TOOL_CALLS)
      throw new MalformedReply('The AI source calls too many tools at once.')
    this.#calls[callIndex] ??= { id: '', name: '', arguments: '' }
    const call = this.#calls[callIndex]
    call.id ||= toText(id)
    call.name ||= toText(callFunction?.name)
    const argumentsDelta = toText(callFunction?.arguments)
    call.arguments += argumentsDelta
    this.#addSize(argumentsDelta)
  }

  #addSize({ length }: string) {
    this.#size += length
    if (this.#size > MAX_REPLY_CHARACTERS) throw new MalformedReply('The answer of the AI source is too long.')
  }
}

const toText = (value: unknown) => (typeof value === 'string' ? value : '')

/** Returns the usage that a source reported, or undefined if it is implausible. */
export function parseUsage(usage: ReportedUsage | undefined) {
  const { prompt_tokens: prompt, completion_tokens: completion } = usage ?? {}
  return isTokenCount(prompt) && isTokenCount(completion) ? { prompt, completion } : undefined
}

const isTokenCount = (value: unknown): value is number =>
  Number.isInteger(value) && Number(value) >= 0 && Number(value) <= MAX_PLAUSIBLE_TOKENS
