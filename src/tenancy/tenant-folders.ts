import { and, eq } from 'drizzle-orm'
import { now, toIsoString } from '../core/clock'
import { log } from '../core/log'
import { Problem } from '../core/problem'
import type { Tx } from '../storage/port'
import { hasTenantFolder } from './databases'
import { registry } from './registry'
import { remains, tenants } from './tables'
import { moveToTrash } from './tenant-files'

const SCHEME = 'folder://'

type FolderOwner = { id: string; uid: string }
type Remains = typeof remains.$inferSelect

const isFolder = ({ home }: Remains) => home.startsWith(SCHEME)
const toOwner = ({ uid, home }: Remains): FolderOwner => ({ uid, id: home.slice(SCHEME.length) })
const rowOf = ({ id, uid }: FolderOwner) => and(eq(remains.uid, uid), eq(remains.home, SCHEME + id))

/**
 * Records that a folder belongs to no registered tenant: it is about to go to the trash, or to become a tenant. Who finds
 * the record later knows that this was interrupted.
 */
export const recordFolder = (tx: Tx, { id, uid }: FolderOwner) =>
  tx.insert(remains).values({ uid, home: SCHEME + id, since: toIsoString(now()) })

/** Removes the record of a folder. Returns whether there was one. */
export const forgetFolder = async (tx: Tx, owner: FolderOwner): Promise<boolean> =>
  (await tx.delete(remains).where(rowOf(owner)).returning()).length > 0

/** Removes the record of a folder that becomes a tenant. @throws 409 TENANT_CHANGED when it was taken for abandoned */
export async function claimFolder(tx: Tx, owner: FolderOwner) {
  if (await forgetFolder(tx, owner)) return
  throw new Problem(409, 'TENANT_CHANGED', `The copy "${owner.id}" was taken for an abandoned one. Start again.`)
}

/** Returns the ids of folders that an interrupted deletion or restore has left. */
export async function listAbandonedFolders(): Promise<string[]> {
  const rows = await registry.db.select().from(remains)
  return rows.filter(isFolder).flatMap((row) => (hasTenantFolder(toOwner(row).id) ? toOwner(row).id : []))
}

/** Moves folders to the trash that an interrupted deletion or restore has left: that of an id, or all. Returns their ids. */
export async function trashAbandonedFolders(id?: string): Promise<string[]> {
  const rows = (await registry.db.select().from(remains)).filter(isFolder).map(toOwner)
  const trashed: string[] = []
  for (const owner of rows.filter((row) => id === undefined || row.id === id)) {
    const isAbandoned = await registry.write(
      async (tx) => (await forgetFolder(tx, owner)) && !(await tx.$count(tenants, eq(tenants.id, owner.id))),
    )
    const trash = isAbandoned && moveToTrash(owner.id)
    if (!trash) continue
    trashed.push(owner.id)
    log.warn({
      event: 'abandoned-folder',
      tenant: owner.id,
      trash,
      message: 'A deletion or a restore was interrupted.',
    })
  }
  return trashed
}
