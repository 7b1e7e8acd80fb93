import { write, writeSync } from 'node:fs'

const STANDARD_ERROR = 2
const BATCH = 64 << 10 // characters
const DELAY = 250 // ms that a line waits for others
const RETRY = 50 // ms until a reader that takes nothing is asked again
const MAX_WAITING = 16 << 20 // characters; beyond, lines are lost instead of holding up the server

let waiting = ''
let writing = false
let timer: Timer | undefined
let flushed: (() => void)[] = []

/** Writes a line to standard error, together with others a moment later. */
export function writeLine(line: string) {
  if (waiting.length > MAX_WAITING) return
  waiting += line
  if (waiting.length >= BATCH) flush()
  else timer ??= setTimeout(flush, DELAY).unref()
}

/** Writes at once what waits. */
export function flush() {
  clearTimeout(timer)
  timer = undefined
  if (writing) return
  if (!waiting) {
    for (const done of flushed) done()
    flushed = []
    return
  }
  const bytes = Buffer.from(waiting)
  waiting = ''
  writing = true
  put(bytes)
}

/** Resolves when all lines so far are written. */
export const allWritten = () =>
  new Promise<void>((resolve) => {
    flushed.push(resolve)
    flush()
  })

function put(bytes: Buffer) {
  write(STANDARD_ERROR, bytes, 0, bytes.length, null, (error, written = 0) => {
    if (error?.code === 'EAGAIN') return void setTimeout(put, RETRY, bytes)
    // Whoever has closed it wants no log.
    if (!error && written < bytes.length) return put(bytes.subarray(written))
    writing = false
    if (flushed.length || waiting.length >= BATCH) flush()
    else if (waiting) timer ??= setTimeout(flush, DELAY).unref()
  })
}

process.on('exit', () => {
  try {
    if (waiting) writeSync(STANDARD_ERROR, waiting)
  } catch {
    // Nobody is left to be told.
  }
})
