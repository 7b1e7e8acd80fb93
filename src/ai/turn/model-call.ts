import { type RunSlice, stringifyInSlices } from '../../core/sliced-json'
import { requestAnswer, type Source } from '../sources/sources'
import { readChunks } from '../sources/sse-chunks'
import { throwSourceError } from './errors'
import type { CompletionChunk, Delta, ModelParams, OnText, Reply, ReplyBuilder } from './reply'

const COMPLETIONS_PATH = '/chat/completions'

/** It comes from another server, so every part of it may be malformed. */
export type Completion = Omit<CompletionChunk, 'choices'> & {
  choices?: ({ message?: Delta; finish_reason?: unknown } | null)[] | null
}

type CallOptions = { signal: AbortSignal; reply: ReplyBuilder; onText: OnText; stream: boolean; runSlice: RunSlice }

/**
 * Calls a model and returns its reply. `reply` holds what was received so far, also after an error. The body may be
 * large, so it is written in slices.
 * @throws SourceCallError, MalformedReply, the reason of the signal, and what `onText` throws
 */
export async function callModel(
  source: Source,
  params: ModelParams,
  { signal, reply, onText, stream, runSlice }: CallOptions,
): Promise<Reply> {
  const streamOptions = { stream: true, stream_options: { include_usage: true } } as const
  const body = await stringifyInSlices({ ...params, ...(stream ? streamOptions : { stream }) }, runSlice)
  if (stream) {
    const answer = await source.post(COMPLETIONS_PATH, { body, signal, isStream: true }).catch(throwSourceError)
    const chunkBatches = readChunks(answer)
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
    const answer = await requestAnswer(source, COMPLETIONS_PATH, { body, signal }).catch(throwSourceError)
    const { model, usage, choices } = (answer ?? {}) as Completion
    const choice = choices?.[0]
    await reply.addChunks([{ model, usage, choices: choice && [{ ...choice, delta: choice.message }] }], onText)
  }
  signal.throwIfAborted()
  return reply.toReply(params)
}
