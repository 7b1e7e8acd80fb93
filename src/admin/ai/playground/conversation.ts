import { useEffect, useRef, useState } from 'react'
import { api, fetchData } from '../../api/client'
import { queryClient } from '../../api/queries'
import type { CompletionRequest } from '../../api/schema'
import { fetchLatestUsage, threadQuery } from '../ai-queries'
import { type ChatTurn, startTurn, toMessages, toTurns } from './chat-turns'
import { streamCompletion } from './completion-stream'
import type { ChatSettings } from './settings'

type ConversationOptions = {
  agent: string
  source: string
  thread: string
  settings: ChatSettings
  initialTurns: ChatTurn[]
  /** Whether the user may read what answers cost. */
  seesCost: boolean
  onThread(thread: string): void
}

/** Returns the parameters that a person chose for their questions. */
const toParameters = ({ model, temperature, maxTokens }: ChatSettings): Partial<CompletionRequest> => ({
  ...(model && { model }),
  ...(temperature !== undefined && { temperature }),
  ...(maxTokens !== undefined && { max_tokens: maxTokens }),
})

/** A conversation with an agent, which the server keeps as a thread, or with a model, which only this page keeps. */
export function useConversation(options: ConversationOptions) {
  const { agent, source, settings, seesCost } = options
  const [turns, setTurns] = useState(options.initialTurns)
  const thread = useRef(options.thread)
  const running = useRef<AbortController>(undefined)
  const isMounted = useRef(true)
  useEffect(() => {
    isMounted.current = true
    return () => {
      isMounted.current = false
      // An agent's answer goes on, because its thread keeps it; nobody gets to see any other.
      if (!agent) running.current?.abort()
    }
  }, [agent])
  const changeTurn = (id: string, change: (turn: ChatTurn) => Partial<ChatTurn>) =>
    setTurns((all) => all.map((turn) => (turn.id === id ? { ...turn, ...change(turn) } : turn)))

  const openThread = async () => {
    if (thread.current) return
    const { _id } = await fetchData(api.POST('/api/ai/threads', { body: { integration: agent } }))
    thread.current = _id
    if (isMounted.current) options.onThread(_id)
  }
  /** The stream does not tell which tools were called; the thread does. */
  const readSteps = async ({ question }: ChatTurn) => {
    const { messages } = await queryClient.fetchQuery({ ...threadQuery(thread.current), staleTime: 0 })
    void queryClient.invalidateQueries({ queryKey: ['threads', 'list'] })
    const last = toTurns(messages).at(-1)
    // A thread gets what was stopped a moment later.
    return last?.question === question ? last.steps : []
  }
  const readCost = async () => (await fetchLatestUsage(thread.current ? { thread: thread.current } : { source }))?.cost
  const complete = async (turn: ChatTurn, before: ChatTurn[], signal: AbortSignal) => {
    if (agent) await openThread()
    const messages = agent ? toMessages([turn]) : toMessages([...before, turn])
    const system = !agent && settings.systemPrompt ? [{ role: 'system' as const, content: settings.systemPrompt }] : []
    const target = agent ? { agent, thread: thread.current } : { source }
    const onText = (words: string) => changeTurn(turn.id, ({ answer }) => ({ answer: answer + words }))
    const body = { ...toParameters(settings), messages: [...system, ...messages] }
    return streamCompletion(target, body, { signal, onText })
  }
  const send = async (question: string, before = turns) => {
    const turn = startTurn(question)
    const controller = new AbortController()
    running.current = controller
    setTurns([...before, turn])
    let isComplete = false
    try {
      const { usage, citations } = await complete(turn, before, controller.signal)
      const tokens = usage && { prompt: usage.prompt_tokens, completion: usage.completion_tokens }
      changeTurn(turn.id, () => ({ state: 'complete', citations, tokens }))
      isComplete = true
    } catch (error) {
      const isStopped = controller.signal.aborted
      changeTurn(turn.id, () => (isStopped ? { state: 'stopped' } : { state: 'failed', error }))
    } finally {
      if (running.current === controller) running.current = undefined
    }
    // What an answer cost and did is beside the point when it cannot be read.
    const steps = await (thread.current && agent ? readSteps(turn).catch(() => undefined) : undefined)
    const cost = await (seesCost && isComplete ? readCost().catch(() => undefined) : undefined)
    changeTurn(turn.id, (now) => ({ steps: steps ?? now.steps, cost }))
  }
  return {
    turns,
    isRunning: turns.some(({ state }) => state === 'running'),
    send: (question: string) => send(question),
    stop: () => running.current?.abort(),
    /** Asks the last question again. */
    retry: () => {
      const last = turns.at(-1)
      // A thread keeps what was answered.
      if (last) void send(last.question, agent && last.state !== 'failed' ? turns : turns.slice(0, -1))
    },
  }
}
