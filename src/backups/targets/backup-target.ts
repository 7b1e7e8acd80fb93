/** A place that keeps backups. Paths are relative to it, with slashes. @throws 502 BACKUP_TARGET_FAILED when it fails */
export interface BackupTarget {
  /** Returns the address of a path for people and programs. */
  addressOf(path: string): string
  /** Writes a file whole, or throws: a content that breaks off leaves no file. */
  write(path: string, content: AsyncIterable<Uint8Array>): Promise<void>
  /** Writes a small file where there is none. Returns whether it did. */
  create(path: string, bytes: Uint8Array): Promise<boolean>
  /** Returns the content of a file, or undefined when there is none. */
  read(path: string): Promise<ReadableStream<Uint8Array> | undefined>
  /** Returns the sorted names of the files and folders directly below a folder; an empty list where there is none. */
  list(folder: string): Promise<string[]>
  /** Returns the sizes of the files directly below a folder by their names (bytes); those of folders are undefined. */
  listSizes(folder: string): Promise<Map<string, number | undefined>>
  /** Reads a little, and throws where the target is gone or cannot be read. */
  probe(): Promise<void>
  removeFile(path: string): Promise<void>
  /** Removes a folder with all files below it. */
  removeFolder(folder: string): Promise<void>
}
