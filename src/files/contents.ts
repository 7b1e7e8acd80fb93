import { and, asc, eq, exists, gt, lt, not, notExists, or, sql } from 'drizzle-orm'
import { areContentsHeld } from '../backups/contents/content-hold'
import { listContentNames } from '../backups/contents/content-names'
import { HOUR_MS, now, toIsoString } from '../core/clock'
import { Problem } from '../core/problem'
import type { Lease } from '../jobs/with-lease'
import type { Tenant } from '../tenancy/tenants'
import type { Draft } from './drafts'
import { contentStore } from './stores/index'
import { fileContents, files } from './tables'

const MIN_UNUSED_MS = HOUR_MS // an upload that claimed a content has ended after so long
const CONTENTS_PER_BATCH = 100
const REMOVAL_POLL_MS = 50
const MAX_REMOVAL_POLLS = 100

const { sha256, claimed, removing, thumbnails } = fileContents

type Content = { sha256: string; size: number }

/**
 * Stores the content of a draft unless the tenant has it already, and keeps it from being removed for an hour, in which
 * a file has to refer to it.
 * @throws 503 FILE_STORE_UNAVAILABLE
 */
export async function storeContent(tenant: Tenant, draft: Omit<Draft, 'beginning'>) {
  for (let poll = 0; !(await claim(tenant, draft)); poll++) {
    if (poll === MAX_REMOVAL_POLLS)
      throw new Problem(503, 'FILE_STORE_UNAVAILABLE', 'This content is being removed. Upload it again in a moment.', {
        headers: { 'retry-after': '10' },
      })
    await Bun.sleep(REMOVAL_POLL_MS)
  }
  const store = contentStore()
  if (!(await store.has(tenant.tenant, draft.sha256, draft.size)))
    await store.put(tenant.tenant, draft.sha256, draft.path)
}

/** Keeps a content that is stored already for an hour. Returns whether it is; otherwise it has to be stored anew. */
export const keepContent = async (tenant: Tenant, content: Content) =>
  (await claim(tenant, content)) && (await contentStore().has(tenant.tenant, content.sha256, content.size))

/** Returns whether the content may be used; one that is being removed may not. */
const claim = ({ write }: Tenant, content: Content) =>
  write(async (tx) => {
    const row = { sha256: content.sha256, size: content.size, claimed: toIsoString(now()), removing: false }
    const set = { claimed: row.claimed }
    await tx
      .insert(fileContents)
      .values(row)
      .onConflictDoUpdate({ target: sha256, set, setWhere: eq(removing, false) })
    const stored = await tx.select({ removing }).from(fileContents).where(eq(sha256, content.sha256)).get()
    return !stored!.removing
  })

/** Stores a thumbnail beside the content of which it is, unless that is being removed. @throws 503 FILE_STORE_UNAVAILABLE */
export async function keepThumbnail(tenant: Tenant, of: string, name: string, { path, size }: Draft) {
  if (!(await recordThumbnail(tenant, of, name, size))) return
  await contentStore().put(tenant.tenant, name, path)
  // The removal of the content may have passed it meanwhile.
  const row = await tenant.db.select({ removing }).from(fileContents).where(eq(sha256, of)).get()
  if (!row || row.removing) await contentStore().remove(tenant.tenant, name)
}

/** Counts the bytes of a thumbnail once. It is recorded before it is stored, so that it is removed with the content. */
const recordThumbnail = ({ write }: Tenant, of: string, name: string, bytes: number) =>
  write(async (tx) => {
    const row = await tx.select({ removing, thumbnails }).from(fileContents).where(eq(sha256, of)).get()
    if (!row || row.removing) return false
    const all = { ...row.thumbnails, [name]: bytes }
    const thumbnailBytes = Object.values(all).reduce((sum, each) => sum + each, 0)
    await tx.update(fileContents).set({ thumbnails: all, thumbnailBytes }).where(eq(sha256, of))
    return true
  })

/** Removes contents that neither a file nor anything else has any more, with their thumbnails. */
export async function removeUnusedContents(tenant: Tenant & Lease) {
  if (await areContentsHeld(tenant)) return
  const used = await listContentNames(tenant.db.query)
  for (let after: string | undefined = ''; after !== undefined; ) {
    tenant.signal.throwIfAborted()
    const batch = await markUnused(tenant, after, (content) => used.has(content))
    for (const content of batch.unused) {
      // A copy of the database that was begun before the mark names it, so it has to be there until it is copied.
      if (await areContentsHeld(tenant)) return
      for (const name of [...Object.keys(content.thumbnails ?? {}), content.sha256])
        await contentStore().remove(tenant.tenant, name)
      await tenant.write((tx) => tx.delete(fileContents).where(and(eq(sha256, content.sha256), eq(removing, true))))
    }
    after = batch.last
  }
}

/**
 * Returns those of the next contents that no upload uses from now on, also those of an earlier removal that was
 * interrupted, and the last one that was looked at; undefined when there are no more. What is used may have been read
 * before: who needed a content since then has claimed it.
 */
const markUnused = ({ db, write }: Tenant, after: string, isUsed: (content: string) => boolean) =>
  write(async (tx) => {
    const hasNoFile = notExists(
      db
        .select({ one: sql`1` })
        .from(files)
        .where(eq(files.sha256, sql`${fileContents}.sha256`)),
    )
    const isOld = and(lt(claimed, toIsoString(now() - MIN_UNUSED_MS)), hasNoFile)
    const batch = await tx
      .select({ sha256, thumbnails, isRemoving: removing })
      .from(fileContents)
      .where(and(gt(sha256, after), or(eq(removing, true), isOld)))
      .orderBy(asc(sha256))
      .limit(CONTENTS_PER_BATCH)
    const unused = batch.filter((content) => content.isRemoving || !isUsed(content.sha256))
    for (const content of unused)
      await tx.update(fileContents).set({ removing: true }).where(eq(sha256, content.sha256))
    return { unused, last: batch.length < CONTENTS_PER_BATCH ? undefined : batch.at(-1)!.sha256 }
  })

/**
 * Returns how many bytes the contents that something names take, with their thumbnails. One that nothing names any more
 * stays on the disk for an hour, and makes room at once. What is being uploaded is reserved elsewhere.
 */
export async function sumContentBytes({ db }: Tenant): Promise<number> {
  const bytes = sql<number>`${fileContents.size} + ${fileContents.thumbnailBytes}`.mapWith(Number)
  const hasFile = exists(
    db
      .select({ one: sql`1` })
      .from(files)
      .where(eq(files.sha256, sql`${fileContents}.sha256`)),
  )
  const ofFiles = await db
    .select({ bytes: sql<number>`coalesce(sum(${bytes}), 0)`.mapWith(Number) })
    .from(fileContents)
    .where(hasFile)
    .get()
  const others = await db.select({ sha256, bytes }).from(fileContents).where(not(hasFile))
  if (!others.length) return ofFiles!.bytes
  const names = await listContentNames(db.query)
  return others.reduce((sum, content) => sum + (names.has(content.sha256) ? content.bytes : 0), ofFiles!.bytes)
}
