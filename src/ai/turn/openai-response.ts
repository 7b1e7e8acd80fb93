import type { Turn } from './turn'

/** How an API tells its clients of a turn. */
export type AnswerFormat = {
  /** Returns the fields that chunks and completions begin with. */
  toHead(turn: Turn, object: 'chat.completion' | 'chat.completion.chunk'): object
  toCompletion(turn: Turn): object
  /** Returns the last events of a stream. */
  toFinalEvents(turn: Turn): object[]
  toErrorEvent(error: { status: number; code: string; message: string }): object
}

/** Returns the usage of a turn in the format of OpenAI's API. */
export const toUsage = ({ usage: { prompt, completion } }: Turn) => ({
  prompt_tokens: prompt,
  completion_tokens: completion,
  total_tokens: prompt + completion,
})

/** Returns the fields that an answer has beyond those of OpenAI's API. */
export const toExtras = ({ input: { citations, drafts, thread, startsThread } }: Turn) => ({
  ...(citations.length && { citations }),
  ...(drafts.length && { drafts }),
  ...(startsThread && { threadId: thread!._id }),
})

const toClientToolCalls = (turn: Turn) => ({
  ...{ type: 'client_tool_calls', ...turn.pause!, usage: toUsage(turn), ...toExtras(turn) },
})

/** Returns the fields that chunks and completions begin with. */
const toResponseHead: AnswerFormat['toHead'] = ({ id, model, started }, object) => ({
  ...{ id, object, created: Math.floor(Date.parse(started) / 1000), model },
})

/** Returns the completion of a turn in the format of OpenAI's API, or the calls of client tools. */
function toCompletion(turn: Turn): object {
  const { text, finish } = turn
  if (turn.pause) return toClientToolCalls(turn)
  const choices = [{ index: 0, message: { role: 'assistant', content: text }, finish_reason: finish }]
  return { ...toResponseHead(turn, 'chat.completion'), choices, usage: toUsage(turn), ...toExtras(turn) }
}

/** Returns the last event of a stream: its last chunk, or the calls of client tools. */
function toFinalEvent(turn: Turn): object {
  if (turn.pause) return toClientToolCalls(turn)
  const choices = [{ index: 0, delta: {}, finish_reason: turn.finish }]
  return { ...toResponseHead(turn, 'chat.completion.chunk'), choices, usage: toUsage(turn), ...toExtras(turn) }
}

/** The format of our own routes: that of OpenAI's API, with the calls of client tools as an answer of their own. */
export const ownFormat: AnswerFormat = {
  toHead: toResponseHead,
  toCompletion,
  toFinalEvents: (turn) => [toFinalEvent(turn)],
  toErrorEvent: ({ code, message }) => ({ error: { code, message } }),
}
