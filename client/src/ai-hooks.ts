import { useQuery } from '@tanstack/react-query'
import { useEffect, useRef, useState } from 'react'
import type { ChatMessage, ChatRequest, Client, Kinds } from './index'
import type { QuerySettings } from './query-settings'

/** Hooks for agents. */
export const createAiHooks = <B extends Kinds<B>>(client: Client<B>, scope: string) => ({
  /**
   * The agents that the user may use, and that are active.
   * @example
   * const { data: [agent] = [] } = useAgents()
   */
  useAgents: (settings: QuerySettings = {}) =>
    useQuery({
      queryKey: [scope, 'agents'],
      queryFn: ({ signal }) => client.ai.agents({ active: true }, { signal }),
      ...settings,
    }),

  /**
   * A conversation with an agent, whose answers grow while they arrive.
   * @example
   * const { messages, send, isAnswering } = useChat('agent-id')
   * const ask = () => send('Tell me a story.')
   */
  useChat: (agent: string, options: Omit<ChatRequest, 'messages'> = {}) => useConversation(client, agent, options),
})

function useConversation<B extends Kinds<B>>(
  client: Client<B>,
  agent: string,
  { threadId: givenThread, ...options }: Omit<ChatRequest, 'messages'>,
) {
  const [messages, setMessages] = useState<ChatMessage[]>([])
  const [error, setError] = useState<unknown>()
  const [isAnswering, setAnswering] = useState(false)
  const current = useRef<{ controller?: AbortController; threadId?: string }>({})
  const stop = () => current.current.controller?.abort()
  useEffect(() => () => current.current.controller?.abort(), [])

  /** Sends a message and resolves when it was answered, or stopped. */
  async function send(content: string) {
    stop()
    const controller = new AbortController()
    current.current.controller = controller
    const threadId = givenThread ?? current.current.threadId
    const question: ChatMessage = { role: 'user', content }
    const shown = [...messages, question]
    const show = (answer: string) => setMessages([...shown, { role: 'assistant', content: answer }])
    setMessages(shown)
    setError(undefined)
    setAnswering(true)
    try {
      let text = ''
      // A thread has the earlier messages.
      const request = { ...options, messages: threadId ? [question] : shown, ...(threadId && { threadId }) }
      for await (const part of client.ai.stream(agent, request, { signal: controller.signal })) {
        if (part.type === 'text') {
          text += part.text
          show(text)
        }
        if (part.type === 'end' && part.threadId) current.current.threadId = part.threadId
      }
    } catch (failure) {
      if (!controller.signal.aborted) setError(failure)
    } finally {
      if (current.current.controller === controller) setAnswering(false)
    }
  }
  return { messages, send, stop, isAnswering, error }
}
