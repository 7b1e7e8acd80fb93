import type { OpenCtx } from '../../accounts/guard'
import { Problem } from '../../core/problem'
import type { Source } from '../sources/sources'
import { tokensIn } from '../tokens'
import { Failed, problemOf, Senseless } from '../turn/failures'
import { countedIn, type Usage } from '../turn/model'
import { keepUsage, type Status, usageRow } from '../usage/spending'

const DIMENSIONS = 16_384
const LONGEST = 8_000 // characters of a text; models take some 8,000 tokens

/** A source that makes vectors. */
export type Embedding = Source & { embeddingModel: string }
export const embeds = (source: Source): source is Embedding => source.embeddingModel !== undefined

/** About what texts take. */
export const expectedOf = (texts: string[]): Usage => ({
  ...{ prompt: tokensIn(texts.join('\n')), completion: 0, estimated: true },
})

/** For whom and for what texts are embedded. */
export type Purpose = { ctx: OpenCtx; integration: string; thread?: string; signal?: AbortSignal }

/**
 * Texts as vectors of length 1, by the embedding model of a source. What may be tried again is, by its client. What it took
 * is kept, whatever became of it.
 * @throws 502 AI_UPSTREAM_ERROR, 503 AI_UPSTREAM_BUSY, 504 AI_UPSTREAM_TIMEOUT
 */
export async function embedded(
  { _id: source, client, embeddingModel: model }: Embedding,
  texts: string[],
  { ctx, integration, thread, signal }: Purpose,
): Promise<Float32Array[]> {
  const input = texts.map((text) => text.slice(0, LONGEST).toWellFormed())
  const began = performance.now()
  let usage = expectedOf(input)
  let status: Status = 'failed'
  try {
    const asked = { model, input, encoding_format: 'float' } as const
    const answer = await client.embeddings.create(asked, { signal }).catch((cause) => {
      throw new Failed(cause)
    })
    const counted = countedIn({ ...answer?.usage, completion_tokens: 0 })
    if (counted) usage = { ...counted, estimated: false }
    const vectors = vectorsOf(answer?.data, texts.length)
    status = 'completed'
    return vectors
  } catch (error) {
    if (signal?.aborted) status = 'aborted'
    throw problemOf(error)
  } finally {
    const durationMs = Math.round(performance.now() - began)
    const about = { kind: 'embedding' as const, integration, source, model, thread: thread ?? null }
    const row = await usageRow(ctx, { ...about, usage, status, durationMs })
    await ctx.write((tx) => keepUsage(tx, row))
  }
}

function vectorsOf(data: unknown, count: number): Float32Array[] {
  const vectors: Float32Array[] = []
  if (!Array.isArray(data) || data.length !== count) throw new Senseless(STRANGE)
  for (const one of data) {
    if (!Number.isInteger(one?.index) || one.index < 0 || one.index >= count) throw new Senseless(STRANGE)
    vectors[one.index] = unit(one.embedding)
  }
  const dimension = vectors[0]?.length
  if (Number(dimension) > DIMENSIONS) throw new Senseless(`Vectors have at most ${DIMENSIONS} numbers here.`)
  for (let n = 0; n < count; n++) if (!dimension || vectors[n]?.length !== dimension) throw new Senseless(STRANGE)
  return vectors
}

const STRANGE = 'The AI source did not answer with a vector for each text.'

/** Of length 1, so that the product of two is the cosine of their angle. */
function unit(values: unknown): Float32Array {
  if (!Array.isArray(values)) throw new Senseless(STRANGE)
  const length = Math.sqrt(values.reduce((sum, value) => sum + value * value, 0))
  if (!Number.isFinite(length)) throw new Senseless(STRANGE)
  return Float32Array.from(values, (value) => value / (length || 1))
}

type Made = { model: string | null; dimension: number | null }

/** Vectors of different models, or of different sizes, say nothing of each other. @throws 409 EMBEDDING_MISMATCH */
export function refuseMismatch(store: Made, model: string, dimension = store.dimension) {
  if (store.model === null || (store.model === model && store.dimension === dimension)) return
  const had = `"${store.model}" with ${store.dimension} dimensions`
  const has = store.model === model ? `${dimension}` : `"${model}"`
  throw new Problem(
    409,
    'EMBEDDING_MISMATCH',
    `The files of this vector store were embedded by ${had}, but the source now has ${has}. Clear the store and upload them again, or set the source's embeddingModel back.`,
    { details: { model: store.model, dimension: store.dimension } },
  )
}

const LITTLE = new Uint8Array(new Uint16Array([1]).buffer)[0] === 1

/** As it is kept: float32, little-endian. */
export const bytesOf = (vector: Float32Array): Buffer =>
  swapped(Buffer.from(vector.buffer, vector.byteOffset, vector.byteLength))

/** Adds a kept vector to others, at a place. */
export function place(bytes: Uint8Array, all: Float32Array, at: number) {
  new Uint8Array(all.buffer, all.byteOffset + at * 4, bytes.byteLength).set(swapped(bytes))
}

const swapped = <Bytes extends Uint8Array>(bytes: Bytes): Bytes =>
  LITTLE ? bytes : (Buffer.from(bytes).swap32() as Uint8Array as Bytes)
