import { existsSync, mkdirSync, readdirSync, renameSync, rmdirSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { config } from '../config'
import { now } from '../core/clock'
import { fsyncDirectory } from '../core/fsync'
import { createTenantFolder, hasTenantFolder, tenantFolder } from './databases'

const TRASH = '.trash'
const DATABASE = 'data.db'
/** What stays in the folder of a tenant whose database leaves it: uploads, and claims on them (`content-hold.ts`). */
const isUpload = (name: string) => name === 'files' || name.startsWith('content-copy-')

const inDataFolder = (path: string) => join(config.ATOLL_TENANTS, path)

/** Returns where files of a tenant go that are not served any more, relative to the data folder. */
export const toTrashPath = (tenant: string) => join(TRASH, `${tenant}-${now()}`)

/** Moves a tenant's files to the trash. Returns their new path, or undefined when there are no files. */
export function moveToTrash(tenant: string): string | undefined {
  if (!hasTenantFolder(tenant)) return
  const target = inDataFolder(toTrashPath(tenant))
  mkdirSync(dirname(target), { recursive: true, mode: 0o700 })
  renameSync(tenantFolder(tenant), target)
  return target
}

/**
 * Moves a tenant's database to a path in the trash, relative to the data folder. The folder with the files that its users
 * uploaded stays in place, because uploads may be under way. Returns the path, or undefined when there is no database.
 */
export function moveDatabaseToTrash(tenant: string, path = toTrashPath(tenant)): string | undefined {
  if (!hasTenantFolder(tenant)) return
  const names = readdirSync(tenantFolder(tenant)).filter((name) => !isUpload(name))
  if (!names.length) return
  const target = inDataFolder(path)
  mkdirSync(target, { recursive: true, mode: 0o700 })
  // The database goes first: nobody opens it without its log.
  for (const name of names.sort(databaseFirst)) renameSync(join(tenantFolder(tenant), name), join(target, name))
  removeEmptyFolder(tenantFolder(tenant))
  return target
}

function removeEmptyFolder(path: string) {
  try {
    rmdirSync(path)
  } catch {
    // Uploads are in it.
  }
}

const databaseFirst = (one: string, other: string) => Number(other === DATABASE) - Number(one === DATABASE)

/** Moves the uploads in a folder to those that a tenant has. Contents of the same name are equal. */
export function mergeUploads(folder: string, tenant: string) {
  const uploads = join(folder, 'files')
  if (!existsSync(uploads)) return
  for (const shard of readdirSync(uploads).filter((name) => !name.startsWith('.'))) {
    const own = join(tenantFolder(tenant), 'files', shard)
    mkdirSync(own, { recursive: true, mode: 0o700 })
    for (const name of readdirSync(join(uploads, shard))) renameSync(join(uploads, shard, name), join(own, name))
  }
  rmSync(uploads, { recursive: true })
}

/** Where the new database of a tenant is staged, and where the one before goes; both relative to the data folder. */
export type DatabaseExchange = { tenant: string; staged: string; trash: string }

/** Puts the staged database in the place of that of a tenant. `undoExchange` takes it back, however far it has come. */
export async function exchangeDatabase({ tenant, staged, trash }: DatabaseExchange) {
  moveDatabaseToTrash(tenant, trash)
  createTenantFolder(tenant)
  renameSync(join(inDataFolder(staged), DATABASE), join(tenantFolder(tenant), DATABASE))
  mergeUploads(inDataFolder(staged), tenant)
  await syncFolders([trash, tenant, dirname(trash), ''])
}

/** Brings the database before back to its place. It may be called again when it was interrupted. */
export async function undoExchange({ tenant, staged, trash }: DatabaseExchange) {
  const [stagedFolder, folder, trashFolder] = [inDataFolder(staged), tenantFolder(tenant), inDataFolder(trash)]
  const isExchanged = existsSync(join(folder, DATABASE)) && !existsSync(join(stagedFolder, DATABASE))
  // Without its staged folder nothing but the trash tells that there was an exchange.
  if (isExchanged && (existsSync(stagedFolder) || existsSync(join(trashFolder, DATABASE)))) {
    mkdirSync(stagedFolder, { recursive: true, mode: 0o700 })
    for (const name of readdirSync(folder).filter((name) => !isUpload(name)))
      renameSync(join(folder, name), join(stagedFolder, name))
  }
  if (!existsSync(trashFolder)) return
  createTenantFolder(tenant)
  for (const name of readdirSync(trashFolder).sort(databaseFirst).reverse())
    renameSync(join(trashFolder, name), join(folder, name))
  rmdirSync(trashFolder)
  await syncFolders([tenant, dirname(trash), ''])
}

async function syncFolders(paths: string[]) {
  for (const path of paths.map(inDataFolder)) if (existsSync(path)) await fsyncDirectory(path)
}
