import { drivers } from './drivers'

declare const self: Worker

/**
 * The file to checkpoint, and the SQLite library to use: the one that has the file open, because two libraries do not
 * see each other's locks.
 */
export type CheckpointRequest = { file: string; driver: keyof typeof drivers }

// Runs in a worker thread: copies committed pages from a log to its file, and waits for the disk.
self.onmessage = async ({ data: { file, driver } }: MessageEvent<CheckpointRequest>) => {
  try {
    const connection = (await drivers[driver]())(file, true)
    connection.exec('pragma busy_timeout = 0')
    const statement = connection.prepare('pragma wal_checkpoint(passive)')
    statement.values()
    statement.finalize()
    connection.close()
  } catch {
    // Nothing is lost: the log is kept until a later checkpoint, or until the file is closed.
  }
  self.postMessage(file)
}
