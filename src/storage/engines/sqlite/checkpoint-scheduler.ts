import { logError } from '../../../core/log'
import { workerUrl } from '../../../core/worker-url'
import type { CheckpointRequest } from './checkpoint-worker'
import type { drivers } from './drivers'

const CHECKPOINT_STATEMENTS = 10_000 // statements written since the last checkpoint: some 20 MB of log
const BLOCKING_CHECKPOINT_STATEMENTS = 40_000

const MAX_CHECKPOINT_WAIT_MS = 5_000 // ms

type FileState = {
  pendingStatements: number
  loggedStatements: number /** bytes */
  longestLog: number
  running?: Promise<void>
}
/** What a write has written, and the length of the log after it (bytes). */
type WriteSize = { statements: number; log: number; logLimit: number }

/**
 * Empties the logs of busy databases. A checkpoint writes thousands of pages and waits for the disk, so it runs in
 * another thread while requests are served; only where the log has grown long does the next write wait for it.
 */
export class CheckpointScheduler {
  #worker?: Worker
  #isBroken = false
  /** The files that the thread has been told to checkpoint. */
  #waiting = new Map<string, PromiseWithResolvers<void>>()
  #states = new Map<string, FileState>()

  constructor(private driver: keyof typeof drivers) {}

  /** To be called between two writes, with what the last one has written. */
  async recordWrite(file: string, { statements, log, logLimit }: WriteSize) {
    const state = this.#states.get(file) ?? { pendingStatements: 0, loggedStatements: 0, longestLog: log }
    this.#states.set(file, state)
    state.pendingStatements += statements
    state.loggedStatements += statements
    // A log that begins anew keeps its length, so only one that grows tells how long it is.
    const grown = log > state.longestLog ? log : 0
    state.longestLog = Math.max(state.longestLog, log)
    if (state.pendingStatements < CHECKPOINT_STATEMENTS && grown < logLimit / 2) return
    state.running ??= this.#checkpoint(file, state)
    if (state.loggedStatements < BLOCKING_CHECKPOINT_STATEMENTS && grown < logLimit) return
    // The log begins anew only when nothing was written since the last checkpoint; most of it is copied already.
    await state.running
    await this.#checkpoint(file, state)
    state.loggedStatements = 0
  }

  /** Waits until the thread has nothing to do with the file any more, which is about to be closed. */
  async waitForFile(file: string) {
    this.#states.delete(file)
    const done = this.#waiting.get(file)?.promise
    if (!done) return
    // Whoever waits for the thread must not be ended before it.
    this.#worker?.ref()
    await done
    if (!this.#waiting.size) this.#worker?.unref()
  }

  close() {
    this.#worker?.terminate()
    for (const { resolve } of this.#waiting.values()) resolve()
  }

  async #checkpoint(file: string, state: FileState) {
    const covered = state.pendingStatements
    const done = this.#waiting.get(file)?.promise ?? this.#requestCheckpoint(file)
    // A slow disk must not hold up the next write for longer: the log grows, and SQLite copies it by itself at last.
    await Promise.race([done, Bun.sleep(MAX_CHECKPOINT_WAIT_MS)])
    state.pendingStatements -= covered
    state.running = undefined
  }

  /** Until the thread has checkpointed a file; at once when there is no thread. */
  #requestCheckpoint(file: string): Promise<void> {
    const worker = this.#getWorker()
    if (!worker) return Promise.resolve()
    const waiting = Promise.withResolvers<void>()
    this.#waiting.set(file, waiting)
    worker.postMessage({ file, driver: this.driver } satisfies CheckpointRequest)
    return waiting.promise.finally(() => this.#waiting.delete(file))
  }

  #getWorker() {
    if (this.#worker || this.#isBroken) return this.#worker
    let worker: Worker
    try {
      worker = new Worker(workerUrl('storage/engines/sqlite/checkpoint-worker'))
    } catch (error) {
      this.#isBroken = true
      logError('CHECKPOINTS_STOPPED', { cause: error })
      return
    }
    worker.onmessage = ({ data: file }: MessageEvent<string>) => this.#waiting.get(file)?.resolve()
    worker.onerror = ({ message }) => {
      this.#isBroken = true
      this.#worker = undefined
      logError('CHECKPOINTS_STOPPED', { cause: message })
      for (const { resolve } of this.#waiting.values()) resolve()
    }
    worker.unref()
    this.#worker = worker
    return worker
  }
}
