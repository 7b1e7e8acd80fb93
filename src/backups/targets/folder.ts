import { mkdir, open, opendir, readdir, rename, rm } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { fsyncDirectory } from '../../core/fsync'
import type { BackupTarget } from './backup-target'

/** Keeps backups in a folder, which is created when it is missing. */
export function createFolderTarget(folder: string): BackupTarget {
  const toPath = (path: string) => join(resolve(folder), path)
  return {
    addressOf: toPath,
    async write(path, content) {
      const file = toPath(path)
      const draft = `${file}.partial`
      await mkdir(dirname(file), { recursive: true, mode: 0o700 })
      try {
        const output = await open(draft, 'w', 0o600)
        try {
          for await (const chunk of content) await output.writeFile(chunk)
          await output.sync()
        } finally {
          await output.close()
        }
        await rename(draft, file)
      } catch (error) {
        await rm(draft, { force: true })
        throw error
      }
      await fsyncDirectory(dirname(file))
    },
    async read(path) {
      const file = Bun.file(toPath(path))
      return (await file.exists()) ? file.stream() : undefined
    },
    async list(path) {
      const names = await readdir(toPath(path)).catch((error) => {
        if (['ENOENT', 'ENOTDIR'].includes(error.code)) return []
        throw error
      })
      return names.filter((name) => !name.endsWith('.partial')).sort()
    },
    async probe() {
      const directory = await opendir(folder)
      await directory.close()
    },
    removeFile: (path) => rm(toPath(path), { force: true }),
    removeFolder: (path) => rm(toPath(path), { recursive: true, force: true }),
  }
}
