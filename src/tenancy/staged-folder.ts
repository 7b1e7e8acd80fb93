import { existsSync, mkdirSync, readdirSync, rmSync, statfsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { config } from '../config'
import { DAY_MS } from '../core/clock'
import { StorageFull } from '../storage/errors'
import type { DatabaseLocation } from '../storage/port'

/** The folder of copies that are being made, which no tenant is served from. */
export const STAGING = '.staging'

/** A folder of its own for a copy, on the disk of the data. It is removed when this is disposed of. */
export type StagedFolder = Disposable & {
  name: string
  path: string
  locate(identity: string): DatabaseLocation
  file: string
}

/**
 * Creates a folder for a copy of so many bytes, and removes abandoned ones.
 * @throws 507 STORAGE_FULL when the disk has no room for it
 */
export function createStagedFolder(bytes: number): StagedFolder {
  const staging = join(config.ATOLL_TENANTS, STAGING)
  mkdirSync(staging, { recursive: true, mode: 0o700 })
  removeAbandonedFolders()
  const { bavail, bsize } = statfsSync(staging)
  if (bavail * bsize < bytes + config.ATOLL_MIN_FREE)
    throw new StorageFull(`A copy of ${bytes} bytes would leave less than ATOLL_MIN_FREE on the disk of ${staging}.`)
  const name = Bun.randomUUIDv7()
  const path = join(staging, name)
  mkdirSync(path, { mode: 0o700 })
  return {
    name,
    path,
    file: join(path, 'data.db'),
    locate: (identity) => ({ tenant: '', file: `${STAGING}/${name}/data.db`, identity }),
    [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }),
  }
}

/** Removes copies that were begun more than a day ago, by processes that died. Returns their number. */
export function removeAbandonedFolders(): number {
  const staging = join(config.ATOLL_TENANTS, STAGING)
  if (!existsSync(staging)) return 0
  const abandoned = readdirSync(staging)
    .map((name) => join(staging, name))
    .filter((path) => (statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? Date.now()) < Date.now() - DAY_MS)
  for (const path of abandoned) rmSync(path, { recursive: true, force: true })
  return abandoned.length
}
