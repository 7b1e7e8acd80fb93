import { AtollError } from './errors'
import { readEvents } from './streams'
import { type Init, type Transport, toSegment } from './transport'
import type { Page } from './workspaces'

export type AtollAgent = { _id: string; name: string | null; description: string; active: boolean; tools: string[] }
type ToolCall = { id: string; type: 'function'; function: { name: string; arguments: string } }
export type ChatMessage = {
  role: 'user' | 'assistant' | 'system' | 'tool'
  content?: string | null
  name?: string
  tool_calls?: ToolCall[]
  tool_call_id?: string
}
export type AtollThread = {
  _id: string
  integration: string
  title: string | null
  /** Only where one thread is read. */
  messages: (ChatMessage & { timestamp: string; incomplete?: true })[]
  created: string
  updated: string
}
/** A tool that the client runs: `schema` is the JSON Schema of its input. What `run` throws is told to the model. */
export type ClientTool = {
  description: string
  schema?: Record<string, unknown>
  run(input: Record<string, unknown>): unknown
}
export type ChatRequest = {
  /** A text is one message of the user. */
  messages: string | ChatMessage[]
  /** Goes on with a thread, which remembers the messages. */
  threadId?: string
  tools?: Record<string, ClientTool>
  model?: string
  temperature?: number
  max_tokens?: number
  /** More for the model to know, at most 16 KiB of JSON. */
  context?: Record<string, unknown>
  rules?: string[]
  response_format?: Record<string, unknown>
}
export type ChatUsage = { prompt_tokens: number; completion_tokens: number; total_tokens: number }
type ChatEnd = {
  finishReason: string
  usage: ChatUsage
  threadId?: string
  citations?: { fileId: string; fileName: string | null; chunk: number }[]
}
export type ChatPart =
  | { type: 'text'; text: string }
  /** A tool of the client has run. */
  | { type: 'tool'; name: string; input: Record<string, unknown>; result: unknown }
  | ({ type: 'end' } & ChatEnd)
type ToolPause = { type: 'client_tool_calls'; functionCalls: ToolCall[]; assistantToolCalls: ToolCall[] }
type Chunk = {
  choices: { delta: { content?: string }; finish_reason: string | null }[]
  usage?: ChatUsage
  threadId?: string
  citations?: NonNullable<ChatEnd['citations']>
}

const MAX_TOOL_ROUNDS = 16

/** Agents, and the threads of the caller with them. */
export function createAi({ get, post, remove, send }: Transport) {
  const agentPath = (id: string) => `/api/ai/agents/${toSegment(id)}`

  async function* stream(agent: string, request: ChatRequest, init: Init = {}): AsyncGenerator<ChatPart, void> {
    const { tools = {}, messages: given, ...options } = request
    const messages: ChatMessage[] = typeof given === 'string' ? [{ role: 'user', content: given }] : [...given]
    const clientTools = Object.entries(tools).map(([name, { description, schema }]) => ({
      ...{ name, description },
      ...(schema && { schema }),
    }))
    for (let round = 0; round <= MAX_TOOL_ROUNDS; round++) {
      const json = { ...options, messages, stream: true, ...(clientTools.length && { clientTools }) }
      const headers = { accept: 'text/event-stream', ...init.headers }
      const answer = await send('POST', `${agentPath(agent)}/chat`, { ...init, json, headers, isStreamed: true })
      let [pause, end, text] = [undefined as ToolPause | undefined, undefined as ChatEnd | undefined, '']
      for await (const { data } of readEvents(answer.chunks())) {
        if (data === '[DONE]') break
        const chunk: Chunk | ToolPause | { error: AtollError } = JSON.parse(data)
        if ('error' in chunk) throw new AtollError(502, chunk.error.code, chunk.error.message, chunk.error.details)
        if ('type' in chunk) pause = chunk
        else {
          const { delta, finish_reason } = chunk.choices[0]!
          if (delta.content) yield { type: 'text', text: delta.content }
          text += delta.content ?? ''
          if (finish_reason) end = toEnd(chunk, finish_reason)
        }
      }
      if (end) return void (yield { type: 'end', ...end })
      if (!pause) throw new TypeError('The connection was lost before the answer was complete.')
      messages.push({ role: 'assistant', content: text, tool_calls: pause.assistantToolCalls })
      for (const call of pause.functionCalls) {
        const { name, input, result } = await runTool(tools, call)
        messages.push({ role: 'tool', tool_call_id: call.id, content: toText(result) })
        yield { type: 'tool', name, input, result }
      }
    }
    throw new RangeError(`The model called tools more than ${MAX_TOOL_ROUNDS} times.`)
  }

  return {
    /**
     * The agents that the caller may use.
     * @example
     * const [agent] = await client.ai.agents()
     * console.log(agent?.name, agent?.description)
     */
    agents: (query: Page & { active?: boolean } = {}, init: Init = {}) =>
      get<AtollAgent[]>('/api/ai/agents', query, init),
    /**
     * Asks an agent and waits for the whole answer. Tools of the client run in between.
     * @example
     * const { text, usage } = await client.ai.chat(agent._id, {
     *   messages: 'What time is it?',
     *   tools: { get_time: { description: 'The time of the user', run: () => new Date().toISOString() } },
     * })
     */
    chat: async (agent: string, request: ChatRequest, init: Init = {}): Promise<ChatEnd & { text: string }> => {
      let text = ''
      for await (const part of stream(agent, request, init)) {
        if (part.type === 'text') text += part.text
        if (part.type !== 'end') continue
        const { type, ...end } = part
        return { text, ...end }
      }
      throw new TypeError('The answer has no end.') // the stream would have thrown
    },
    /**
     * Asks an agent, and yields its words as they come.
     * @example
     * let text = ''
     * for await (const part of client.ai.stream(agent._id, { messages: 'Tell me a story.' })) {
     *   if (part.type === 'text') text += part.text
     * }
     */
    stream,
    /**
     * The parts of an agent's knowledge that fit a question best.
     * @example
     * const excerpts = await client.ai.search(agent._id, 'How long may I keep a book?')
     */
    search: (agent: string, question: string, init: Init = {}) =>
      post<{ fileId: string; fileName: string | null; chunk: number; text: string; score: number }[]>(
        `${agentPath(agent)}/search`,
        { question },
        init,
      ),

    /** The threads of the caller. */
    threads: {
      /**
       * The threads, of one agent or of all, without messages.
       * @example
       * const threads = await client.ai.threads.list({ integration: agent._id, sort: '-created', limit: 10 })
       */
      list: (query: Page & { integration?: string } = {}, init: Init = {}) =>
        get<AtollThread[]>('/api/ai/threads', query, init),
      /**
       * A thread with all its messages.
       * @example
       * const thread = await client.ai.threads.create({ integration: agent._id })
       * await client.ai.chat(agent._id, { messages: 'Hello', threadId: thread._id })
       * const { messages } = await client.ai.threads.get(thread._id)
       */
      get: (id: string, init: Init = {}) => get<AtollThread>(`/api/ai/threads/${toSegment(id)}`, {}, init),
      /**
       * Starts a thread with an agent.
       * @example
       * const thread = await client.ai.threads.create({ integration: agent._id, title: 'Books' })
       */
      create: (thread: { integration: string; title?: string }, init: Init = {}) =>
        post<AtollThread>('/api/ai/threads', thread, init),
      /**
       * Removes a thread.
       * @example
       * for (const thread of await client.ai.threads.list()) await client.ai.threads.remove(thread._id)
       */
      remove: (id: string, init: Init = {}) => remove(`/api/ai/threads/${toSegment(id)}`, init),
    },
  }
}

const toEnd = ({ usage, threadId, citations }: Chunk, finishReason: string): ChatEnd => ({
  finishReason,
  usage: usage ?? { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 },
  ...(threadId && { threadId }),
  ...(citations && { citations }),
})

async function runTool(tools: Record<string, ClientTool>, { function: { name, arguments: text } }: ToolCall) {
  let input: Record<string, unknown> = {}
  try {
    input = JSON.parse(text || '{}')
    return { name, input, result: await tools[name]!.run(input) }
  } catch (error) {
    return { name, input, result: { error: error instanceof Error ? error.message : String(error) } }
  }
}

const toText = (result: unknown) => (typeof result === 'string' ? result : (JSON.stringify(result) ?? 'null'))
