import { type RunSlice, stringifyInSlices } from '../../core/sliced-json'
import { SSE_CONTENT_TYPE } from '../sources/source-fetch'
import type { Source } from '../sources/sources'
import { readChunks } from '../sources/sse-chunks'
import { throwSourceError } from './errors'
import type { CompletionChunk, Delta, ModelParams, OnText, Reply, ReplyBuilder } from './reply'

type CallOptions = { signal: AbortSignal; reply: ReplyBuilder; onText: OnText; stream: boolean; runSlice: RunSlice }

/**
 * Calls a model and returns its reply. `reply` holds what was received so far, also after an error. The body may be
 * large, so it is written in slices.
 * @throws SourceCallError, MalformedReply, the reason of the signal, and what `onText` throws
 */
export async function callModel(
  { client: { chat } }: Source,
  params: ModelParams,
  { signal, reply, onText, stream, runSlice }: CallOptions,
): Promise<Reply> {
  const streamOptions = { stream: true, stream_options: { include_usage: true } } as const
  const body = await stringifyInSlices({ ...params, ...(stream ? streamOptions : { stream }) }, runSlice)
  const headers = { 'content-type': 'application/json' }
  if (stream) {
    const response = await chat.completions
      .create({ ...params, ...streamOptions }, { signal, body, headers: { ...headers, accept: SSE_CONTENT_TYPE } })
      .asResponse()
      .catch(throwSourceError)
    const chunkBatches = readChunks(response)
    try {
      for (;;) {
        const { done, value } = await chunkBatches.next().catch(throwSourceError)
        if (done) break
        await reply.addChunks(value as CompletionChunk[], onText)
      }
    } finally {
      // Stops reading when a chunk is malformed.
      chunkBatches.return().catch(() => {})
    }
  } else {
    const answer = await chat.completions
      .create({ ...params, stream: false }, { signal, body, headers })
      .catch(throwSourceError)
    const { model, usage, choices } = (answer ?? {}) as Partial<typeof answer>
    const choice = choices?.[0]
    await reply.addChunks(
      [{ model, usage, choices: choice && [{ ...choice, delta: choice.message as Delta }] }],
      onText,
    )
  }
  signal.throwIfAborted()
  return reply.toReply(params)
}
