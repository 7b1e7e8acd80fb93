import { mkdir, rename, rm } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { fsyncDirectory } from '../../core/fsync'
import { tenantFolder } from '../../tenancy/databases'
import type { ContentStore } from './content-store'

/** Returns the folder of uploads of a tenant that are not complete yet. */
export const draftFolder = (tenant: string) => join(tenantFolder(tenant), 'files', '.drafts')

/** Absolute, because processes with another working directory read contents. */
const contentPath = (tenant: string, name: string) => resolve(tenantFolder(tenant), 'files', name.slice(0, 2), name)

/** Keeps contents in the folder `files` of each tenant. */
export const folderStore: ContentStore = {
  has: (tenant, name) => Bun.file(contentPath(tenant, name)).exists(),
  async put(tenant, name, draft) {
    const path = contentPath(tenant, name)
    await mkdir(dirname(path), { recursive: true, mode: 0o700 })
    await rename(draft, path)
    await fsyncDirectory(dirname(path))
    await fsyncDirectory(dirname(dirname(path)))
  },
  async open(tenant, name) {
    const file = Bun.file(contentPath(tenant, name))
    return (await file.exists()) ? file : undefined
  },
  remove: (tenant, name) => rm(contentPath(tenant, name), { force: true }),
}
