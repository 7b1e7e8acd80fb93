import { open } from 'node:fs/promises'

/** Resolves when the entries of a folder are on the disk. Windows neither needs nor allows it. */
export async function fsyncDirectory(path: string) {
  if (process.platform === 'win32') return
  const folder = await open(path)
  await folder.sync().finally(() => folder.close())
}
