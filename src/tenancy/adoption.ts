import { readdirSync, realpathSync } from 'node:fs'
import { basename, join, resolve } from 'node:path'
import { tenantMigrations } from '../../migrations'
import { config } from '../config'
import { now, toIsoString } from '../core/clock'
import { Problem } from '../core/problem'
import { TenantMoved } from '../storage/errors'
import { assertDecryptable } from './buckets'
import { writeInvalidating } from './cache'
import { keepContents } from './content-remains'
import { checkDatabase, databases, hasDatabase, tenantFolder } from './databases'
import { rememberFirstTenant } from './default-tenant'
import { assignHosts } from './hosts'
import { locationOf, type TenantRecord } from './placement'
import { registry } from './registry'
import { tenants } from './tables'
import { listAbandonedFolders } from './tenant-folders'
import { getTenantInfo } from './tenant-list'
import { assertTenantId, throwConflict } from './tenants'

/**
 * Returns the sorted names of the folders with a database whose tenant is not in the registry, without those that an
 * interrupted deletion or restore has left.
 */
export async function listUnknownFolders(): Promise<string[]> {
  const registeredIds = (await registry.db.query('select id from tenants')).map(([id]) => id)
  const explainedIds = new Set([...registeredIds, ...(await listAbandonedFolders())])
  return listDataFolders((name) => !explainedIds.has(name)).sort()
}

/**
 * Registers a folder with a database as a tenant and returns the tenant. Its id is the folder's name.
 * @throws 400 INVALID_INPUT for a folder outside ATOLL_TENANTS or an invalid id
 * @throws 404 FOLDER_NOT_FOUND when the folder has no database
 * @throws 409 TENANT_EXISTS when the id or the folder is taken, HOST_TAKEN
 * @throws 409 DATABASE_DAMAGED, TENANT_DELETED, TENANT_MOVED or OTHER_KEYS when the database cannot be served here
 */
export async function adoptTenant(folder: string, hosts: string[] = []) {
  const id = basename(resolve(folder))
  assertTenantId(id)
  if (![resolve(folder), resolve(config.ATOLL_TENANTS, folder)].includes(resolve(tenantFolder(id))))
    throw new Problem(400, 'INVALID_INPUT', `Move the folder into ${config.ATOLL_TENANTS} first.`)
  if ((await listAbandonedFolders()).includes(id)) {
    const message = `The tenant of ${tenantFolder(id)} was being deleted, or never completely restored. Run "atoll doctor --fix", which moves the folder to .trash.`
    throw new Problem(409, 'TENANT_DELETED', message)
  }
  if (!hasDatabase(id))
    throw new Problem(404, 'FOLDER_NOT_FOUND', `There is no file ${join(tenantFolder(id), 'data.db')}.`)
  const owner = await findFolderOwner(id)
  if (owner !== undefined)
    throw new Problem(409, 'TENANT_EXISTS', `The folder already belongs to the tenant "${owner}".`)
  const time = toIsoString(now())
  const entry: TenantRecord = { id, uid: Bun.randomUUIDv7(), status: 'active', home: '', moved: null, made: time }
  const errors = await checkDatabase(locationOf(entry))
  if (errors.length) {
    const message = `The database in ${tenantFolder(id)} is damaged: ${errors[0]} Restore it from a backup first.`
    throw new Problem(409, 'DATABASE_DAMAGED', message, { details: errors.map((message) => ({ path: '', message })) })
  }
  await takeOverDatabase(entry)
  await writeInvalidating(registry, 'tenants', async (tx) => {
    await keepContents(tx, id)
    await tx.insert(tenants).values({ ...entry, created: time })
    await rememberFirstTenant(tx, id)
    await assignHosts(tx, id, hosts)
  }).catch((error) => throwConflict(error, id))
  return getTenantInfo(id)
}

/** Returns the id of the tenant that already has a folder, also when the folder is a symbolic link to the tenant's. */
async function findFolderOwner(folder: string): Promise<string | undefined> {
  const database = realpathSync(join(tenantFolder(folder), 'data.db'))
  const tenantIds = await registry.db.select({ id: tenants.id }).from(tenants)
  return tenantIds.find(({ id }) => {
    if (id === folder) return true
    return hasDatabase(id) && realpathSync(join(tenantFolder(id), 'data.db')) === database
  })?.id
}

/**
 * Marks a file as this tenant's.
 * @throws 409 TENANT_MOVED when the file was left by a move
 * @throws 409 OTHER_KEYS when it is encrypted with keys that are not used here
 */
async function takeOverDatabase(entry: TenantRecord) {
  const tenantCopy = await databases.openTenantCopy(locationOf(entry), tenantMigrations)
  try {
    await tenantCopy.runExclusive(async ({ query, markServing }) => {
      const [movedTable] = await query("select 1 from sqlite_schema where name = 'moved'")
      const [[home] = []] = movedTable ? await query('select home from moved') : []
      if (typeof home === 'string') throw new TenantMoved(home)
      await assertDecryptable(entry.id, query)
      await markServing()
    })
  } catch (error) {
    if (!(error instanceof TenantMoved)) throw error
    const message = `The tenant of this folder was moved to ${error.home}. The files here are left over from that move.`
    throw new Problem(409, 'TENANT_MOVED', message)
  } finally {
    await tenantCopy.close()
  }
}

/** Returns the names of the folders that contain a database. */
export function listDataFolders(isWanted = (_name: string) => true): string[] {
  try {
    // A server may have thousands of folders, so only the wanted ones are looked into.
    return readdirSync(config.ATOLL_TENANTS).filter(
      (name) => !name.startsWith('.') && isWanted(name) && hasDatabase(name),
    )
  } catch {
    return [] // the folder was never created
  }
}
