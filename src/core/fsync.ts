import { fdatasync, fsync } from 'node:fs'
import { open } from 'node:fs/promises'

// On Apple's file systems `fdatasync` may store a file's data, but not its new length.
const syncOnce = process.platform === 'darwin' ? fsync : fdatasync

/** Resolves when the data of an open file is on the disk. */
export const syncFile = (file: number) =>
  new Promise<void>((resolve, reject) => syncOnce(file, (error) => (error ? reject(error) : resolve())))

/** Resolves when the entries of a folder are on the disk. Windows neither needs nor allows it. */
export async function fsyncDirectory(path: string) {
  if (process.platform === 'win32') return
  const folder = await open(path)
  await folder.sync().finally(() => folder.close())
}
