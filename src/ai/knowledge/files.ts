import { and, eq, inArray, max, sum } from 'drizzle-orm'
import type { Ctx } from '../../accounts/context'
import { now, toIsoString } from '../../core/clock'
import { badRequest, notFound, Problem } from '../../core/problem'
import type { Tx } from '../../storage/port'
import { disableIdleTimeout } from '../../tenancy/client-connection'
import { getSource, openSource, type Source } from '../sources/sources'
import { callerGoneProblem } from '../turn/errors'
import { reserveBudget } from '../usage/budgets'
import { calculateCost } from '../usage/prices'
import { splitIntoChunks } from './chunker'
import {
  assertSameEmbedding,
  type EmbeddingPurpose,
  type EmbeddingSource,
  embedTexts,
  estimateEmbeddingUsage,
  isEmbeddingSource,
  toVectorBytes,
} from './embeddings'
import { assertReadable } from './file-kind'
import { indexChunks } from './full-text'
import type { VectorStoreClear, VectorStoreUpload } from './shapes'
import { deleteFiles } from './store-removal'
import { getWritableStore, isNotExpired, type StoreRow } from './stores'
import { knowledgeChunks, knowledgeFiles, searchFiles, vectorStores } from './tables'

const CHUNKS_PER_BATCH = 96 // chunks that are embedded and written at once
const MAX_CHUNKS_PER_STORE = 100_000 // chunks
const MAX_CHUNKS_PER_TENANT = 1_000_000
const MAX_METADATA_BYTES = 64 << 10 // bytes as JSON

const { _id, store, ready } = knowledgeFiles

/**
 * Adds a file to a store. The search finds it once it is complete. If the upload fails, nothing of it is kept.
 * @throws 400, 403, 404, 409 EMBEDDING_MISMATCH or VECTOR_STORE_FULL, 422 UNREADABLE_FILE, 429 BUDGET_EXCEEDED, and 502 to 504 for the source
 */
export async function upload(ctx: Ctx, sourceId: string, input: VectorStoreUpload, request: Request) {
  disableIdleTimeout(request)
  const { content, fileName = '', metadata = {}, ...storeReference } = input
  assertReadable(content)
  if (Buffer.byteLength(JSON.stringify(metadata)) > MAX_METADATA_BYTES)
    badRequest({ path: '/metadata', message: `The metadata may have at most ${MAX_METADATA_BYTES} bytes as JSON.` })
  const source = await openSource(ctx, sourceId)
  const row = await getWritableStore(ctx, sourceId, storeReference)
  if (isEmbeddingSource(source)) assertSameEmbedding(row, source.embeddingModel)
  const fileId = Bun.randomUUIDv7()
  const fileRow = { _id: fileId, store: row._id, name: fileName, metadata, user: ctx.actor.user }
  await ctx.write((tx) =>
    tx
      .insert(knowledgeFiles)
      .values({ ...fileRow, chunks: 0, ready: false, created: toIsoString(now()) })
      .run(),
  )
  try {
    let chunks = 0
    for await (const texts of batchChunks(splitIntoChunks(content, fileName))) {
      if (request.signal.aborted) throw callerGoneProblem()
      await saveChunks(ctx, source, { row, file: fileId, texts, position: chunks, signal: request.signal })
      chunks += texts.length
    }
    if (!chunks) badRequest({ path: '/content', message: 'The file contains no text.' })
    await ctx.write((tx) => markFileReady(tx, row._id, fileId, chunks))
  } catch (error) {
    // `removeExpiredStores` removes what a crash leaves behind.
    await deleteFiles(ctx, [fileId]).catch(() => {})
    throw error
  }
  const message = fileName ? `The file "${fileName}" was added.` : 'The file was added.'
  return { success: true as const, message, fileId, vectorStoreId: row._id }
}

/** Yields batches of chunks. At each empty chunk, other work gets a turn. */
async function* batchChunks(chunks: Iterable<string>): AsyncGenerator<string[]> {
  let batch: string[] = []
  for (const chunk of chunks) {
    if (chunk) batch.push(chunk)
    else await new Promise(setImmediate)
    if (batch.length < CHUNKS_PER_BATCH) continue
    yield batch
    batch = []
  }
  if (batch.length) yield batch
}

type ChunkBatch = { row: StoreRow; file: string; texts: string[]; position: number; signal: AbortSignal }

async function saveChunks(
  ctx: Ctx,
  source: Source,
  { row: { _id: store, integration }, file, texts, position, signal }: ChunkBatch,
) {
  const model = isEmbeddingSource(source) ? source.embeddingModel : null
  const vectors = isEmbeddingSource(source) ? await embedWithinBudget(source, texts, { ctx, integration, signal }) : []
  const dimension = vectors[0]?.length ?? null
  await ctx.write(async (tx) => {
    const row = await getCurrentStore(tx, store)
    // An upload that takes more than an hour may have been removed as abandoned.
    if (!(await tx.select({ _id }).from(knowledgeFiles).where(eq(_id, file)).get())) notFound('file')
    if (model !== null) assertSameEmbedding(row, model, dimension)
    await assertStoreHasRoom(tx, row, texts.length)
    const [last] = await tx.select({ number: max(knowledgeChunks.number) }).from(knowledgeChunks)
    const first = (last?.number ?? 0) + 1
    await tx.executeMany(
      'insert into knowledge_chunks (number, file, position, text, vector) values (?, ?, ?, ?, ?)',
      texts.map((text, n) => [first + n, file, position + n, text, vectors[n] ? toVectorBytes(vectors[n]) : null]),
    )
    await indexChunks(
      tx,
      row.seq,
      texts.map((text, n) => [first + n, text] as const),
    )
    const embeddingColumns = model === null ? {} : { model, dimension }
    await tx
      .update(vectorStores)
      .set({ ...embeddingColumns, chunks: row.chunks + texts.length })
      .where(eq(vectorStores.seq, row.seq))
  })
}

/** @throws 429 BUDGET_EXCEEDED, and what `embedTexts` throws */
async function embedWithinBudget(source: EmbeddingSource, texts: string[], purpose: EmbeddingPurpose) {
  const usage = estimateEmbeddingUsage(texts)
  const cost = await calculateCost(purpose.ctx, source.embeddingModel, usage)
  const releaseBudget = await reserveBudget(purpose.ctx, { tokens: usage.prompt, cost })
  return embedTexts(source, texts, purpose).finally(releaseBudget)
}

async function markFileReady(tx: Tx, storeId: string, file: string, chunks: number) {
  const { seq, version } = await getCurrentStore(tx, storeId)
  await tx.update(knowledgeFiles).set({ ready: true, chunks }).where(eq(_id, file))
  await tx.insert(searchFiles).values({ file })
  await tx
    .update(vectorStores)
    .set({ version: version + 1 })
    .where(eq(vectorStores.seq, seq))
}

/** Returns the current row of a store. @throws 404 VECTOR_STORE_NOT_FOUND when it has expired meanwhile */
const getCurrentStore = async (tx: Tx, id: string): Promise<StoreRow> =>
  (await tx
    .select()
    .from(vectorStores)
    .where(and(eq(vectorStores._id, id), isNotExpired()))
    .get()) ?? notFound('vector store')

async function assertStoreHasRoom(tx: Tx, { chunks }: StoreRow, additional: number) {
  if (chunks + additional > MAX_CHUNKS_PER_STORE)
    throw storeFullProblem(
      `A vector store may have at most ${MAX_CHUNKS_PER_STORE} chunks of about 1,200 characters each.`,
    )
  const [tenantTotal] = await tx.select({ chunks: sum(vectorStores.chunks) }).from(vectorStores)
  if (Number(tenantTotal?.chunks) + additional > MAX_CHUNKS_PER_TENANT)
    throw storeFullProblem(`A tenant may have at most ${MAX_CHUNKS_PER_TENANT} chunks.`)
}

const storeFullProblem = (message: string) => new Problem(409, 'VECTOR_STORE_FULL', `${message} Remove files first.`)

/** Removes the given files from a store, or all files. @throws 400, 403, 404 */
export async function clear(
  ctx: Ctx,
  sourceId: string,
  { fileIds, ...storeReference }: VectorStoreClear,
  request: Request,
) {
  disableIdleTimeout(request)
  await getSource(ctx, sourceId)
  const row = await getWritableStore(ctx, sourceId, storeReference)
  const clearedIds = await ctx.write(async (tx) => {
    const { seq, version } = await getCurrentStore(tx, row._id)
    const namedFiles = fileIds && inArray(_id, fileIds)
    const filesToClear = and(eq(store, row._id), eq(ready, true), namedFiles)
    const files =
      fileIds?.length === 0
        ? []
        : await tx.update(knowledgeFiles).set({ ready: false }).where(filesToClear).returning({ _id })
    await tx
      .update(vectorStores)
      .set({ version: version + 1 })
      .where(eq(vectorStores.seq, seq))
    return files.map(({ _id }) => _id)
  })
  await deleteFiles(ctx, clearedIds)
  const message = clearedIds.length === 1 ? 'One file was cleared.' : `${clearedIds.length} files were cleared.`
  return { success: true as const, message, clearedCount: clearedIds.length, vectorStoreId: row._id }
}
