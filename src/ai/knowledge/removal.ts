import { and, asc, eq, gt, inArray, lt, lte, sql } from 'drizzle-orm'
import { iso, now } from '../../core/clock'
import type { Lease } from '../../jobs/holding'
import type { Db, Tx } from '../../storage/port'
import type { Tenant } from '../../tenancy/tenants'
import { knowledgeChunks, knowledgeFiles, type Scope, searchFiles, vectorStores } from './tables'
import { forgetWords } from './words'

const SLICE = 500 // chunks
const PORTION = 500 // files, or stores
const BEGUN = 3_600_000 // ms; what an upload has not finished by then, nobody will

/** Ends the store of a thread that is removed, in the same transaction. */
export const forgetThread = (tx: Tx, thread: string) => forgetSubject(tx, 'thread', thread)

/** The same for those of a user or a workspace. */
export const forgetSubject = (tx: Tx, scope: Scope, subject: string) =>
  endStores(tx, and(eq(vectorStores.scope, scope), eq(vectorStores.subject, subject)))

/** Nobody finds these from now on, and others may take their places. What they have is swept up later. */
export const endStores = (tx: Tx, those: ReturnType<typeof and>) =>
  tx
    .update(vectorStores)
    .set({ subject: sql`'ended ' || ${vectorStores._id}`, expires: iso(0) })
    .where(those)
    .run()

/** Removes files with their chunks and words, a slice at a time. Who asks for them finds nothing of them already. */
export async function sweepFiles({ write }: Pick<Tenant, 'write'>, ids: string[], go = () => {}) {
  for (const id of ids)
    for (let left = true; left; ) {
      go()
      left = await write((tx) => sweepSlice(tx, id))
    }
}

async function sweepSlice(tx: Tx, file: string): Promise<boolean> {
  const { number, file: of } = knowledgeChunks
  const rows = await tx.select({ number }).from(knowledgeChunks).where(eq(of, file)).orderBy(asc(number)).limit(SLICE)
  const numbers = rows.map(({ number }) => number)
  const store = await storeOf(tx, file)
  if (store) {
    await forgetWords(tx, store.seq, numbers)
    const chunks = store.chunks - numbers.length
    // By what vectors of files to come are made is open again.
    const made = chunks ? {} : { model: null, dimension: null }
    await tx
      .update(vectorStores)
      .set({ ...made, chunks })
      .where(eq(vectorStores.seq, store.seq))
  }
  if (numbers.length) await tx.delete(knowledgeChunks).where(inArray(number, numbers))
  if (numbers.length === SLICE) return true
  await tx.delete(searchFiles).where(eq(searchFiles.file, file))
  await tx.delete(knowledgeFiles).where(eq(knowledgeFiles._id, file))
  return false
}

const storeOf = (db: Pick<Db, 'select'>, file: string) =>
  db
    .select({ seq: vectorStores.seq, chunks: vectorStores.chunks })
    .from(knowledgeFiles)
    .innerJoin(vectorStores, eq(vectorStores._id, knowledgeFiles.store))
    .where(eq(knowledgeFiles._id, file))
    .get()

/** What has to be there for a store to be of use. */
const LOST = `((select 1 from integrations i where i._id = vector_stores.integration) is null
  or (scope = 'user' and (select 1 from users u where u._id = vector_stores.subject) is null)
  or (scope = 'workspace' and (select 1 from workspaces w where w._id = vector_stores.subject) is null)
  or (scope = 'thread' and (select 1 from threads t where t._id = vector_stores.subject) is null))`

/** Removes stores whose time has come, or whose integration or subject is gone, and files that were never finished. */
export async function removeEnded(tenant: Tenant & Lease) {
  const { db, write, signal } = tenant
  const go = () => signal.throwIfAborted()
  await write((tx) => endStores(tx, and(gt(sql`coalesce(${vectorStores.expires}, 1)`, 0), sql.raw(LOST))))
  for (;;) {
    const begun = and(eq(knowledgeFiles.ready, false), lt(knowledgeFiles.created, iso(now() - BEGUN)))
    const files = await db.select({ _id: knowledgeFiles._id }).from(knowledgeFiles).where(begun).limit(PORTION)
    if (!files.length) break
    await sweepFiles(
      tenant,
      files.map(({ _id }) => _id),
      go,
    )
  }
  for (;;) {
    const those = lte(vectorStores.expires, iso(now()))
    const stores = await db.select({ _id: vectorStores._id }).from(vectorStores).where(those).limit(PORTION)
    if (!stores.length) break
    for (const { _id } of stores) await removeStore(tenant, _id, go)
  }
}

async function removeStore(tenant: Pick<Tenant, 'db' | 'write'>, id: string, go: () => void) {
  for (;;) {
    const those = eq(knowledgeFiles.store, id)
    const files = await tenant.db.select({ _id: knowledgeFiles._id }).from(knowledgeFiles).where(those).limit(PORTION)
    if (!files.length) break
    await sweepFiles(
      tenant,
      files.map(({ _id }) => _id),
      go,
    )
  }
  await tenant.write((tx) => tx.delete(vectorStores).where(eq(vectorStores._id, id)).run())
}
