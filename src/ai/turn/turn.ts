import type OpenAI from 'openai'
import type { PublicCtx } from '../../accounts/context'
import { WorkTurns } from '../../accounts/work-turns'
import { toStorableText } from '../../core/body'
import { toChunks } from '../../core/chunks'
import { now, toIsoString } from '../../core/clock'
import { tryParseJson } from '../../core/json'
import type { ChatTarget } from '../agents'
import type { Draft } from '../builders/kinds/index'
import type { Citation } from '../knowledge/retrieval'
import type { CompletionRequest, ToolCall } from '../shapes'
import type { Source } from '../sources/sources'
import type { threads } from '../tables'
import { type OpenAiTool, toOpenAiTool } from '../tools/client-tools'
import type { ToolContext } from '../tools/tool'
import { parseArguments, runToolCall, type Tools } from '../tools/tools'
import { hasOtherParts, type Message } from './conversation'
import { rethrowRefusedParts } from './errors'
import type { ModelHistory } from './history'
import { callModel } from './model-call'
import type { ModelMessage } from './model-messages'
import type { AnswerFormat } from './openai-response'
import { isPlain, type ProviderMessage, toProviderMessage } from './provider-message'
import { type OnText, ReplyBuilder, type TokenUsage } from './reply'

const DEFAULT_TOOL_ROUNDS = 8 // if the integration does not set maxToolRounds
const TOOL_CONCURRENCY = 8 // calls of one round
const MAX_TOOL_RESULT_CHARACTERS = 2 << 20 // characters of all tool results of a turn

export type TurnInput = {
  ctx: PublicCtx
  agent: ChatTarget
  source: Source
  completionRequest: CompletionRequest
  /** The thread of the turn. `newMessages` are the client's messages that are new to it. */
  thread?: typeof threads.$inferSelect
  newMessages: Message[]
  /** Whether the turn begins the thread. */
  startsThread: boolean
  history?: ModelHistory
  /** The messages for the model: instructions, knowledge, history, new messages. */
  messages: ModelMessage[]
  citations: Citation[]
  tools: Tools
  /** The drafts that tools have made for the caller. */
  drafts: Draft[]
  clientTools: Map<string, OpenAiTool>
  toolContext: ToolContext
  abortController: AbortController
  /** The tokens that were used before the turn began, for a summary. */
  usage: TokenUsage
  /** What the caller's API has beyond ours. */
  extras: TurnExtras
}

/** What an API with another format needs of a turn. */
export type TurnExtras = {
  format?: AnswerFormat
  /** Parameters for the model that only this API has. */
  parameters?: object
  /** Which tools the first answer of the model has to call. */
  toolChoice?: OpenAI.ChatCompletionToolChoiceOption
  /** Whether the client learns only of the calls that it has to run, and the server keeps the others. */
  hidesServerCalls?: boolean
}

/** A message of a turn, as threads store it. */
export type TurnMessage = {
  role: 'assistant' | 'tool'
  content: string
  toolCalls?: ToolCall[]
  toolCallId?: string
  incomplete?: boolean
  /** How the provider said it, where that is more than this. */
  said?: ProviderMessage[]
}

type ServerToolResult = { functionCall: ToolCall; result: unknown }

/** The calls that the client has to run before the turn can continue, and the results of server tools. */
export type ClientToolPause = {
  functionCalls: ToolCall[]
  backendResults: ServerToolResult[]
  assistantToolCalls: ToolCall[]
}

/**
 * One turn: the model is called, its tool calls are run, and it is called again, until it calls no tool, or a client tool.
 * The messages and the usage so far are available at any time, also after an error.
 */
export class Turn {
  readonly id = `chatcmpl-${Bun.randomUUIDv7()}`
  readonly startTime = performance.now()
  readonly started = toIsoString(now())
  readonly turnMessages: TurnMessage[] = []
  readonly model: string
  usage: TokenUsage
  finish = 'stop'
  pause?: ClientToolPause
  /** The text that clients see. */
  text = ''
  /** The answers of the model in this turn, as the provider needs them back. */
  #said: ProviderMessage[] = []
  #remainingCharacters = MAX_TOOL_RESULT_CHARACTERS

  constructor(readonly input: TurnInput) {
    this.usage = input.usage
    this.model = input.completionRequest.model || input.agent.target.model || input.source.model
  }

  get signal() {
    return this.input.abortController.signal
  }

  /** Runs the turn to its end, or until a client tool is called. @throws what `callModel` throws */
  async run(stream: boolean, onText: OnText = () => {}): Promise<void> {
    const { agent, messages } = this.input
    const rounds = agent.target.maxToolRounds ?? DEFAULT_TOOL_ROUNDS
    for (let round = 0; ; round++) {
      const reply = await this.#callModel(messages, round, stream, onText)
      const calls = round < rounds ? this.#normalizeCalls(reply.calls) : []
      const message = toProviderMessage(reply, calls)
      this.#said.push(message)
      const said = isPlain(message) ? undefined : [message]
      if (!calls.length) {
        this.finish = reply.finish === 'tool_calls' ? 'stop' : reply.finish
        this.turnMessages.push({ role: 'assistant', content: reply.content, said })
        return
      }
      const [clientCalls, serverCalls] = this.#splitCalls(calls)
      this.turnMessages.push({ role: 'assistant', content: reply.content, toolCalls: calls, incomplete: true, said })
      const results = await this.#runToolCalls(serverCalls)
      this.turnMessages.at(-1 - serverCalls.length)!.incomplete = false
      if (clientCalls.length) return this.#pauseForClient(clientCalls)
      messages.push(message as ModelMessage, ...results)
    }
  }

  async #callModel(messages: ModelMessage[], round: number, stream: boolean, onText: OnText) {
    const { maxToolRounds = DEFAULT_TOOL_ROUNDS } = this.input.agent.target
    const toolParameters = round < maxToolRounds ? this.#toolParameters(round) : {}
    const replyBuilder = new ReplyBuilder(toolParameters.tools?.map((tool) => tool.function.name))
    const params = { ...this.#modelParameters(), messages, ...toolParameters }
    try {
      const reply = await callModel(this.input.source, params, {
        ...{ signal: this.signal, reply: replyBuilder, stream },
        runSlice: new WorkTurns(this.input.ctx).run,
        onText: (words) => {
          this.text += words.join('')
          return onText(words)
        },
      })
      this.#addUsage(reply.usage)
      return reply
    } catch (error) {
      this.#addUsage(replyBuilder.countUsage(params))
      // What was said before a call that broke off is not kept: the caller sends the request again.
      if (replyBuilder.content && (this.signal.aborted || !replyBuilder.callsTools))
        this.turnMessages.push({ role: 'assistant', content: replyBuilder.content, incomplete: true })
      const sent = this.input.newMessages.findLastIndex(({ original }) => original?.messages.some(hasOtherParts))
      return rethrowRefusedParts(error, sent)
    }
  }

  #addUsage(usage: TokenUsage) {
    const { prompt, completion, estimated } = this.usage
    this.usage = {
      prompt: prompt + usage.prompt,
      completion: completion + usage.completion,
      estimated: estimated || usage.estimated,
    }
  }

  #modelParameters() {
    const { completionRequest, agent } = this.input
    const pickSetting = (name: 'temperature' | 'top_p' | 'max_tokens' | 'frequency_penalty' | 'presence_penalty') =>
      completionRequest[name] ?? agent.target[name]
    const { stop, response_format } = completionRequest
    const parameters = {
      model: this.model,
      temperature: pickSetting('temperature'),
      top_p: pickSetting('top_p'),
      max_tokens: pickSetting('max_tokens'),
      frequency_penalty: pickSetting('frequency_penalty'),
      presence_penalty: pickSetting('presence_penalty'),
      ...(stop !== null && { stop }),
      ...(response_format && { response_format: response_format as OpenAI.ResponseFormatJSONSchema }),
      ...this.input.extras.parameters,
    }
    return parameters
  }

  #toolParameters(round: number): { tools?: OpenAiTool[]; tool_choice?: OpenAI.ChatCompletionToolChoiceOption } {
    const { tools: serverTools, clientTools, extras } = this.input
    const tools = [...[...serverTools.values()].map(toOpenAiTool), ...clientTools.values()]
    if (!tools.length) return {}
    return { tools, ...(!round && extras.toolChoice && { tool_choice: extras.toolChoice }) }
  }

  /** Gives each call a unique id, a name and arguments that the client may send again: some servers leave them out. */
  #normalizeCalls(calls: ToolCall[]): ToolCall[] {
    const usedIds = new Set(this.input.messages.flatMap((one) => ('tool_call_id' in one ? [one.tool_call_id] : [])))
    return calls.map((call) => {
      const id = CALL_ID_PATTERN.test(call.id) && !usedIds.has(call.id) ? call.id : `call_${Bun.randomUUIDv7()}`
      usedIds.add(id)
      const name = call.function.name.replace(/[^\w.-]/g, '_').slice(0, 200) || 'nameless'
      const text = toStorableText(call.function.arguments)
      return { ...call, id, function: { name, arguments: text.trim() ? text : '{}' } }
    })
  }

  /** Returns the calls of client tools, and the others. A client call with invalid arguments is answered by the server. */
  #splitCalls(calls: ToolCall[]): [ToolCall[], ToolCall[]] {
    const clientCalls = calls.filter(
      (call) => this.input.clientTools.has(call.function.name) && hasValidArguments(call),
    )
    return [clientCalls, calls.filter((call) => !clientCalls.includes(call))]
  }

  /** Runs calls in batches. Calls that are not finished after an error have a result that says so. */
  async #runToolCalls(calls: ToolCall[]): Promise<ModelMessage[]> {
    const results: TurnMessage[] = calls.map(({ id }) => ({
      role: 'tool',
      content: INTERRUPTED_RESULT,
      toolCallId: id,
    }))
    this.turnMessages.push(...results)
    for (const batch of toChunks([...calls.entries()], TOOL_CONCURRENCY)) {
      this.signal.throwIfAborted()
      const work = batch.map(async ([n, call]) => {
        const content = await runToolCall(this.input.tools, this.input.toolContext, call)
        this.#remainingCharacters -= content.length
        results[n]!.content = this.#remainingCharacters < 0 ? TOO_MUCH_RESULT : content
      })
      await Promise.all(work)
    }
    return results.map(({ content, toolCallId }) => ({ role: 'tool', content, tool_call_id: toolCallId! }))
  }

  /** Stops for the client. The turn is stored as the client knows it: one message that makes all the calls. */
  #pauseForClient(clientCalls: ToolCall[]) {
    const calls = this.turnMessages.flatMap(({ toolCalls = [] }) => toolCalls)
    const results = this.turnMessages.filter(({ role }) => role === 'tool')
    const content = this.turnMessages.map((one) => (one.role === 'assistant' ? one.content : '')).join('')
    const hidesCalls = this.input.extras.hidesServerCalls && calls.length > clientCalls.length
    const said = hidesCalls || !this.#said.every(isPlain) ? this.#said : undefined
    const message = { role: 'assistant' as const, content, toolCalls: calls, said }
    this.turnMessages.splice(0, this.turnMessages.length, message, ...results)
    const backendResults = results.map(({ toolCallId, content }) => ({
      functionCall: calls.find(({ id }) => id === toolCallId)!,
      result: tryParseJson(content, content),
    }))
    this.finish = 'tool_calls'
    this.pause = { functionCalls: clientCalls, backendResults, assistantToolCalls: calls }
  }
}

const CALL_ID_PATTERN = /^[\x21-\x7e]{1,200}$/

const TOO_MUCH_RESULT = JSON.stringify({
  error: {
    code: 'TOO_MUCH',
    message: 'The call succeeded, but the results of the tools are too large to include. Continue with what you know.',
  },
})

const INTERRUPTED_RESULT = JSON.stringify({
  error: { code: 'INTERRUPTED', message: 'The tool call was interrupted; its outcome is unknown.' },
})

function hasValidArguments(call: ToolCall) {
  try {
    parseArguments(call)
    return true
  } catch {
    return false
  }
}
