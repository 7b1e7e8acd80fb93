import { packArchive, type SiteFile } from './site-archive'

const IS_TAR = /\.(tar|tgz|tar\.gz)$/i

/** Returns the archive to send of what was dropped: a folder, its files, a zip, or a tar, which is sent as it is. */
export async function readDroppedSite(data: DataTransfer): Promise<Blob> {
  const entries = [...data.items].flatMap((item) => item.webkitGetAsEntry() ?? [])
  if (!entries.some((entry) => entry.isDirectory)) return readChosenSite([...data.files])
  return packSite((await Promise.all(entries.map((entry) => readEntry(entry)))).flat())
}

/** Returns the archive to send of chosen files, or of those of a chosen folder. */
export async function readChosenSite(files: File[]): Promise<Blob> {
  const [first] = files
  if (files.length === 1 && first && IS_TAR.test(first.name)) return first
  if (files.length === 1 && first && /\.zip$/i.test(first.name)) return packSite(await unzip(first))
  return packSite(files.map((file) => ({ path: file.webkitRelativePath || file.name, content: file })))
}

async function unzip(file: File): Promise<SiteFile[]> {
  const { unzipSync } = await import('fflate')
  const unpacked = unzipSync(new Uint8Array(await file.arrayBuffer()))
  return Object.entries(unpacked)
    .filter(([path]) => !path.endsWith('/'))
    .map(([path, content]) => ({ path, content: new Blob([content as Uint8Array<ArrayBuffer>]) }))
}

/** Returns the files of an entry. A browser hands over a folder a hundred entries at a time. */
async function readEntry(entry: FileSystemEntry): Promise<SiteFile[]> {
  const path = entry.fullPath.replace(/^\//, '')
  if (entry.isFile) {
    const { promise, resolve, reject } = Promise.withResolvers<File>()
    ;(entry as FileSystemFileEntry).file(resolve, reject)
    return [{ path, content: await promise }]
  }
  const reader = (entry as FileSystemDirectoryEntry).createReader()
  const files: SiteFile[] = []
  for (;;) {
    const { promise, resolve, reject } = Promise.withResolvers<FileSystemEntry[]>()
    reader.readEntries(resolve, reject)
    const entries = await promise
    if (!entries.length) return files
    for (const each of entries) files.push(...(await readEntry(each)))
  }
}

const INDEX = 'index.html'

/** Returns the archive of the files at and below the highest index.html. @throws when there is none */
function packSite(files: SiteFile[]): Blob {
  const indexes = files.flatMap(({ path }) => (path === INDEX || path.endsWith(`/${INDEX}`) ? [path] : []))
  const [index] = indexes.toSorted((one, other) => one.split('/').length - other.split('/').length)
  if (!index) throw new Error('There is no index.html. Choose the folder that your build writes.')
  const top = index.slice(0, -INDEX.length)
  return packArchive(
    files
      .filter(({ path }) => path.startsWith(top) && isServed(path.slice(top.length)))
      .map(({ path, content }) => ({ path: path.slice(top.length), content })),
  )
}

/** The server refuses names that begin with a dot, such as those of a file manager. */
const isServed = (path: string) =>
  path.split('/').every((part, index) => !part.startsWith('.') || (index === 0 && part === '.well-known'))
