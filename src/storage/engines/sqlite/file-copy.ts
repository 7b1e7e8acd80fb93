import { closeSync, existsSync, fstatSync, ftruncateSync, openSync, readSync, writeSync } from 'node:fs'
import { syncFile } from '../../../core/fsync'
import { Busy } from '../../errors'
import type { OpenFile } from './drivers'
import { readFileState } from './log-observer'
import { type LogPosition, LogReader } from './log-reader'

const CHUNK_BYTES = 256 << 10 // it stays in the cache of the processor
const SYNC_BYTES = 2 << 20
const PAUSE_RATIO = 0.3 // of the time that a synced piece takes, for the reads and writes of others
const LOG_HEADER_BYTES = 32
const MAX_LOG_COPIES = 5

/** What a copy reports, what ends it early, and whether it is written to the disk as it grows. */
export type FileCopyControl = {
  onBytes?(copied: number, total: number): void
  signal?: AbortSignal
  /** For a copy that stays: the sync of a gigabyte at its end would hold up the syncs of others for seconds. */
  isSynced?: boolean
}

/** Where in the log of the original a copy ends; undefined for an empty log, and the state of the file before the copy. */
export type CopyEnd = { log?: LogPosition; fileState: string }

/**
 * Copies a database file while other processes write to it, into one complete file without a log.
 *
 * An open read keeps every page of the log that it began with: checkpoints may change the file meanwhile, but only with
 * pages that are still in the log, which is copied afterwards and applied to the copy. Only a log that was empty may
 * begin anew, and then no checkpoint changes the file.
 *
 * Closing a file ends all POSIX locks of the process on it. So the files are closed after the connection, and a process
 * that serves the database must not call this.
 */
export async function copyDatabaseFile(
  connect: OpenFile,
  path: string,
  copy: string,
  control: FileCopyControl = {},
): Promise<CopyEnd> {
  const fileState = readFileState(path)
  const files: number[] = []
  const openFile = (name: string, mode: string) => {
    const file = openSync(name, mode, 0o600)
    files.push(file)
    return file
  }
  const connection = connect(path, true)
  try {
    connection.exec('pragma busy_timeout = 5000; begin')
    const statement = connection.prepare('select count(*) from sqlite_schema')
    statement.values() // the read begins here
    statement.finalize()
    await copyBytes(openFile(path, 'r'), openFile(copy, 'w'), control)
    const log = `${path}-wal`
    if (existsSync(log)) await copyLog(openFile(log, 'r'), openFile(`${copy}-wal`, 'w'))
    connection.exec('commit')
  } finally {
    connection.close()
    for (const file of files) closeSync(file)
  }
  const log = findLogEnd(copy)
  applyLog(connect, copy)
  return { ...(log && { log }), fileState }
}

/** SQLite reads a log as far as it has whole transactions, and so does this. */
function findLogEnd(copy: string): LogPosition | undefined {
  if (!existsSync(`${copy}-wal`)) return
  const reader = new LogReader(copy)
  try {
    return reader.findEnd()
  } finally {
    reader.close()
  }
}

/** Copies the log, again when it began anew meanwhile. Its incomplete end is ignored by whoever reads it. */
async function copyLog(log: number, copy: number) {
  for (let attempt = 1; attempt <= MAX_LOG_COPIES; attempt++) {
    const before = readLogHeader(log)
    ftruncateSync(copy)
    await copyBytes(log, copy)
    if (readLogHeader(log).equals(before)) return
  }
  throw new Busy('The log of the database began anew during each attempt to copy it.')
}

function readLogHeader(log: number): Buffer {
  const header = Buffer.alloc(LOG_HEADER_BYTES)
  readSync(log, header, 0, LOG_HEADER_BYTES, 0)
  return header
}

/** Copies a file from its beginning, and lets other work of the thread run between two chunks. */
async function copyBytes(from: number, to: number, { onBytes, signal, isSynced }: FileCopyControl = {}) {
  const chunk = Buffer.allocUnsafe(CHUNK_BYTES)
  const total = fstatSync(from).size
  for (let [position, unsynced, startedAt] = [0, 0, performance.now()]; ; ) {
    signal?.throwIfAborted()
    const length = readSync(from, chunk, 0, CHUNK_BYTES, position)
    if (!length) return
    for (let written = 0; written < length; )
      written += writeSync(to, chunk, written, length - written, position + written)
    position += length
    onBytes?.(position, Math.max(total, position))
    unsynced += length
    if (!isSynced || unsynced < SYNC_BYTES) await new Promise(setImmediate)
    else {
      await syncFile(to)
      await Bun.sleep((performance.now() - startedAt) * PAUSE_RATIO)
      unsynced = 0
      startedAt = performance.now()
    }
  }
}

/** Copies the log of a file that nobody uses into it, and removes the log. */
function applyLog(connect: OpenFile, copy: string) {
  const connection = connect(copy, true)
  try {
    connection.exec('pragma synchronous = off')
    const statement = connection.prepare('pragma wal_checkpoint(truncate)')
    const [[isBusy] = []] = statement.values()
    statement.finalize()
    if (isBusy) throw new Busy('The log of the copy is in use.')
  } finally {
    connection.close()
  }
}
