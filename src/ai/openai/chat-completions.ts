import type { Ctx } from '../../accounts/context'
import { toOpenAiError } from '../../core/openai-error'
import { badRequest, Problem } from '../../core/problem'
import type { ChatTarget } from '../agents'
import type { CompletionRequest, ToolCall } from '../shapes'
import { complete } from '../turn/completion'
import { toConversationMessage } from '../turn/conversation'
import { type AnswerFormat, ownFormat, toExtras, toUsage } from '../turn/openai-response'
import type { Turn, TurnExtras } from '../turn/turn'
import { getAgentByModel } from './models'
import type { ChatCompletionRequest } from './shapes'

/**
 * Returns the completion of the agent that is the model, as OpenAI's API does.
 * @throws what `complete` and `getAgentByModel` throw, but 402 for a budget that is used up
 */
export async function createChatCompletion(ctx: Ctx, body: ChatCompletionRequest, request: Request) {
  const agent = await getAgentByModel(ctx, body.model)
  const extras = toTurnExtras(body)
  return complete(ctx, agent, toCompletionRequest(agent, body), request, { extras }).catch(rethrowSpentBudget)
}

/** Clients repeat a request that gets 429; a budget stays used up. */
export function rethrowSpentBudget(error: unknown): never {
  if (!(error instanceof Problem && error.code === 'BUDGET_EXCEEDED')) throw error
  const { details } = error.more as { details: { until?: string } }
  if (!details.until) throw error
  throw new Problem(402, 'BUDGET_EXCEEDED', error.message, { details })
}

/** Returns the request of our own routes. System messages become rules below the prompt of the agent. */
function toCompletionRequest(
  { target }: ChatTarget,
  { messages, tool_choice, max_tokens, max_completion_tokens, ...body }: ChatCompletionRequest,
): CompletionRequest {
  const {
    model: _,
    stream_options: __,
    parallel_tool_calls: ___,
    reasoning_effort: ____,
    seed: _____,
    n,
    ...rest
  } = body
  const isRule = ({ role }: ChatCompletionRequest['messages'][number]) => role === 'system' || role === 'developer'
  const ruleIndex = messages.findIndex(isRule)
  if (ruleIndex >= 0 && target.forbidClientRules)
    badRequest({ path: `/messages/${ruleIndex}/role`, message: 'This agent accepts no system messages.' })
  const conversation = messages.filter((message) => !isRule(message))
  if (!conversation.length) badRequest({ path: '/messages', message: 'Send a message that is no system message.' })
  return {
    ...rest,
    stream: body.stream ?? false,
    messages: conversation,
    rules: messages.filter(isRule).flatMap((message) => toConversationMessage(message).content || []),
    max_tokens: max_completion_tokens ?? max_tokens,
    tools: tool_choice === 'none' ? [] : rest.tools,
  }
}

function toTurnExtras(body: ChatCompletionRequest): TurnExtras {
  const { model, stream_options, tool_choice, parallel_tool_calls, reasoning_effort, seed } = body
  const parameters = Object.entries({ parallel_tool_calls, reasoning_effort, seed })
  return {
    format: createOpenAiFormat(model, !!stream_options?.include_usage),
    parameters: Object.fromEntries(parameters.filter(([, value]) => value !== null && value !== undefined)),
    toolChoice: toToolChoice(tool_choice),
    hidesServerCalls: true,
  }
}

/** `none` and `auto` are no choice: the tools of the agent are its own matter. */
const toToolChoice = (choice: ChatCompletionRequest['tool_choice']): TurnExtras['toolChoice'] =>
  choice === 'required' ? 'required' : typeof choice === 'object' && choice ? choice : undefined

/** The format of OpenAI's API. The caller knows the model by the name that it asked for. */
function createOpenAiFormat(model: string, includesUsage: boolean): AnswerFormat {
  const toHead: AnswerFormat['toHead'] = (turn, object) => ({ ...ownFormat.toHead(turn, object), model })
  const toChunk = (turn: Turn, more: object) => ({ ...toHead(turn, 'chat.completion.chunk'), ...more })
  const toChoice = (delta: object, finish_reason: string | null) => ({ choices: [{ index: 0, delta, finish_reason }] })
  return {
    toHead,
    toCompletion(turn) {
      const calls = turn.pause?.functionCalls
      const content = turn.text || (calls ? null : '')
      const message = {
        role: 'assistant',
        content,
        refusal: null,
        ...(calls && { tool_calls: calls.map(toPlainCall) }),
      }
      const choices = [{ index: 0, message, logprobs: null, finish_reason: turn.finish }]
      return { ...toHead(turn, 'chat.completion'), choices, usage: toUsage(turn), ...toExtras(turn) }
    },
    toFinalEvents(turn) {
      const calls = turn.pause?.functionCalls ?? []
      // Each call is whole in one piece: some clients glue the ids and names of several.
      const callDeltas = calls.map((call, index) => ({
        ...(!turn.text && !index && { role: 'assistant', content: null }),
        tool_calls: [{ index, ...toPlainCall(call) }],
      }))
      return [
        ...callDeltas.map((delta) => toChunk(turn, toChoice(delta, null))),
        toChunk(turn, { ...toChoice({}, turn.finish), ...toExtras(turn) }),
        ...(includesUsage ? [toChunk(turn, { choices: [], usage: toUsage(turn) })] : []),
      ]
    },
    toErrorEvent: (error) => ({ error: toOpenAiError(error), code: error.code, message: error.message }),
  }
}

const toPlainCall = ({ id, type, function: { name, arguments: text } }: ToolCall) => ({
  ...{ id, type, function: { name, arguments: text } },
})
