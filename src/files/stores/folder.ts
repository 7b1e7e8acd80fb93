import { constants } from 'node:fs'
import { copyFile, link, mkdir, rename, rm, stat } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { type ContentStore, requireContentName } from '../../backups/contents/content-store'
import { fsyncDirectory } from '../../core/fsync'
import { tenantFolder } from '../../tenancy/databases'

/** Returns the folder of uploads of a tenant that are not complete yet. */
export const draftFolder = (tenant: string) => join(tenantFolder(tenant), 'files', '.drafts')

/** Absolute, because processes with another working directory read contents. */
const pathIn = (folder: string, name: string) => resolve(folder, 'files', requireContentName(name).slice(0, 2), name)

/** Keeps contents in the folder `files` of each tenant, whose folder `folderOf` returns. */
export function createFolderStore(folderOf: (tenant: string) => string): ContentStore {
  const pathOf = (tenant: string, name: string) => pathIn(folderOf(tenant), name)
  const place = async (path: string, put: () => Promise<unknown>) => {
    await mkdir(dirname(path), { recursive: true, mode: 0o700 })
    await put()
    await fsyncDirectory(dirname(path))
    await fsyncDirectory(dirname(dirname(path)))
  }
  return {
    async has(tenant, name, size) {
      const stats = await stat(pathOf(tenant, name)).catch(() => undefined) // there is none
      return !!stats?.isFile() && (size === undefined || stats.size === size)
    },
    async put(tenant, name, draft) {
      const path = pathOf(tenant, name)
      await place(path, () => rename(draft, path))
    },
    async open(tenant, name) {
      const file = Bun.file(pathOf(tenant, name))
      return (await file.exists()) ? file : undefined
    },
    async copy(from, to, name) {
      const [source, path] = [pathIn(tenantFolder(from), name), pathOf(to, name)]
      try {
        await place(path, () => linkOrCopy(source, path))
        return true
      } catch (error) {
        if ((error as { code?: string }).code === 'ENOENT') return false
        throw error
      }
    },
    remove: async (tenant, name) => rm(pathOf(tenant, name), { force: true }),
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
