import { constants } from 'node:fs'
import { copyFile, link, mkdir, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { type ContentStore, requireContentHash } from '../../backups/contents/content-store'
import { fsyncDirectory } from '../../core/fsync'
import { tenantFolder } from '../../tenancy/databases'

/** Returns the folder of uploads of a tenant that are not complete yet. */
export const draftFolder = (tenant: string) => join(tenantFolder(tenant), 'files', '.drafts')

const pathIn = (folder: string, sha256: string) => join(folder, 'files', requireContentHash(sha256).slice(0, 2), sha256)

/** Keeps contents in the folder `files` of each tenant, whose folder `folderOf` returns. */
export function createFolderStore(folderOf: (tenant: string) => string): ContentStore {
  const pathOf = (tenant: string, sha256: string) => pathIn(folderOf(tenant), sha256)
  const place = async (path: string, put: () => Promise<unknown>) => {
    await mkdir(dirname(path), { recursive: true, mode: 0o700 })
    await put()
    await fsyncDirectory(dirname(path))
    await fsyncDirectory(dirname(dirname(path)))
  }
  return {
    has: async (tenant, sha256) => Bun.file(pathOf(tenant, sha256)).exists(),
    async put(tenant, sha256, draft) {
      const path = pathOf(tenant, sha256)
      await place(path, () => rename(draft, path))
    },
    async open(tenant, sha256) {
      const file = Bun.file(pathOf(tenant, sha256))
      return (await file.exists()) ? file : undefined
    },
    async copy(from, to, sha256) {
      const [source, path] = [pathIn(tenantFolder(from), sha256), pathOf(to, sha256)]
      try {
        await place(path, () => linkOrCopy(source, path))
        return true
      } catch (error) {
        if ((error as { code?: string }).code === 'ENOENT') return false
        throw error
      }
    },
    remove: async (tenant, sha256) => rm(pathOf(tenant, sha256), { force: true }),
  }
}

/** Contents never change, so that two tenants may share one on the disk. Not every file system has links. */
async function linkOrCopy(source: string, path: string) {
  await link(source, path).catch(async (error) => {
    if (error.code === 'EEXIST') return
    if (error.code === 'ENOENT') throw error
    await copyFile(source, path, constants.COPYFILE_FICLONE)
  })
}

/** Keeps contents in the folders of the tenants. */
export const folderStore = createFolderStore(tenantFolder)
