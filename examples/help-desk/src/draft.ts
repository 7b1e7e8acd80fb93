import { useMutation } from '@tanstack/react-query'
import { useEffect, useRef } from 'react'
import { client, hooks, type Ticket } from './atoll'

type Question = { ticket: Ticket; comments: string[] }

/** Drafts answers by the agent, which only support may use. `show` gets the text each time it has grown. */
export function useDraft(show: (text: string) => void) {
  const { data: agents = [] } = hooks.useAgents()
  const agent = agents.find(({ name }) => name === 'Drafts')
  const controller = useRef<AbortController>(undefined)
  useEffect(() => () => controller.current?.abort(), [])

  const { mutate, isPending, error } = useMutation({
    mutationFn: async ({ ticket, comments }: Question) => {
      controller.current = new AbortController()
      const { signal } = controller.current
      const messages = [`# ${ticket.subject}`, ticket.text, ...comments].join('\n\n')
      let text = ''
      try {
        for await (const part of client.ai.stream(agent!._id, { messages }, { signal })) {
          if (part.type !== 'text') continue
          text += part.text
          show(text)
        }
      } catch (failure) {
        if (!signal.aborted) throw failure
      }
    },
  })
  return {
    isAvailable: agent !== undefined,
    isWriting: isPending,
    error,
    write: (ticket: Ticket, comments: string[]) => mutate({ ticket, comments }),
    stop: () => controller.current?.abort(),
  }
}
