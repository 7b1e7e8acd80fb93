import type OpenAI from 'openai'
import { keepableText } from '../../core/body'
import type { ToolCall } from '../shapes'
import { EVENTS } from '../sources/asking'
import { chunksOf } from '../sources/chunks'
import type { Source } from '../sources/sources'
import { tokensIn } from '../tokens'
import { Failed, Senseless } from './failures'

type Params = Omit<OpenAI.ChatCompletionCreateParamsNonStreaming, 'stream'>

/** What a model said to one question. */
export type Reply = { content: string; calls: ToolCall[]; finish: string; model: string; usage: Usage }

export type Usage = { prompt: number; completion: number; estimated: boolean }

const CALLS = 128
const SIZE = 4 << 20 // characters
const REASON = 64 // characters
const TOKENS = 1_000_000_000 // that anybody believes

/** Takes what is said, in its pieces, and is waited for before there is more. */
export type Say = (words: string[]) => void | Promise<void>

/**
 * Asks a model. What it has said so far is in `so`, also when it breaks off.
 * @throws what `problemOf` knows, and what `say` throws
 */
export async function ask(
  { client: { chat } }: Source,
  params: Params,
  { signal, so, say, stream }: { signal: AbortSignal; so: Saying; say: Say; stream: boolean },
): Promise<Reply> {
  if (stream) {
    const options = { stream: true, stream_options: { include_usage: true } } as const
    const response = await chat.completions
      .create({ ...params, ...options }, { signal, headers: { accept: EVENTS } })
      .asResponse()
      .catch(refuse)
    const pieces = chunksOf(response)
    try {
      for (;;) {
        const { done, value } = await pieces.next().catch(refuse)
        if (done) break
        await so.hearing(value as Chunk[], say)
      }
    } finally {
      // Of what makes no sense nobody hears the rest.
      pieces.return().catch(() => {})
    }
  } else {
    const answer = await chat.completions.create({ ...params, stream: false }, { signal }).catch(refuse)
    const { model, usage, choices } = (answer ?? {}) as Partial<typeof answer>
    const choice = choices?.[0]
    await so.hearing([{ model, usage, choices: choice && [{ ...choice, delta: choice.message as Delta }] }], say)
  }
  signal.throwIfAborted()
  return so.done(params)
}

/** What the client makes of an answer is not our fault. */
const refuse = (cause: unknown): never => {
  throw new Failed(cause)
}

/** What comes is whatever another server makes of it. */
type Part = { index?: number; id?: string; function?: { name?: string; arguments?: string } }
type Delta = { content?: unknown; refusal?: unknown; tool_calls?: Part[] | null } | null
type Counted = { prompt_tokens?: unknown; completion_tokens?: unknown } | null
type Chunk = {
  error?: unknown
  model?: unknown
  choices?: ({ delta?: Delta; finish_reason?: unknown } | null)[] | null
  usage?: Counted
}

/** What a model is saying: its words, and its calls as they are put together from their pieces. */
export class Saying {
  content = ''
  #calls: { id: string; name: string; arguments: string }[] = []
  #finish = ''
  #model = ''
  #usage?: { prompt: number; completion: number }
  #size = 0

  /** Takes chunks that came together, and says what is said in them. @throws Senseless, Failed, and what `say` throws */
  async hearing(chunks: Chunk[], say: Say) {
    const words: string[] = []
    try {
      for (const chunk of chunks) words.push(this.hear(chunk ?? {}))
    } finally {
      const said = words.filter(Boolean)
      if (said.length) await say(said)
    }
  }

  /** Takes a chunk, and gives what text is in it. @throws Senseless, Failed */
  hear({ model, choices, usage, error }: Chunk): string {
    if (error) refuse(new Error('It told of an error.'))
    if (typeof model === 'string') this.#model ||= model
    this.#usage = countedIn(usage) ?? this.#usage
    const choice = choices?.[0]
    if (!choice) return ''
    this.#finish = textOf(choice.finish_reason).slice(0, REASON) || this.#finish
    const { content, refusal, tool_calls: parts } = choice.delta ?? {}
    for (const [n, part] of (Array.isArray(parts) ? parts : []).entries()) if (part) this.#take(part, n)
    const text = textOf(content) || textOf(refusal)
    this.content += text
    this.#grow(text)
    return text
  }

  /** What it has said. Without a word about its end, it broke off. @throws Senseless */
  done({ model, ...params }: Params): Reply {
    if (!this.#finish) throw new Senseless('The answer of the AI source broke off, or makes no sense.')
    const calls = this.#calls
      .filter(Boolean)
      .map(({ id, name, ...call }) => ({
        ...{ id, type: 'function' as const },
        function: { name, arguments: call.arguments },
      }))
    const content = keepableText(this.content)
    const usage = this.usage({ model, ...params })
    return { content, calls, finish: this.#finish, model: this.#model || model, usage }
  }

  /** What it took: as it was counted, or else about that. */
  usage(params: Params): Usage {
    if (this.#usage) return { ...this.#usage, estimated: false }
    const calls = this.#calls.length ? tokensIn(JSON.stringify(this.#calls)) : 0
    const prompt = tokensIn(JSON.stringify([params.messages, params.tools]))
    return { prompt, completion: tokensIn(this.content) + calls, estimated: true }
  }

  /** Some servers don't number calls: there, an id or a name begins another one. */
  #take({ index, id, function: told }: Part, n: number) {
    const begins = !!id && id !== this.#calls.at(-1)?.id
    const at = index ?? (begins || !this.#calls.length ? this.#calls.length : Math.max(n, this.#calls.length - 1))
    if (!Number.isInteger(at) || at < 0 || at >= CALLS)
      throw new Senseless('The AI source calls more tools at once than anybody should.')
    this.#calls[at] ??= { id: '', name: '', arguments: '' }
    const call = this.#calls[at]
    call.id ||= textOf(id)
    call.name ||= textOf(told?.name)
    const more = textOf(told?.arguments)
    call.arguments += more
    this.#grow(more)
  }

  #grow({ length }: string) {
    this.#size += length
    if (this.#size > SIZE) throw new Senseless('The answer of the AI source is too long.')
  }
}

const textOf = (value: unknown) => (typeof value === 'string' ? value : '')

/** What a server says that it took; nothing, where that can't be. */
export function countedIn(usage: Counted | undefined) {
  const { prompt_tokens: prompt, completion_tokens: completion } = usage ?? {}
  return isCount(prompt) && isCount(completion) ? { prompt, completion } : undefined
}

const isCount = (value: unknown): value is number =>
  Number.isInteger(value) && Number(value) >= 0 && Number(value) <= TOKENS
