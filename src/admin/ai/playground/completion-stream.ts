import { createParser } from 'eventsource-parser'
import { api } from '../../api/client'
import { ApiProblem } from '../../api/problem'
import type { CompletionRequest } from '../../api/schema'

/** A file that an answer is based on. */
export type Citation = { fileId: string; fileName: string | null; chunk: number }

/** What an answer says beside its text, once it is complete. */
export type CompletionEnd = { usage?: { prompt_tokens: number; completion_tokens: number }; citations?: Citation[] }

type CompletionEvent = CompletionEnd & {
  choices?: { delta: { content?: string }; finish_reason: string | null }[]
  error?: { code: string; message: string }
}

/** Who answers: an agent in a thread, or a model without instructions and tools. */
export type CompletionTarget = { agent: string; thread: string } | { source: string }

type StreamOptions = { signal: AbortSignal; onText: (text: string) => void }

/** Each request is a stream, which the typed client hands over as it comes. */
function openStream(target: CompletionTarget, body: CompletionRequest, signal: AbortSignal) {
  const options = { body: { ...body, stream: true }, parseAs: 'stream', signal } as const
  return 'agent' in target
    ? api.POST('/api/ai/{integrationId}/chat-completion/{threadId}', {
        params: { path: { integrationId: target.agent, threadId: target.thread } },
        ...options,
      })
    : api.POST('/api/ai/sources/{sourceId}/chat-completion/plain', {
        params: { path: { sourceId: target.source } },
        ...options,
      })
}

/**
 * Sends messages and hands over the answer piece by piece. Returns what the answer says at its end.
 * @throws ApiProblem when the server refuses the request or the answer breaks off, AbortError after `signal`
 */
export async function streamCompletion(
  target: CompletionTarget,
  body: CompletionRequest,
  { signal, onText }: StreamOptions,
): Promise<CompletionEnd> {
  const { response, data } = await openStream(target, body, signal)
  const requestId = response.headers.get('x-request-id')
  const end: CompletionEnd = {}
  let isComplete = false
  const parser = createParser({
    onEvent: ({ data: text }) => {
      if (text === '[DONE]') {
        isComplete = true
        return
      }
      const { error, choices, usage, citations } = JSON.parse(text) as CompletionEvent
      if (error) throw new ApiProblem(response.status, error.code, error.message, undefined, requestId)
      const words = choices?.[0]?.delta.content
      if (words) onText(words)
      if (usage) Object.assign(end, { usage, citations })
    },
  })
  const decoder = new TextDecoder()
  const reader = (data as unknown as ReadableStream<Uint8Array>).getReader()
  for (;;) {
    const { value, done } = await reader.read()
    if (done) break
    parser.feed(decoder.decode(value, { stream: true }))
  }
  if (!isComplete) throw new Error('The answer broke off before its end. Try again.')
  return end
}
