import type { Turn } from './turn'

/** What it took, as OpenAI's API has it. */
const usageOf = ({ usage: { prompt, completion } }: Turn) => ({
  prompt_tokens: prompt,
  completion_tokens: completion,
  total_tokens: prompt + completion,
})

/** What beside the words belongs to the end of an answer. */
const addition = ({ of: { citations, drafts, thread, begins } }: Turn) => ({
  ...(citations.length && { citations }),
  ...(drafts.length && { drafts }),
  ...(begins && { threadId: thread!._id }),
})

const pauseOf = (turn: Turn) => ({
  ...{ type: 'client_tool_calls', ...turn.pause!, usage: usageOf(turn), ...addition(turn) },
})

/** What a chunk and a completion begin with. */
export const headOf = ({ id, model, started }: Turn, object: 'chat.completion' | 'chat.completion.chunk') => ({
  ...{ id, object, created: Math.floor(Date.parse(started) / 1000), model },
})

/** What a turn came to, as OpenAI's API has it; or what the client's tools are to do. */
export function completion(turn: Turn): object {
  const { text, finish } = turn
  if (turn.pause) return pauseOf(turn)
  const choices = [{ index: 0, message: { role: 'assistant', content: text }, finish_reason: finish }]
  return { ...headOf(turn, 'chat.completion'), choices, usage: usageOf(turn), ...addition(turn) }
}

/** The end of a stream: its last chunk, or what the client's tools are to do. */
export function lastEvent(turn: Turn): object {
  if (turn.pause) return pauseOf(turn)
  const choices = [{ index: 0, delta: {}, finish_reason: turn.finish }]
  return { ...headOf(turn, 'chat.completion.chunk'), choices, usage: usageOf(turn), ...addition(turn) }
}
