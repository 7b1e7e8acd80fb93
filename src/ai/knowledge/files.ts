import { and, eq, inArray, max, sum } from 'drizzle-orm'
import type { Ctx } from '../../accounts/guard'
import { iso, now } from '../../core/clock'
import { invalid, missing, Problem } from '../../core/problem'
import type { Tx } from '../../storage/port'
import { waitsLong } from '../../tenancy/caller'
import { clientOf, type Source } from '../sources/sources'
import { gone } from '../turn/failures'
import { withinBudget } from '../usage/budgets'
import { costOf } from '../usage/prices'
import { chunksOf } from './chunking'
import { bytesOf, type Embedding, embedded, embeds, expectedOf, type Purpose, refuseMismatch } from './embedding'
import { sweepFiles } from './removal'
import type { Clearing, Upload } from './shapes'
import { isLiving, type StoreRow, storeFor } from './stores'
import { knowledgeChunks, knowledgeFiles, searchFiles, vectorStores } from './tables'
import { keepWords } from './words'

const SLICE = 96 // chunks that are embedded, and written, at once
const MOST_OF_STORE = 100_000 // chunks
const MOST_OF_TENANT = 1_000_000
const METADATA = 64 << 10 // bytes of a file's, as JSON

const { _id, store, ready } = knowledgeFiles

/**
 * Adds a file to a store. It is found from the moment on when all of it is there; when that fails, nothing of it is kept.
 * @throws 400, 403, 404, 409 EMBEDDING_MISMATCH or VECTOR_STORE_FULL, 429 BUDGET_EXCEEDED, and 502 to 504 for the source
 */
export async function upload(ctx: Ctx, sourceId: string, input: Upload, request: Request) {
  waitsLong(request)
  const { content, fileName = '', metadata = {}, ...named } = input
  if (Buffer.byteLength(JSON.stringify(metadata)) > METADATA)
    invalid({ path: '/metadata', message: `At most ${METADATA} bytes of metadata are taken.` })
  const source = await clientOf(ctx, sourceId)
  const row = await storeFor(ctx, sourceId, named)
  if (embeds(source)) refuseMismatch(row, source.embeddingModel)
  const fileId = Bun.randomUUIDv7()
  const fresh = { _id: fileId, store: row._id, name: fileName, metadata, user: ctx.actor.user }
  await ctx.write((tx) =>
    tx
      .insert(knowledgeFiles)
      .values({ ...fresh, chunks: 0, ready: false, created: iso(now()) })
      .run(),
  )
  try {
    let chunks = 0
    for await (const texts of slicesOf(chunksOf(content, fileName))) {
      if (request.signal.aborted) throw gone()
      await keep(ctx, source, { row, file: fileId, texts, position: chunks, signal: request.signal })
      chunks += texts.length
    }
    if (!chunks) invalid({ path: '/content', message: 'There is nothing to be read in it.' })
    await ctx.write((tx) => finish(tx, row._id, fileId, chunks))
  } catch (error) {
    // What a crash leaves over is swept up later.
    await sweepFiles(ctx, [fileId]).catch(() => {})
    throw error
  }
  const message = fileName ? `The file "${fileName}" was added.` : 'The file was added.'
  return { success: true as const, message, fileId, vectorStoreId: row._id }
}

/** So many chunks at a time; others have a turn where there is none for a while. */
async function* slicesOf(chunks: Iterable<string>): AsyncGenerator<string[]> {
  let slice: string[] = []
  for (const chunk of chunks) {
    if (chunk) slice.push(chunk)
    else await new Promise(setImmediate)
    if (slice.length < SLICE) continue
    yield slice
    slice = []
  }
  if (slice.length) yield slice
}

type Slice = { row: StoreRow; file: string; texts: string[]; position: number; signal: AbortSignal }

async function keep(
  ctx: Ctx,
  source: Source,
  { row: { _id: store, integration }, file, texts, position, signal }: Slice,
) {
  const model = embeds(source) ? source.embeddingModel : null
  const vectors = embeds(source) ? await embeddedWithin(source, texts, { ctx, integration, signal }) : []
  const dimension = vectors[0]?.length ?? null
  await ctx.write(async (tx) => {
    const row = await current(tx, store)
    // Whoever takes an hour for it may find it swept up.
    if (!(await tx.select({ _id }).from(knowledgeFiles).where(eq(_id, file)).get())) missing('file')
    if (model !== null) refuseMismatch(row, model, dimension)
    await refuseTooMuch(tx, row, texts.length)
    const [last] = await tx.select({ number: max(knowledgeChunks.number) }).from(knowledgeChunks)
    const first = (last?.number ?? 0) + 1
    await tx.each(
      'insert into knowledge_chunks (number, file, position, text, vector) values (?, ?, ?, ?, ?)',
      texts.map((text, n) => [first + n, file, position + n, text, vectors[n] ? bytesOf(vectors[n]) : null]),
    )
    await keepWords(
      tx,
      row.seq,
      texts.map((text, n) => [first + n, text] as const),
    )
    const made = model === null ? {} : { model, dimension }
    await tx
      .update(vectorStores)
      .set({ ...made, chunks: row.chunks + texts.length })
      .where(eq(vectorStores.seq, row.seq))
  })
}

/** @throws 429 BUDGET_EXCEEDED, and as `embedded` does */
async function embeddedWithin(source: Embedding, texts: string[], purpose: Purpose) {
  const usage = expectedOf(texts)
  const cost = await costOf(purpose.ctx, source.embeddingModel, usage)
  const counted = await withinBudget(purpose.ctx, { tokens: usage.prompt, cost })
  return embedded(source, texts, purpose).finally(counted)
}

async function finish(tx: Tx, storeId: string, file: string, chunks: number) {
  const { seq, version } = await current(tx, storeId)
  await tx.update(knowledgeFiles).set({ ready: true, chunks }).where(eq(_id, file))
  await tx.insert(searchFiles).values({ file })
  await tx
    .update(vectorStores)
    .set({ version: version + 1 })
    .where(eq(vectorStores.seq, seq))
}

/** The store as it is now: it may have ended meanwhile. @throws 404 */
const current = async (tx: Tx, id: string): Promise<StoreRow> =>
  (await tx
    .select()
    .from(vectorStores)
    .where(and(eq(vectorStores._id, id), isLiving()))
    .get()) ?? missing('vector store')

async function refuseTooMuch(tx: Tx, { chunks }: StoreRow, more: number) {
  if (chunks + more > MOST_OF_STORE)
    throw full(`A vector store has room for ${MOST_OF_STORE} chunks, of some 1,200 characters each.`)
  const [all] = await tx.select({ chunks: sum(vectorStores.chunks) }).from(vectorStores)
  if (Number(all?.chunks) + more > MOST_OF_TENANT) throw full(`A tenant has room for ${MOST_OF_TENANT} chunks.`)
}

const full = (message: string) => new Problem(409, 'VECTOR_STORE_FULL', `${message} Clear something first.`)

/** Takes files out of a store: all, unless some are named. @throws 400, 403, 404 */
export async function clear(ctx: Ctx, sourceId: string, { fileIds, ...named }: Clearing, request: Request) {
  waitsLong(request)
  await clientOf(ctx, sourceId)
  const row = await storeFor(ctx, sourceId, named)
  const gone = await ctx.write(async (tx) => {
    const { seq, version } = await current(tx, row._id)
    const asked = fileIds && inArray(_id, fileIds)
    const those = and(eq(store, row._id), eq(ready, true), asked)
    const files =
      fileIds?.length === 0 ? [] : await tx.update(knowledgeFiles).set({ ready: false }).where(those).returning({ _id })
    await tx
      .update(vectorStores)
      .set({ version: version + 1 })
      .where(eq(vectorStores.seq, seq))
    return files.map(({ _id }) => _id)
  })
  await sweepFiles(ctx, gone)
  const message = gone.length === 1 ? 'One file was cleared.' : `${gone.length} files were cleared.`
  return { success: true as const, message, clearedCount: gone.length, vectorStoreId: row._id }
}
