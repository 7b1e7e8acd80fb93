import { readdirSync, realpathSync } from 'node:fs'
import { basename, join, resolve } from 'node:path'
import { tenantMigrations } from '../../migrations'
import { config } from '../config'
import { now, toIsoString } from '../core/clock'
import { Problem } from '../core/problem'
import { TenantMoved } from '../storage/errors'
import { assertDecryptable } from './buckets'
import { writeInvalidating } from './cache'
import { checkDatabase, databases, hasDatabase, tenantFolder } from './databases'
import { assignHosts } from './hosts'
import { locationOf, type TenantRecord } from './placement'
import { registry } from './registry'
import { tenants } from './tables'
import { assertTenantId, getTenantInfo, throwConflict } from './tenants'

/** The folders that hold a database of no tenant that the registry knows, by name. */
export async function listUnknownFolders(): Promise<string[]> {
  const registeredIds = new Set((await registry.db.select({ id: tenants.id }).from(tenants)).map(({ id }) => id))
  return listDataFolders()
    .filter((name) => !registeredIds.has(name))
    .sort()
}

/**
 * Makes a tenant of a folder that no registry knows, with all that is in it; its id is the folder's name.
 * @throws 400 for a folder elsewhere, 404 for one without a database, 409 when its id is taken or its database damaged
 */
export async function adoptTenant(folder: string, hosts: string[] = []) {
  const id = basename(resolve(folder))
  assertTenantId(id)
  if (![resolve(folder), resolve(config.ATOLL_TENANTS, folder)].includes(resolve(tenantFolder(id))))
    throw new Problem(400, 'INVALID_INPUT', `Move the folder into ${config.ATOLL_TENANTS} first.`)
  if (!hasDatabase(id))
    throw new Problem(404, 'FOLDER_NOT_FOUND', `There is no file ${join(tenantFolder(id), 'data.db')}.`)
  const owner = await findFolderOwner(id)
  if (owner !== undefined)
    throw new Problem(409, 'TENANT_EXISTS', `The folder already belongs to the tenant "${owner}".`)
  const time = toIsoString(now())
  const entry: TenantRecord = { id, uid: Bun.randomUUIDv7(), status: 'active', home: '', moved: null, made: time }
  const flaws = await checkDatabase(locationOf(entry))
  if (flaws.length) {
    const message = `The database in ${tenantFolder(id)} is damaged: ${flaws[0]} Restore it from a backup first.`
    throw new Problem(409, 'DATABASE_DAMAGED', message, { details: flaws.map((message) => ({ path: '', message })) })
  }
  await takeOverDatabase(entry)
  await writeInvalidating(registry, 'tenants', async (tx) => {
    await tx.insert(tenants).values({ ...entry, created: time })
    await assignHosts(tx, id, hosts)
  }).catch((error) => throwConflict(error, id))
  return getTenantInfo(id)
}

/** The tenant that has a folder already, also where this is only a link to it. */
async function findFolderOwner(folder: string): Promise<string | undefined> {
  const database = realpathSync(join(tenantFolder(folder), 'data.db'))
  const tenantIds = await registry.db.select({ id: tenants.id }).from(tenants)
  return tenantIds.find(({ id }) => {
    if (id === folder) return true
    return hasDatabase(id) && realpathSync(join(tenantFolder(id), 'data.db')) === database
  })?.id
}

/** Has a file be this tenant's. @throws 409 for one that was left by a move, or encrypted by keys that are not used here */
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

/** The folders that hold a database, by name. */
export function listDataFolders(): string[] {
  try {
    return readdirSync(config.ATOLL_TENANTS).filter((name) => !name.startsWith('.') && hasDatabase(name))
  } catch {
    return [] // nothing was ever kept here
  }
}
