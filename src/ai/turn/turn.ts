import type OpenAI from 'openai'
import type { OpenCtx } from '../../accounts/guard'
import { keepableText } from '../../core/body'
import { iso, now } from '../../core/clock'
import type { Answering } from '../agents'
import type { Draft } from '../builders/drafts'
import type { Citation } from '../knowledge/retrieval'
import type { Asked, NewMessage, ToolCall } from '../shapes'
import type { Source } from '../sources/sources'
import type { threads } from '../tables'
import { type Told, told } from '../tools/client'
import type { Calling } from '../tools/tool'
import { inputOf, resultOf, type Tools } from '../tools/tools'
import type { Message } from './conversation'
import type { Remembered } from './history'
import { ask, type Say, Saying, type Usage } from './model'

export const ROUNDS = 8 // unless the integration says otherwise
const AT_ONCE = 8 // tools of a round
const RESULTS = 2 << 20 // characters that tools may answer in a turn

/** What a turn begins with. */
export type Begun = {
  ctx: OpenCtx
  agent: Answering
  source: Source
  asked: Asked
  /** The conversation that it belongs to, with what of the client's messages is new to it. */
  thread?: typeof threads.$inferSelect
  fresh: NewMessage[]
  /** Whether the conversation begins with it. */
  begins: boolean
  remembered?: Remembered
  /** What the model is told: instructions, history, messages. */
  messages: Message[]
  citations: Citation[]
  tools: Tools
  /** What its tools have drafted for whoever asks. */
  drafts: Draft[]
  clientTools: Map<string, Told>
  calling: Calling
  ending: AbortController
  /** What was used before it began, for a summary. */
  usage: Usage
}

/** Something that was said in a turn, as threads keep it. */
export type Said = {
  role: 'assistant' | 'tool'
  content: string
  toolCalls?: ToolCall[]
  toolCallId?: string
  incomplete?: boolean
}

type Done = { functionCall: ToolCall; result: unknown }

/** What a client is asked to do before the turn can go on. */
export type Pause = { functionCalls: ToolCall[]; backendResults: Done[]; assistantToolCalls: ToolCall[] }

/**
 * One turn: a model is asked, its calls of tools are answered, and it is asked again, until it calls none, or one of the
 * client's. What was said, and what it took, is known at any time, also of one that breaks off.
 */
export class Turn {
  readonly id = `chatcmpl-${Bun.randomUUIDv7()}`
  readonly began = performance.now()
  readonly started = iso(now())
  readonly said: Said[] = []
  readonly model: string
  usage: Usage
  finish = 'stop'
  pause?: Pause
  /** All that clients are shown of what was said. */
  text = ''
  #room = RESULTS

  constructor(readonly of: Begun) {
    this.usage = of.usage
    this.model = of.asked.model || of.agent.target.model || of.source.model
  }

  get signal() {
    return this.of.ending.signal
  }

  /** Runs it to its end, or until the client is to go on. @throws what `problemOf` knows, or that it was aborted */
  async run(stream: boolean, say: Say = () => {}): Promise<void> {
    const { agent, messages } = this.of
    const rounds = agent.target.maxToolRounds ?? ROUNDS
    for (let round = 0; ; round++) {
      const reply = await this.#ask(messages, round < rounds, stream, say)
      const calls = round < rounds ? this.#named(reply.calls) : []
      if (!calls.length) {
        this.finish = reply.finish === 'tool_calls' ? 'stop' : reply.finish
        this.said.push({ role: 'assistant', content: reply.content })
        return
      }
      const [theirs, ours] = this.#parted(calls)
      this.said.push({ role: 'assistant', content: reply.content, toolCalls: calls, incomplete: true })
      const results = await this.#answer(ours)
      this.said.at(-1 - ours.length)!.incomplete = false
      if (theirs.length) return this.#wait(theirs)
      messages.push({ role: 'assistant', content: reply.content || null, tool_calls: calls }, ...results)
    }
  }

  async #ask(messages: Message[], tools: boolean, stream: boolean, say: Say) {
    const so = new Saying()
    const params = { ...this.#parameters(), messages, ...(tools && this.#tools()) }
    try {
      const reply = await ask(this.of.source, params, {
        ...{ signal: this.signal, so, stream },
        say: (words) => {
          this.text += words.join('')
          return say(words)
        },
      })
      this.#use(reply.usage)
      return reply
    } catch (error) {
      this.#use(so.usage(params))
      if (so.content) this.said.push({ role: 'assistant', content: so.content, incomplete: true })
      throw error
    }
  }

  #use(usage: Usage) {
    const { prompt, completion, estimated } = this.usage
    this.usage = {
      prompt: prompt + usage.prompt,
      completion: completion + usage.completion,
      estimated: estimated || usage.estimated,
    }
  }

  #parameters() {
    const { asked, agent } = this.of
    const given = (name: 'temperature' | 'top_p' | 'max_tokens' | 'frequency_penalty' | 'presence_penalty') =>
      asked[name] ?? agent.target[name]
    const { stop, response_format } = asked
    const parameters = {
      model: this.model,
      temperature: given('temperature'),
      top_p: given('top_p'),
      max_tokens: given('max_tokens'),
      frequency_penalty: given('frequency_penalty'),
      presence_penalty: given('presence_penalty'),
      ...(stop !== null && { stop }),
      ...(response_format && { response_format: response_format as OpenAI.ResponseFormatJSONSchema }),
    }
    return parameters
  }

  #tools() {
    const tools = [...[...this.of.tools.values()].map(told), ...this.of.clientTools.values()]
    return tools.length ? { tools } : {}
  }

  /** Each call has an id of its own, a name and arguments, that the client may send again: some servers give none. */
  #named(calls: ToolCall[]): ToolCall[] {
    const known = new Set(this.of.messages.flatMap((one) => ('tool_call_id' in one ? [one.tool_call_id] : [])))
    return calls.map((call) => {
      const id = ID.test(call.id) && !known.has(call.id) ? call.id : `call_${Bun.randomUUIDv7()}`
      known.add(id)
      const name = call.function.name.replace(/[^\w.-]/g, '_').slice(0, 200) || 'nameless'
      const text = keepableText(call.function.arguments)
      return { ...call, id, function: { name, arguments: text.trim() ? text : '{}' } }
    })
  }

  /** Those of the client's tools, and the others; a call that the client could not read is answered here. */
  #parted(calls: ToolCall[]): [ToolCall[], ToolCall[]] {
    const theirs = calls.filter((call) => this.of.clientTools.has(call.function.name) && isReadable(call))
    return [theirs, calls.filter((call) => !theirs.includes(call))]
  }

  /** Answers calls, some at a time. What is not answered when it breaks off is said to be so. */
  async #answer(calls: ToolCall[]): Promise<Message[]> {
    const results: Said[] = calls.map(({ id }) => ({ role: 'tool', content: INTERRUPTED, toolCallId: id }))
    this.said.push(...results)
    for (let n = 0; n < calls.length; n += AT_ONCE) {
      this.signal.throwIfAborted()
      const some = calls.slice(n, n + AT_ONCE)
      const work = some.map(async (call, i) => {
        const content = await resultOf(this.of.tools, this.of.calling, call)
        this.#room -= content.length
        results[n + i]!.content = this.#room < 0 ? TOO_MUCH : content
      })
      await Promise.all(work)
    }
    return results.map(({ content, toolCallId }) => ({ role: 'tool', content, tool_call_id: toolCallId! }))
  }

  /** The client goes on from here, and knows the turn as one message that calls all its tools: so it is kept. */
  #wait(theirs: ToolCall[]) {
    const calls = this.said.flatMap(({ toolCalls = [] }) => toolCalls)
    const results = this.said.filter(({ role }) => role === 'tool')
    const content = this.said.map((one) => (one.role === 'assistant' ? one.content : '')).join('')
    this.said.splice(0, this.said.length, { role: 'assistant', content, toolCalls: calls }, ...results)
    const backendResults = results.map(({ toolCallId, content }) => ({
      functionCall: calls.find(({ id }) => id === toolCallId)!,
      result: parsed(content),
    }))
    this.finish = 'tool_calls'
    this.pause = { functionCalls: theirs, backendResults, assistantToolCalls: calls }
  }
}

const ID = /^[\x21-\x7e]{1,200}$/

const TOO_MUCH = JSON.stringify({
  error: { code: 'TOO_MUCH', message: 'It was done, but tools have answered too much. Go on with what you know.' },
})

const INTERRUPTED = JSON.stringify({ error: { code: 'INTERRUPTED', message: 'Nobody knows whether it was done.' } })

function isReadable(call: ToolCall) {
  try {
    inputOf(call)
    return true
  } catch {
    return false
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
