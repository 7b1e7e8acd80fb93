import { and, eq, lt, notExists, or, sql } from 'drizzle-orm'
import { areContentsHeld } from '../backups/contents/content-hold'
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

const { sha256, claimed, removing } = fileContents

/**
 * Stores the content of a draft unless the tenant has it already, and keeps it from being removed for an hour, in which
 * a file has to refer to it.
 * @throws 503 FILE_STORE_UNAVAILABLE
 */
export async function storeContent(tenant: Tenant, draft: Draft) {
  for (let poll = 0; !(await claim(tenant, draft)); poll++) {
    if (poll === MAX_REMOVAL_POLLS)
      throw new Problem(503, 'FILE_STORE_UNAVAILABLE', 'This content is being removed. Upload it again in a moment.', {
        headers: { 'retry-after': '10' },
      })
    await Bun.sleep(REMOVAL_POLL_MS)
  }
  const store = contentStore()
  if (!(await store.has(tenant.tenant, draft.sha256))) await store.put(tenant.tenant, draft.sha256, draft.path)
}

/** Returns whether the content may be used; one that is being removed may not. */
const claim = ({ write }: Tenant, draft: Draft) =>
  write(async (tx) => {
    const row = { sha256: draft.sha256, size: draft.size, claimed: toIsoString(now()), removing: false }
    const set = { claimed: row.claimed }
    await tx
      .insert(fileContents)
      .values(row)
      .onConflictDoUpdate({ target: sha256, set, setWhere: eq(removing, false) })
    const stored = await tx.select({ removing }).from(fileContents).where(eq(sha256, draft.sha256)).get()
    return !stored!.removing
  })

/** Removes contents that no file has any more. */
export async function removeUnusedContents(tenant: Tenant & Lease) {
  for (;;) {
    tenant.signal.throwIfAborted()
    const batch = await markUnused(tenant)
    for (const content of batch) {
      await contentStore().remove(tenant.tenant, content.sha256)
      await tenant.write((tx) => tx.delete(fileContents).where(and(eq(sha256, content.sha256), eq(removing, true))))
    }
    if (batch.length < CONTENTS_PER_BATCH) return
  }
}

/** Returns contents that no upload uses from now on, also those of an earlier removal that was interrupted. */
const markUnused = ({ db, write }: Tenant) =>
  write(async (tx) => {
    const areHeld = await areContentsHeld(tx)
    const hasNoFile = notExists(
      db
        .select({ one: sql`1` })
        .from(files)
        .where(eq(files.sha256, sql`${fileContents}.sha256`)),
    )
    const isUnused = and(lt(claimed, toIsoString(now() - MIN_UNUSED_MS)), hasNoFile)
    const batch = await tx
      .select({ sha256 })
      .from(fileContents)
      // What a copy of the database names has to be there until it is copied, too.
      .where(or(eq(removing, true), areHeld ? undefined : isUnused))
      .limit(CONTENTS_PER_BATCH)
    for (const content of batch) await tx.update(fileContents).set({ removing: true }).where(eq(sha256, content.sha256))
    return batch
  })

/** Returns how many bytes the contents of a tenant take. */
export async function sumContentBytes({ db }: Tenant): Promise<number> {
  const row = await db
    .select({ bytes: sql<number>`coalesce(sum(${fileContents.size}), 0)`.mapWith(Number) })
    .from(fileContents)
    .get()
  return row!.bytes
}
