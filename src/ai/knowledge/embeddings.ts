import type { PublicCtx } from '../../accounts/context'
import { Problem } from '../../core/problem'
import { requestAnswer, type Source } from '../sources/sources'
import { estimateTokens } from '../token-estimate'
import { MalformedReply, throwSourceError, toProblem } from '../turn/errors'
import { parseUsage, type ReportedUsage, type TokenUsage } from '../turn/reply'
import { buildUsageRow, recordUsage, type UsageStatus } from '../usage/usage-record'

const MAX_DIMENSIONS = 16_384
const MAX_INPUT_LENGTH = 8_000 // characters of a text; models take some 8,000 tokens

/** A source with a model for embeddings. */
export type EmbeddingSource = Source & { embeddingModel: string }
export const isEmbeddingSource = (source: Source): source is EmbeddingSource => source.embeddingModel !== undefined

/** Estimates the usage of embedding texts. */
export const estimateEmbeddingUsage = (texts: string[]): TokenUsage => ({
  ...{ prompt: estimateTokens(texts.join('\n')), completion: 0, estimated: true },
})

/** The caller, the integration and the thread that texts are embedded for. */
export type EmbeddingPurpose = {
  ctx: PublicCtx
  integration: string
  thread?: string
  signal?: AbortSignal
  /** How long the vectors should be, if the model may choose. */
  dimensions?: number
}

/** It comes from another server, so every part of it may be malformed. */
type EmbeddingAnswer = { data?: unknown; usage?: ReportedUsage } | null

/** Returns the embeddings of texts, of which only the beginning counts. @throws what `requestEmbeddings` throws */
export async function embedTexts(
  source: EmbeddingSource,
  texts: string[],
  purpose: EmbeddingPurpose,
): Promise<Float32Array[]> {
  const input = texts.map((text) => text.slice(0, MAX_INPUT_LENGTH).toWellFormed())
  return (await requestEmbeddings(source, input, purpose)).vectors
}

/**
 * Returns the embeddings of texts, as vectors of length 1, and how many tokens they took. They are asked for again
 * where that may help. The usage is recorded in any case.
 * @throws 502 AI_UPSTREAM_ERROR, 503 AI_UPSTREAM_BUSY, 504 AI_UPSTREAM_TIMEOUT
 */
export async function requestEmbeddings(
  source: EmbeddingSource,
  input: string[],
  { ctx, integration, thread, signal, dimensions }: EmbeddingPurpose,
): Promise<{ vectors: Float32Array[]; tokens: number }> {
  const startTime = performance.now()
  const model = source.embeddingModel
  let usage = estimateEmbeddingUsage(input)
  let status: UsageStatus = 'failed'
  try {
    const body = Buffer.from(
      JSON.stringify({ model, input, encoding_format: 'float', ...(dimensions && { dimensions }) }),
    )
    const answer = (await requestAnswer(source, '/embeddings', { body, signal }).catch(
      throwSourceError,
    )) as EmbeddingAnswer
    const reportedUsage = parseUsage({ ...answer?.usage, completion_tokens: 0 })
    if (reportedUsage) usage = { ...reportedUsage, estimated: false }
    const vectors = parseVectors(answer?.data, input.length)
    status = 'completed'
    return { vectors, tokens: usage.prompt }
  } catch (error) {
    if (signal?.aborted) status = 'aborted'
    throw toProblem(error)
  } finally {
    const durationMs = Math.round(performance.now() - startTime)
    const about = { kind: 'embedding' as const, integration, source: source._id, model, thread: thread ?? null }
    const row = await buildUsageRow(ctx, { ...about, usage, status, durationMs })
    await ctx.write((tx) => recordUsage(ctx, tx, row))
  }
}

function parseVectors(data: unknown, count: number): Float32Array[] {
  const vectors: Float32Array[] = []
  if (!Array.isArray(data) || data.length !== count) throw new MalformedReply(MISSING_VECTORS_MESSAGE)
  for (const item of data) {
    if (!Number.isInteger(item?.index) || item.index < 0 || item.index >= count)
      throw new MalformedReply(MISSING_VECTORS_MESSAGE)
    vectors[item.index] = toUnitVector(item.embedding)
  }
  const dimension = vectors[0]?.length
  if (Number(dimension) > MAX_DIMENSIONS)
    throw new MalformedReply(`Vectors may have at most ${MAX_DIMENSIONS} dimensions.`)
  for (let n = 0; n < count; n++)
    if (!dimension || vectors[n]?.length !== dimension) throw new MalformedReply(MISSING_VECTORS_MESSAGE)
  return vectors
}

const MISSING_VECTORS_MESSAGE = 'The AI source did not answer with a vector for each text.'

/** Returns a vector of length 1, so that the dot product of two is the cosine of their angle. */
function toUnitVector(values: unknown): Float32Array {
  if (!Array.isArray(values)) throw new MalformedReply(MISSING_VECTORS_MESSAGE)
  const length = Math.sqrt(values.reduce((sum, value) => sum + value * value, 0))
  if (!Number.isFinite(length)) throw new MalformedReply(MISSING_VECTORS_MESSAGE)
  return Float32Array.from(values, (value) => value / (length || 1))
}

type StoreEmbedding = { model: string | null; dimension: number | null }

/**
 * Vectors of different models or dimensions cannot be compared.
 * @throws 409 EMBEDDING_MISMATCH when the store has vectors of another model or dimension
 */
export function assertSameEmbedding(store: StoreEmbedding, model: string, dimension = store.dimension) {
  if (store.model === null || (store.model === model && store.dimension === dimension)) return
  const previous = `"${store.model}" with ${store.dimension} dimensions`
  const current = store.model === model ? `${dimension}` : `"${model}"`
  throw new Problem(
    409,
    'EMBEDDING_MISMATCH',
    `The files of this vector store were embedded by ${previous}, but the source now has ${current}. Clear the store and upload them again, or set the source's embeddingModel back.`,
    { details: { model: store.model, dimension: store.dimension } },
  )
}

const IS_LITTLE_ENDIAN = new Uint8Array(new Uint16Array([1]).buffer)[0] === 1

/** Returns a vector in its stored format: float32, little-endian. */
export const toVectorBytes = (vector: Float32Array): Buffer =>
  swapIfBigEndian(Buffer.from(vector.buffer, vector.byteOffset, vector.byteLength))

/** Copies a stored vector into `target`, at an offset in numbers. */
export function copyVector(bytes: Uint8Array, target: Float32Array, offset: number) {
  new Uint8Array(target.buffer, target.byteOffset + offset * 4, bytes.byteLength).set(swapIfBigEndian(bytes))
}

const swapIfBigEndian = <Bytes extends Uint8Array>(bytes: Bytes): Bytes =>
  IS_LITTLE_ENDIAN ? bytes : (Buffer.from(bytes).swap32() as Uint8Array as Bytes)
