import { mkdirSync, readdirSync, rmSync, statfsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { config } from '../config'
import { DAY_MS } from '../core/clock'
import { StorageFull } from '../storage/errors'
import type { DatabaseLocation } from '../storage/port'

/** The folder of copies that are being made, which no tenant is served from. */
const STAGING = '.staging'

/** A folder of its own for a copy, on the disk of the data. It is removed when this is disposed of. */
export type StagedFolder = Disposable & { path: string; locate(identity: string): DatabaseLocation; file: string }

/**
 * Creates a folder for a copy of so many bytes, and removes those that were left by processes that died.
 * @throws 507 STORAGE_FULL when the disk has no room for it
 */
export function createStagedFolder(bytes: number): StagedFolder {
  const staging = join(config.ATOLL_TENANTS, STAGING)
  mkdirSync(staging, { recursive: true, mode: 0o700 })
  removeOldFolders(staging)
  const { bavail, bsize } = statfsSync(staging)
  if (bavail * bsize < bytes + config.ATOLL_MIN_FREE)
    throw new StorageFull(`A copy of ${bytes} bytes would leave less than ATOLL_MIN_FREE on the disk of ${staging}.`)
  const name = Bun.randomUUIDv7()
  const path = join(staging, name)
  mkdirSync(path, { mode: 0o700 })
  return {
    path,
    file: join(path, 'data.db'),
    locate: (identity) => ({ tenant: '', file: `${STAGING}/${name}/data.db`, identity }),
    [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }),
  }
}

function removeOldFolders(staging: string) {
  for (const name of readdirSync(staging)) {
    const path = join(staging, name)
    const changed = statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? Date.now()
    if (changed < Date.now() - DAY_MS) rmSync(path, { recursive: true, force: true })
  }
}
