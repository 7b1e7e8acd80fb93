/** From so many rows on, the browser writes into the file while it reads, instead of keeping everything in memory. */
const MIN_STREAMED_ROWS = 50_000
const URL_LIFETIME_MS = 60_000

type FilePicker = (options: { suggestedName: string }) => Promise<FileSystemFileHandle>

/** Where the content of a file goes, piece by piece. Nothing is left of a file that is aborted. */
export type FileTarget = {
  write(piece: Uint8Array<ArrayBuffer>): void | Promise<void>
  close(): void | Promise<void>
  abort(): void | Promise<void>
}

/** Gives the browser a file to save. */
export function downloadFile(name: string, content: BlobPart[], type: string) {
  const url = URL.createObjectURL(new Blob(content, { type }))
  const link = document.createElement('a')
  link.href = url
  link.download = name
  link.click()
  setTimeout(() => URL.revokeObjectURL(url), URL_LIFETIME_MS)
}

function collectInMemory(name: string, type: string): FileTarget {
  const pieces: Uint8Array<ArrayBuffer>[] = []
  return {
    write: (piece) => void pieces.push(piece),
    close: () => downloadFile(name, pieces, type),
    abort: () => void pieces.splice(0),
  }
}

/** Returns the target of a file with so many rows. For a large one, the browser asks where to save it. @throws AbortError */
export async function openFileTarget(name: string, type: string, rows: number): Promise<FileTarget> {
  const pick = (globalThis as { showSaveFilePicker?: FilePicker }).showSaveFilePicker
  if (!pick || rows < MIN_STREAMED_ROWS) return collectInMemory(name, type)
  const writable = await (await pick({ suggestedName: name })).createWritable()
  return { write: (piece) => writable.write(piece), close: () => writable.close(), abort: () => writable.abort() }
}
