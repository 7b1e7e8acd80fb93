import { link, mkdir, open, opendir, readdir, rename, rm, stat } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { fsyncDirectory } from '../../core/fsync'
import type { BackupTarget } from './backup-target'

/** Keeps backups in a folder, which is created when it is missing. */
export function createFolderTarget(folder: string): BackupTarget {
  const toPath = (path: string) => join(resolve(folder), path)
  return {
    addressOf: toPath,
    async write(path, content) {
      await place(toPath(path), content, rename)
    },
    async create(path, bytes) {
      try {
        await place(toPath(path), [bytes], link)
        return true
      } catch (error) {
        if ((error as { code?: string }).code === 'EEXIST') return false
        throw error
      }
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
    async listSizes(path) {
      const entries = await Promise.all(
        (await this.list(path)).map(async (name) => {
          const stats = await stat(toPath(`${path}/${name}`)).catch(() => undefined) // removed meanwhile
          return [name, stats?.isFile() ? stats.size : undefined] as const
        }),
      )
      return new Map(entries)
    },
    async probe() {
      const directory = await opendir(folder)
      await directory.close()
    },
    removeFile: (path) => rm(toPath(path), { force: true }),
    removeFolder: (path) => rm(toPath(path), { recursive: true, force: true }),
  }
}

/** Writes a file beside its place, and puts it there when it is complete. */
async function place(
  file: string,
  content: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  put: (draft: string, file: string) => Promise<void>,
) {
  const draft = `${file}.${Bun.randomUUIDv7()}.partial`
  await mkdir(dirname(file), { recursive: true, mode: 0o700 })
  try {
    const output = await open(draft, 'wx', 0o600)
    try {
      for await (const chunk of content) await output.writeFile(chunk)
      await output.sync()
    } finally {
      await output.close()
    }
    await put(draft, file)
  } finally {
    await rm(draft, { force: true })
  }
  await fsyncDirectory(dirname(file))
}
