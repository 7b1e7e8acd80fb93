import type { Turn } from './turn'

/** What it took, as OpenAI's API has it. */
const toUsage = ({ usage: { prompt, completion } }: Turn) => ({
  prompt_tokens: prompt,
  completion_tokens: completion,
  total_tokens: prompt + completion,
})

/** What beside the words belongs to the end of an answer. */
const toExtras = ({ input: { citations, drafts, thread, startsThread } }: Turn) => ({
  ...(citations.length && { citations }),
  ...(drafts.length && { drafts }),
  ...(startsThread && { threadId: thread!._id }),
})

const toClientToolCalls = (turn: Turn) => ({
  ...{ type: 'client_tool_calls', ...turn.pause!, usage: toUsage(turn), ...toExtras(turn) },
})

/** What a chunk and a completion begin with. */
export const toResponseHead = ({ id, model, started }: Turn, object: 'chat.completion' | 'chat.completion.chunk') => ({
  ...{ id, object, created: Math.floor(Date.parse(started) / 1000), model },
})

/** What a turn came to, as OpenAI's API has it; or what the client's tools are to do. */
export function toCompletion(turn: Turn): object {
  const { text, finish } = turn
  if (turn.pause) return toClientToolCalls(turn)
  const choices = [{ index: 0, message: { role: 'assistant', content: text }, finish_reason: finish }]
  return { ...toResponseHead(turn, 'chat.completion'), choices, usage: toUsage(turn), ...toExtras(turn) }
}

/** The end of a stream: its last chunk, or what the client's tools are to do. */
export function toFinalEvent(turn: Turn): object {
  if (turn.pause) return toClientToolCalls(turn)
  const choices = [{ index: 0, delta: {}, finish_reason: turn.finish }]
  return { ...toResponseHead(turn, 'chat.completion.chunk'), choices, usage: toUsage(turn), ...toExtras(turn) }
}
