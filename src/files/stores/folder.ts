import { mkdir, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fsyncDirectory } from '../../core/fsync'
import { tenantFolder } from '../../tenancy/databases'
import type { ContentStore } from './content-store'

/** Returns the folder of uploads of a tenant that are not complete yet. */
export const draftFolder = (tenant: string) => join(tenantFolder(tenant), 'files', '.drafts')

const contentPath = (tenant: string, sha256: string) => join(tenantFolder(tenant), 'files', sha256.slice(0, 2), sha256)

/** Keeps contents in the folder `files` of each tenant. */
export const folderStore: ContentStore = {
  has: (tenant, sha256) => Bun.file(contentPath(tenant, sha256)).exists(),
  async put(tenant, sha256, draft) {
    const path = contentPath(tenant, sha256)
    await mkdir(dirname(path), { recursive: true, mode: 0o700 })
    await rename(draft, path)
    await fsyncDirectory(dirname(path))
    await fsyncDirectory(dirname(dirname(path)))
  },
  async open(tenant, sha256) {
    const file = Bun.file(contentPath(tenant, sha256))
    return (await file.exists()) ? file : undefined
  },
  remove: (tenant, sha256) => rm(contentPath(tenant, sha256), { force: true }),
}
