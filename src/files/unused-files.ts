import { and, eq, gt, inArray, isNotNull, isNull, lt, sql } from 'drizzle-orm'
import type { DeletedOwner } from '../accounts/owner-deleted'
import { toChunks } from '../core/chunks'
import { DAY_MS, now, toIsoString } from '../core/clock'
import { isNamedSql } from '../entities/file-references'
import type { Lease } from '../jobs/with-lease'
import type { Tx } from '../storage/port'
import type { Tenant } from '../tenancy/tenants'
import { files } from './tables'

const UNUSED_MS = DAY_MS // after so long a file that no entity names is removed
const FILES_PER_READ = 200
const FILES_PER_CLAIM = 500

const { _id, keep, unused, owner } = files
const isNamed = sql.raw(isNamedSql('files._id'))

/** Keeps files from being removed as unused for another day, and returns the ids of those that exist. */
export async function claimFiles(tx: Tx, ids: string[]): Promise<Set<string>> {
  const existing = new Set<string>()
  for (const chunk of toChunks(ids, FILES_PER_CLAIM)) {
    const rows = await tx.select({ _id }).from(files).where(inArray(_id, chunk))
    for (const row of rows) existing.add(row._id)
    await tx
      .update(files)
      .set({ unused: null })
      .where(and(inArray(_id, chunk), isNotNull(unused)))
  }
  return existing
}

/** Removes files that no entity has named for a day, except those that are to be kept, and notes which are unused now. */
export async function removeUnusedFiles({ db, write, signal }: Tenant & Lease) {
  // While an index of an earlier version is being built, it does not tell all that entities name.
  if (await hasIncompleteIndex(db)) return
  for (let last = ''; ; ) {
    signal.throwIfAborted()
    const rows = await db
      .select({ _id, unused, named: sql<number | boolean>`${isNamed}` })
      .from(files)
      .where(and(eq(keep, false), gt(_id, last)))
      .orderBy(_id)
      .limit(FILES_PER_READ)
    if (!rows.length) return
    last = rows.at(-1)!._id
    const before = toIsoString(now() - UNUSED_MS)
    const used = rows.filter((row) => row.named && row.unused !== null).map((row) => row._id)
    const newlyUnused = rows.filter((row) => !row.named && row.unused === null).map((row) => row._id)
    const expired = rows.filter((row) => !row.named && row.unused !== null && row.unused < before).map((row) => row._id)
    if (!used.length && !newlyUnused.length && !expired.length) continue
    await write(async (tx) => {
      if (used.length) await tx.update(files).set({ unused: null }).where(inArray(_id, used))
      if (newlyUnused.length)
        await tx
          .update(files)
          .set({ unused: toIsoString(now()) })
          .where(and(inArray(_id, newlyUnused), isNull(unused)))
      if (expired.length)
        await tx.delete(files).where(and(inArray(_id, expired), lt(unused, before), sql`not ${isNamed}`))
    })
  }
}

const hasIncompleteIndex = async (db: Pick<Tenant['db'], 'query'>) =>
  (await db.query("select 1 from field_indexes where reason = 'file' and state = 'building' limit 1")).length > 0

/** Removes the files of a deleted user. Those that entities name stay until no entity names them any more. */
export async function deleteOwnerFiles(_: Pick<Tenant, 'tenant'>, tx: Tx, { type, id }: DeletedOwner) {
  if (type !== 'user') return
  await tx.delete(files).where(and(eq(owner, id), sql`not ${isNamed}`))
  await tx.update(files).set({ keep: false }).where(eq(owner, id))
}
