import { existsSync, mkdirSync, readFileSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { config } from '../config'
import { now } from '../core/clock'
import { Sqlite } from '../storage/engines/sqlite/engine'
import { Storage } from '../storage/store'

const FILES_PER_TENANT = 5
const FILES_FOR_THE_REST = 512 // connections of callers, for the most part

const engine = new Sqlite({
  driver: config.ATOLL_SQLITE_DRIVER,
  folder: config.ATOLL_TENANTS,
  synchronous: config.ATOLL_DURABILITY,
  patience: config.ATOLL_WRITE_DEADLINE,
})

/** How many tenants may be open at once. */
export const openLimit = config.ATOLL_OPEN_TENANTS || derivedLimit()

/** The one place that knows which engine serves. */
export const storage = new Storage(engine, { open: openLimit, deadline: config.ATOLL_WRITE_DEADLINE })

/** Makes this process the only server of the data; throws when another is. */
export const ownData = () => engine.own()

export const folderOf = (tenant: string) => join(config.ATOLL_TENANTS, tenant)
export const makeFolder = (tenant: string) => void mkdirSync(folderOf(tenant), { recursive: true, mode: 0o700 })
export const hasFolder = (tenant: string) => existsSync(folderOf(tenant))

/** Moves a tenant's files to where nobody serves them, and returns the place. */
export function discard(tenant: string): string | undefined {
  if (!hasFolder(tenant)) return
  const trash = join(config.ATOLL_TENANTS, '.trash')
  mkdirSync(trash, { recursive: true, mode: 0o700 })
  const place = join(trash, `${tenant}-${now()}`)
  renameSync(folderOf(tenant), place)
  return place
}

function derivedLimit() {
  try {
    const [, files] = readFileSync('/proc/self/limits', 'utf8').match(/^Max open files +(\d+)/m) ?? []
    return Math.min(5_000, Math.max(10, Math.floor((Number(files) - FILES_FOR_THE_REST) / FILES_PER_TENANT)))
  } catch {
    return 200 // a system that doesn't tell
  }
}
