import type OpenAI from 'openai'
import { toStorableText } from '../../core/body'
import type { ToolCall } from '../shapes'
import { estimateMessageTokens, estimateTokens } from '../token-estimate'
import { CallAssembly } from './call-assembly'
import { ContentAssembly } from './content-assembly'
import { MalformedReply, throwSourceError } from './errors'
import { countCharacters, type Members, mergeMembers, omitKnown, toStorableMembers } from './provider-members'

export type ModelParams = Omit<OpenAI.ChatCompletionCreateParamsNonStreaming, 'stream'>

/** The answer of a model to one request. */
export type Reply = {
  content: string
  calls: ToolCall[]
  own: ProviderParts
  finish: string
  model: string
  usage: TokenUsage
}

/** What a provider said beyond the text and the calls: clients do not see it, and it goes back to the provider. */
export type ProviderParts = {
  /** The members of the message, and its content if that has other parts than text. */
  message: Members
  /** The members of each call. */
  calls: Members[]
}

export type TokenUsage = { prompt: number; completion: number; estimated: boolean }

const MAX_REPLY_CHARACTERS = 4 << 20 // characters
const MAX_FINISH_REASON_LENGTH = 64 // characters
const MAX_PLAUSIBLE_TOKENS = 1_000_000_000 // a higher reported number is ignored

/** Receives the pieces of a text. The next chunks are read once it has resolved. */
export type OnText = (words: string[]) => void | Promise<void>

/** Chunks come from another server, so every part of them may be malformed. */
export type Delta = { content?: unknown; refusal?: unknown; tool_calls?: unknown } | null
export type ReportedUsage = { prompt_tokens?: unknown; completion_tokens?: unknown } | null
export type CompletionChunk = {
  error?: unknown
  model?: unknown
  choices?: ({ delta?: Delta; message?: Delta; finish_reason?: unknown } | null)[] | null
  usage?: ReportedUsage
}

/** Assembles the reply of a model, its text, its tool calls and what else it says, from chunks. */
export class ReplyBuilder {
  readonly #content = new ContentAssembly()
  readonly #calls: CallAssembly
  #members: Members = {}
  #finish = ''
  #model = ''
  #usage?: { prompt: number; completion: number }
  #size = 0

  constructor(toolNames: readonly string[] = []) {
    this.#calls = new CallAssembly(toolNames)
  }

  get content() {
    return this.#content.text
  }

  /** Whether the reply has begun to call tools. */
  get callsTools() {
    return this.#calls.size > 0
  }

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
    // Some servers stream one chunk with the whole message. After pieces, it would only repeat them.
    const said = choice.delta ?? (this.#size ? undefined : choice.message)
    const { content, refusal, tool_calls: calls, ...others } = said ?? {}
    const members = omitKnown(others, KNOWN_MESSAGE_MEMBERS)
    this.#addSize(countCharacters(members) + countCharacters(calls) + countCharacters(content))
    this.#members = mergeMembers(this.#members, members)
    this.#calls.add(calls)
    return this.#content.add(content) || this.#content.add(toText(refusal))
  }

  /** Returns the complete reply. @throws MalformedReply when it broke off: without a `finish_reason`, or amid a call */
  toReply({ model, ...params }: ModelParams): Reply {
    if (!this.#finish) throw new MalformedReply('The answer of the AI source broke off, or is malformed.')
    if (this.#finish === 'length' && this.#calls.isAmidCall)
      throw new MalformedReply('The answer of the AI source was cut amid a tool call: raise `max_tokens`.')
    const assembled = this.#calls.toCalls()
    const parts = this.#content.parts
    return {
      content: toStorableText(this.content),
      calls: assembled.map(({ call }) => call),
      own: {
        message: toStorableMembers({ ...this.#members, ...(parts && { content: parts }) }),
        calls: assembled.map(({ members }) => toStorableMembers(members)),
      },
      finish: this.#finish,
      model: this.#model || model,
      usage: this.countUsage({ model, ...params }),
    }
  }

  /** Returns the usage that the source reported, or else an estimate. */
  countUsage(params: ModelParams): TokenUsage {
    if (this.#usage) return { ...this.#usage, estimated: false }
    const calls = this.#calls.size ? estimateTokens(JSON.stringify(this.#calls.toCalls())) : 0
    const tools = params.tools ? estimateTokens(JSON.stringify(params.tools)) : 0
    const prompt = estimateMessageTokens(params.messages) + tools
    return { prompt, completion: estimateTokens(this.content) + calls, estimated: true }
  }

  #addSize(characters: number) {
    this.#size += characters
    if (this.#size > MAX_REPLY_CHARACTERS) throw new MalformedReply('The answer of the AI source is too long.')
  }
}

const KNOWN_MESSAGE_MEMBERS = new Set(['role', 'name', 'function_call', 'audio', 'annotations'])

const toText = (value: unknown) => (typeof value === 'string' ? value : '')

/** Returns the usage that a source reported, or undefined if it is implausible. */
export function parseUsage(usage: ReportedUsage | undefined) {
  const { prompt_tokens: prompt, completion_tokens: completion } = usage ?? {}
  return isTokenCount(prompt) && isTokenCount(completion) ? { prompt, completion } : undefined
}

const isTokenCount = (value: unknown): value is number =>
  Number.isInteger(value) && Number(value) >= 0 && Number(value) <= MAX_PLAUSIBLE_TOKENS
