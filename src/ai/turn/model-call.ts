import type OpenAI from 'openai'
import { toStorableText } from '../../core/body'
import type { ToolCall } from '../shapes'
import { SSE_CONTENT_TYPE } from '../sources/source-fetch'
import type { Source } from '../sources/sources'
import { readChunks } from '../sources/sse-chunks'
import { estimateTokens } from '../token-estimate'
import { MalformedReply, SourceCallError } from './errors'

type Params = Omit<OpenAI.ChatCompletionCreateParamsNonStreaming, 'stream'>

/** What a model said to one question. */
export type Reply = { content: string; calls: ToolCall[]; finish: string; model: string; usage: TokenUsage }

export type TokenUsage = { prompt: number; completion: number; estimated: boolean }

const MAX_TOOL_CALLS = 128
const MAX_REPLY_CHARACTERS = 4 << 20 // characters
const MAX_FINISH_REASON_LENGTH = 64 // characters
const MAX_PLAUSIBLE_TOKENS = 1_000_000_000 // that anybody believes

/** Takes what is said, in its pieces, and is waited for before there is more. */
export type OnText = (words: string[]) => void | Promise<void>

/**
 * Asks a model. What it has said so far is in `so`, also when it breaks off.
 * @throws what `problemOf` knows, and what `say` throws
 */
export async function callModel(
  { client: { chat } }: Source,
  params: Params,
  { signal, so: reply, say: onText, stream }: { signal: AbortSignal; so: ReplyBuilder; say: OnText; stream: boolean },
): Promise<Reply> {
  if (stream) {
    const options = { stream: true, stream_options: { include_usage: true } } as const
    const response = await chat.completions
      .create({ ...params, ...options }, { signal, headers: { accept: SSE_CONTENT_TYPE } })
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
      // Of what makes no sense nobody hears the rest.
      chunkBatches.return().catch(() => {})
    }
  } else {
    const answer = await chat.completions.create({ ...params, stream: false }, { signal }).catch(throwSourceError)
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

/** What the client makes of an answer is not our fault. */
const throwSourceError = (cause: unknown): never => {
  throw new SourceCallError(cause)
}

/** What comes is whatever another server makes of it. */
type ToolCallDelta = { index?: number; id?: string; function?: { name?: string; arguments?: string } }
type Delta = { content?: unknown; refusal?: unknown; tool_calls?: ToolCallDelta[] | null } | null
type ReportedUsage = { prompt_tokens?: unknown; completion_tokens?: unknown } | null
type CompletionChunk = {
  error?: unknown
  model?: unknown
  choices?: ({ delta?: Delta; finish_reason?: unknown } | null)[] | null
  usage?: ReportedUsage
}

/** What a model is saying: its words, and its calls as they are put together from their pieces. */
export class ReplyBuilder {
  content = ''
  #calls: { id: string; name: string; arguments: string }[] = []
  #finish = ''
  #model = ''
  #usage?: { prompt: number; completion: number }
  #size = 0

  /** Takes chunks that came together, and says what is said in them. @throws Senseless, Failed, and what `say` throws */
  async addChunks(chunks: CompletionChunk[], onText: OnText) {
    const pieces: string[] = []
    try {
      for (const chunk of chunks) pieces.push(this.addChunk(chunk ?? {}))
    } finally {
      const texts = pieces.filter(Boolean)
      if (texts.length) await onText(texts)
    }
  }

  /** Takes a chunk, and gives what text is in it. @throws Senseless, Failed */
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

  /** What it has said. Without a word about its end, it broke off. @throws Senseless */
  toReply({ model, ...params }: Params): Reply {
    if (!this.#finish) throw new MalformedReply('The answer of the AI source broke off, or is malformed.')
    const calls = this.#calls
      .filter(Boolean)
      .map(({ id, name, ...call }) => ({
        ...{ id, type: 'function' as const },
        function: { name, arguments: call.arguments },
      }))
    const content = toStorableText(this.content)
    const countUsage = this.countUsage({ model, ...params })
    return { content, calls, finish: this.#finish, model: this.#model || model, usage: countUsage }
  }

  /** What it took: as it was counted, or else about that. */
  countUsage(params: Params): TokenUsage {
    if (this.#usage) return { ...this.#usage, estimated: false }
    const calls = this.#calls.length ? estimateTokens(JSON.stringify(this.#calls)) : 0
    const prompt = estimateTokens(JSON.stringify([params.messages, params.tools]))
    return { prompt, completion: estimateTokens(this.content) + calls, estimated: true }
  }

  /** Some servers don't number calls: there, an id or a name begins another one. */
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

/** What a server says that it took; nothing, where that can't be. */
export function parseUsage(usage: ReportedUsage | undefined) {
  const { prompt_tokens: prompt, completion_tokens: completion } = usage ?? {}
  return isTokenCount(prompt) && isTokenCount(completion) ? { prompt, completion } : undefined
}

const isTokenCount = (value: unknown): value is number =>
  Number.isInteger(value) && Number(value) >= 0 && Number(value) <= MAX_PLAUSIBLE_TOKENS
