import { write, writeSync } from 'node:fs'

const STDERR_FD = 2
const BATCH_LENGTH = 64 << 10 // characters
const BATCH_DELAY_MS = 250 // how long a line waits for others
const RETRY_DELAY_MS = 50 // until the next attempt when the pipe is full
const MAX_BUFFERED_LENGTH = 16 << 20 // characters; beyond that lines are dropped, so that the server is not held up

let buffer = ''
let isWriting = false
let flushTimer: Timer | undefined
let droppedLines = 0
let flushListeners: (() => void)[] = []

/** Writes a line to standard error, after a short delay together with others. */
export function writeLine(line: string) {
  if (buffer.length > MAX_BUFFERED_LENGTH) {
    droppedLines++
    return
  }
  buffer += line
  if (buffer.length >= BATCH_LENGTH) flush()
  else flushTimer ??= setTimeout(flush, BATCH_DELAY_MS).unref()
}

/** Returns how many lines were dropped, because nothing reads standard error fast enough. */
export const countDroppedLines = () => droppedLines

/** Writes all waiting lines now. */
export function flush() {
  clearTimeout(flushTimer)
  flushTimer = undefined
  if (isWriting) return
  if (!buffer) {
    for (const done of flushListeners) done()
    flushListeners = []
    return
  }
  const bytes = Buffer.from(buffer)
  buffer = ''
  isWriting = true
  writeBytes(bytes)
}

/** Resolves when all lines so far are written. */
export const waitUntilWritten = () =>
  new Promise<void>((resolve) => {
    flushListeners.push(resolve)
    flush()
  })

function writeBytes(bytes: Buffer) {
  write(STDERR_FD, bytes, 0, bytes.length, null, (error, written = 0) => {
    if (error?.code === 'EAGAIN') return void setTimeout(writeBytes, RETRY_DELAY_MS, bytes)
    // A closed standard error takes no more lines.
    if (!error && written < bytes.length) return writeBytes(bytes.subarray(written))
    isWriting = false
    if (flushListeners.length || buffer.length >= BATCH_LENGTH) flush()
    else if (buffer) flushTimer ??= setTimeout(flush, BATCH_DELAY_MS).unref()
  })
}

process.on('exit', () => {
  try {
    if (buffer) writeSync(STDERR_FD, buffer)
  } catch {
    // The process ends, and nothing can report the error.
  }
})
