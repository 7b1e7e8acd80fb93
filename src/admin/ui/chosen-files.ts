/** A file of a folder or of an archive. `path` is relative to what was chosen. */
export type ChosenFile = { path: string; content: Blob }

/** Returns the files of what was dropped: a folder, files, or a zip. */
export async function readDropped(data: DataTransfer): Promise<ChosenFile[]> {
  const entries = [...data.items].flatMap((item) => item.webkitGetAsEntry() ?? [])
  if (!entries.some((entry) => entry.isDirectory)) return readChosen([...data.files])
  return (await Promise.all(entries.map((entry) => readEntry(entry)))).flat()
}

/** Returns chosen files, those of a chosen folder, or those of a chosen zip. */
export async function readChosen(files: File[]): Promise<ChosenFile[]> {
  const [first] = files
  if (files.length === 1 && first && /\.zip$/i.test(first.name)) return unzip(first)
  return files.map((file) => ({ path: file.webkitRelativePath || file.name, content: file }))
}

async function unzip(file: File): Promise<ChosenFile[]> {
  const { unzipSync } = await import('fflate')
  const unpacked = unzipSync(new Uint8Array(await file.arrayBuffer()))
  return Object.entries(unpacked)
    .filter(([path]) => !path.endsWith('/'))
    .map(([path, content]) => ({ path, content: new Blob([content as Uint8Array<ArrayBuffer>]) }))
}

/** Returns the files of an entry. A browser hands over a folder a hundred entries at a time. */
async function readEntry(entry: FileSystemEntry): Promise<ChosenFile[]> {
  const path = entry.fullPath.replace(/^\//, '')
  if (entry.isFile) {
    const { promise, resolve, reject } = Promise.withResolvers<File>()
    ;(entry as FileSystemFileEntry).file(resolve, reject)
    return [{ path, content: await promise }]
  }
  const reader = (entry as FileSystemDirectoryEntry).createReader()
  const files: ChosenFile[] = []
  for (;;) {
    const { promise, resolve, reject } = Promise.withResolvers<FileSystemEntry[]>()
    reader.readEntries(resolve, reject)
    const entries = await promise
    if (!entries.length) return files
    for (const each of entries) files.push(...(await readEntry(each)))
  }
}
