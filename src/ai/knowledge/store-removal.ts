import { and, asc, eq, gt, inArray, lt, lte, sql } from 'drizzle-orm'
import { now, toIsoString } from '../../core/clock'
import type { Lease } from '../../jobs/with-lease'
import type { Db, Tx } from '../../storage/port'
import type { Tenant } from '../../tenancy/tenants'
import { unindexChunks } from './full-text'
import { knowledgeChunks, knowledgeFiles, type StoreScope, searchFiles, vectorStores } from './tables'

const CHUNKS_PER_DELETE = 500 // chunks
const ROWS_PER_BATCH = 500 // files, or stores
const ABANDONED_UPLOAD_MS = 3_600_000 // ms, after which an unfinished upload is removed

/** Expires the stores of a thread, in the transaction that removes it. */
export const expireThreadStores = (tx: Tx, thread: string) => expireSubjectStores(tx, 'thread', thread)

/** Expires the stores of a subject: a thread, a user or a workspace. */
export const expireSubjectStores = (tx: Tx, scope: StoreScope, subject: string) =>
  expireStores(tx, and(eq(vectorStores.scope, scope), eq(vectorStores.subject, subject)))

/** Expires stores at once. New stores may take their places, and their files are removed later. */
export const expireStores = (tx: Tx, condition: ReturnType<typeof and>) =>
  tx
    .update(vectorStores)
    .set({ subject: sql`'ended ' || ${vectorStores._id}`, expires: toIsoString(0) })
    .where(condition)
    .run()

/** Removes files with their chunks and words, in batches. The files must no longer be `ready`. */
export async function deleteFiles({ write }: Pick<Tenant, 'write'>, ids: string[], checkAborted = () => {}) {
  for (const id of ids)
    for (let hasMore = true; hasMore; ) {
      checkAborted()
      hasMore = await write((tx) => deleteChunkBatch(tx, id))
    }
}

async function deleteChunkBatch(tx: Tx, file: string): Promise<boolean> {
  const { number, file: fileOfChunk } = knowledgeChunks
  const rows = await tx
    .select({ number })
    .from(knowledgeChunks)
    .where(eq(fileOfChunk, file))
    .orderBy(asc(number))
    .limit(CHUNKS_PER_DELETE)
  const numbers = rows.map(({ number }) => number)
  const store = await findStoreOfFile(tx, file)
  if (store) {
    await unindexChunks(tx, store.seq, numbers)
    const chunks = store.chunks - numbers.length
    // An empty store accepts vectors of any model again.
    const embeddingColumns = chunks ? {} : { model: null, dimension: null }
    await tx
      .update(vectorStores)
      .set({ ...embeddingColumns, chunks })
      .where(eq(vectorStores.seq, store.seq))
  }
  if (numbers.length) await tx.delete(knowledgeChunks).where(inArray(number, numbers))
  if (numbers.length === CHUNKS_PER_DELETE) return true
  await tx.delete(searchFiles).where(eq(searchFiles.file, file))
  await tx.delete(knowledgeFiles).where(eq(knowledgeFiles._id, file))
  return false
}

const findStoreOfFile = (db: Pick<Db, 'select'>, file: string) =>
  db
    .select({ seq: vectorStores.seq, chunks: vectorStores.chunks })
    .from(knowledgeFiles)
    .innerJoin(vectorStores, eq(vectorStores._id, knowledgeFiles.store))
    .where(eq(knowledgeFiles._id, file))
    .get()

/** Whether the integration or the subject of a store no longer exists. */
const ORPHANED_STORE_CONDITION = `((select 1 from integrations i where i._id = vector_stores.integration) is null
  or (scope = 'user' and (select 1 from users u where u._id = vector_stores.subject) is null)
  or (scope = 'workspace' and (select 1 from workspaces w where w._id = vector_stores.subject) is null)
  or (scope = 'thread' and (select 1 from threads t where t._id = vector_stores.subject) is null))`

/** Removes expired stores, stores whose integration or subject no longer exists, and abandoned uploads. */
export async function removeExpiredStores(tenant: Tenant & Lease) {
  const { db, write, signal } = tenant
  const checkAborted = () => signal.throwIfAborted()
  await write((tx) =>
    expireStores(tx, and(gt(sql`coalesce(${vectorStores.expires}, 1)`, 0), sql.raw(ORPHANED_STORE_CONDITION))),
  )
  for (;;) {
    const isAbandoned = and(
      eq(knowledgeFiles.ready, false),
      lt(knowledgeFiles.created, toIsoString(now() - ABANDONED_UPLOAD_MS)),
    )
    const files = await db
      .select({ _id: knowledgeFiles._id })
      .from(knowledgeFiles)
      .where(isAbandoned)
      .limit(ROWS_PER_BATCH)
    if (!files.length) break
    await deleteFiles(
      tenant,
      files.map(({ _id }) => _id),
      checkAborted,
    )
  }
  for (;;) {
    const isExpired = lte(vectorStores.expires, toIsoString(now()))
    const stores = await db.select({ _id: vectorStores._id }).from(vectorStores).where(isExpired).limit(ROWS_PER_BATCH)
    if (!stores.length) break
    for (const { _id } of stores) await removeStore(tenant, _id, checkAborted)
  }
}

async function removeStore(tenant: Pick<Tenant, 'db' | 'write'>, id: string, checkAborted: () => void) {
  for (;;) {
    const ofStore = eq(knowledgeFiles.store, id)
    const files = await tenant.db
      .select({ _id: knowledgeFiles._id })
      .from(knowledgeFiles)
      .where(ofStore)
      .limit(ROWS_PER_BATCH)
    if (!files.length) break
    await deleteFiles(
      tenant,
      files.map(({ _id }) => _id),
      checkAborted,
    )
  }
  await tenant.write((tx) => tx.delete(vectorStores).where(eq(vectorStores._id, id)).run())
}
