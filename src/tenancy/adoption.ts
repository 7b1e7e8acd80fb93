import { readdirSync, realpathSync } from 'node:fs'
import { basename, join, resolve } from 'node:path'
import { tenantMigrations } from '../../migrations'
import { config } from '../config'
import { iso, now } from '../core/clock'
import { Problem } from '../core/problem'
import { Moved } from '../storage/errors'
import { requireReadable } from './buckets'
import { type Entry, placeOf } from './homes'
import { giveHosts } from './hosts'
import { changing } from './memory'
import { registry } from './registry'
import { checkDatabase, folderOf, hasDatabase, storage } from './storage'
import { tenants } from './tables'
import { requireTenantId, showTenant, taken } from './tenants'

/** The folders that hold a database of no tenant that the registry knows, by name. */
export async function listUnknownFolders(): Promise<string[]> {
  const known = new Set((await registry.db.select({ id: tenants.id }).from(tenants)).map(({ id }) => id))
  return foldersWithData()
    .filter((name) => !known.has(name))
    .sort()
}

/**
 * Makes a tenant of a folder that no registry knows, with all that is in it; its id is the folder's name.
 * @throws 400 for a folder elsewhere, 404 for one without a database, 409 when its id is taken or its database damaged
 */
export async function adoptTenant(folder: string, hosts: string[] = []) {
  const id = basename(resolve(folder))
  requireTenantId(id)
  if (![resolve(folder), resolve(config.ATOLL_TENANTS, folder)].includes(resolve(folderOf(id))))
    throw new Problem(400, 'INVALID_INPUT', `Move the folder into ${config.ATOLL_TENANTS} first.`)
  if (!hasDatabase(id)) throw new Problem(404, 'FOLDER_NOT_FOUND', `There is no file ${join(folderOf(id), 'data.db')}.`)
  const owner = await ownerOf(id)
  if (owner !== undefined)
    throw new Problem(409, 'TENANT_EXISTS', `There is a tenant "${owner}" already, to which the folder belongs.`)
  const time = iso(now())
  const entry: Entry = { id, uid: Bun.randomUUIDv7(), status: 'active', home: '', moved: null, made: time }
  const flaws = await checkDatabase(placeOf(entry))
  if (flaws.length) {
    const message = `The database in ${folderOf(id)} is damaged: ${flaws[0]} Restore it from a backup first.`
    throw new Problem(409, 'DATABASE_DAMAGED', message, { details: flaws.map((message) => ({ path: '', message })) })
  }
  await takeOver(entry)
  await changing(registry, 'tenants', async (tx) => {
    await tx.insert(tenants).values({ ...entry, created: time })
    await giveHosts(tx, id, hosts)
  }).catch((error) => taken(error, id))
  return showTenant(id)
}

/** The tenant that has a folder already, also where this is only a link to it. */
async function ownerOf(folder: string): Promise<string | undefined> {
  const database = realpathSync(join(folderOf(folder), 'data.db'))
  const all = await registry.db.select({ id: tenants.id }).from(tenants)
  return all.find(({ id }) => {
    if (id === folder) return true
    return hasDatabase(id) && realpathSync(join(folderOf(id), 'data.db')) === database
  })?.id
}

/** Has a file be this tenant's. @throws 409 for one that was left by a move, or encrypted by keys that are not used here */
async function takeOver(entry: Entry) {
  const bulk = await storage.bulk(placeOf(entry), tenantMigrations)
  try {
    await bulk.alone(async ({ ask, serve }) => {
      const [left] = await ask("select 1 from sqlite_schema where name = 'moved'")
      const [[home] = []] = left ? await ask('select home from moved') : []
      if (typeof home === 'string') throw new Moved(home)
      await requireReadable(entry.id, ask)
      await serve()
    })
  } catch (error) {
    if (!(error instanceof Moved)) throw error
    const message = `The tenant of this folder was moved to ${error.home}. What is here is what it left behind.`
    throw new Problem(409, 'TENANT_MOVED', message)
  } finally {
    await bulk.close()
  }
}

/** The folders that hold a database, by name. */
export function foldersWithData(): string[] {
  try {
    return readdirSync(config.ATOLL_TENANTS).filter((name) => !name.startsWith('.') && hasDatabase(name))
  } catch {
    return [] // nothing was ever kept here
  }
}
