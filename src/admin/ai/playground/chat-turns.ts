import { newId } from '../../api/new-id'
import type { Thread } from '../../api/schema'
import type { Citation } from './completion-stream'

/** A tool that a model called, and what came back. */
export type ToolStep = { id: string; name: string; input: string; output?: string }

/** A question and its answer. */
export type ChatTurn = {
  id: string
  question: string
  answer: string
  steps: ToolStep[]
  state: 'running' | 'complete' | 'stopped' | 'failed'
  citations?: Citation[]
  tokens?: { prompt: number; completion: number }
  /** In the currency of the prices; only admins see it. */
  cost?: number
  error?: unknown
  time?: string
}

const newTurn = (id: string, question: string, time?: string): ChatTurn => ({
  ...{ id, question, time, answer: '', steps: [], state: 'complete' },
})

/** Returns the messages of a thread as questions with their answers and the tools that were called meanwhile. */
export function toTurns(messages: Thread['messages']): ChatTurn[] {
  const turns: ChatTurn[] = []
  for (const [n, { role, content, tool_calls, tool_call_id, incomplete, timestamp }] of messages.entries()) {
    if (role === 'user' || !turns.length) turns.push(newTurn(String(n), role === 'user' ? content : '', timestamp))
    if (role === 'user') continue
    const turn = turns.at(-1)!
    if (role === 'tool') {
      const step = turn.steps.find(({ id }) => id === tool_call_id)
      if (step) step.output = content
      continue
    }
    turn.answer += turn.answer && content ? `\n\n${content}` : content
    for (const { id, function: called } of tool_calls ?? [])
      turn.steps.push({ id, name: called.name, input: called.arguments })
    if (incomplete) turn.state = 'stopped'
  }
  return turns
}

/** Returns a question whose answer is on its way. */
export const startTurn = (question: string): ChatTurn => ({
  ...newTurn(newId(), question, new Date().toISOString()),
  state: 'running',
})

/** Returns the messages that a model without a thread needs: what was said, without what failed. */
export const toMessages = (turns: ChatTurn[]) =>
  turns
    .filter(({ state }) => state !== 'failed')
    .flatMap(({ question, answer }) => [
      { role: 'user' as const, content: question },
      ...(answer ? [{ role: 'assistant' as const, content: answer }] : []),
    ])
