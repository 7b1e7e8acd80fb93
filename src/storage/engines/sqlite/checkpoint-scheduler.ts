import { logError } from '../../../core/log'
import { workerUrl } from '../../../core/worker-url'
import type { CheckpointRequest } from './checkpoint-worker'
import type { drivers } from './drivers'

const CHECKPOINT_STATEMENTS = 10_000 // since the last checkpoint: about 20 MB of log
/** From the first on, checkpoints run until the log can start over; from the second on, writes wait for it. */
const [LONG_LOG_STATEMENTS, MAX_LOG_STATEMENTS] = [40_000, 160_000]
const SHORT_CHECKPOINT_MS = 3
/** Checkpoints have converged when one takes more than this share of the time of the one before. */
const CONVERGED_SHARE = 0.7
const MAX_LAST_STATEMENTS = 1_000 // in the checkpoint that a write waits for

const MAX_CHECKPOINT_WAIT_MS = 5_000

type FileState = {
  pendingStatements: number
  loggedStatements: number
  /** bytes */
  longestLog: number
  running?: Promise<void>
  /** The duration of the last checkpoint of a long log (ms), and whether the next one will hardly be shorter. */
  lastMs: number
  isConverged: boolean
}
/**
 * The number of statements that a write ran, the length of the log after it (bytes), and the longest that the log
 * should be (bytes).
 */
type WriteSize = { statements: number; log: number; logLimit: number }

/**
 * Checkpoints busy databases. A checkpoint writes thousands of pages and waits for the disk, so it runs in a worker
 * thread while requests are served. The log starts over only when nothing was written since the last checkpoint. Once it is
 * long, ever shorter checkpoints follow each other, until a write can wait for the last one.
 */
export class CheckpointScheduler {
  #worker?: Worker
  #isBroken = false
  /** The files that the worker is checkpointing. */
  #waiting = new Map<string, PromiseWithResolvers<void>>()
  #states = new Map<string, FileState>()
  /** How many checkpoints of a file have begun or ended. */
  #activity = new Map<string, number>()

  constructor(private driver: keyof typeof drivers) {}

  /** Records what the last write has written, and starts a checkpoint when it is due. Call it between two writes. */
  async recordWrite(file: string, { statements, log, logLimit }: WriteSize) {
    const state = this.#states.get(file) ?? {
      ...{ pendingStatements: 0, loggedStatements: 0, longestLog: log },
      ...{ lastMs: Number.POSITIVE_INFINITY, isConverged: false },
    }
    this.#states.set(file, state)
    state.pendingStatements += statements
    state.loggedStatements += statements
    // A log that starts over keeps its length, so only a growing one shows how much it holds.
    const grown = log > state.longestLog ? log : 0
    state.longestLog = Math.max(state.longestLog, log)
    const isLong = state.loggedStatements >= LONG_LOG_STATEMENTS || grown >= logLimit / 2
    if (state.pendingStatements < CHECKPOINT_STATEMENTS && !isLong) return
    const isTooLong = state.loggedStatements >= MAX_LOG_STATEMENTS || grown >= logLimit
    // A large write leaves at least its own statements.
    const isLittleLeft = state.pendingStatements <= Math.max(MAX_LAST_STATEMENTS, statements)
    const isLast = isLong && !state.running && state.isConverged && isLittleLeft
    if (!isLast && !isTooLong) {
      state.running ??= this.#checkpoint(file, state, isLong)
      return
    }
    await state.running
    await this.#checkpoint(file, state, false)
    state.loggedStatements = 0
  }

  /** Returns a number that grows whenever a checkpoint of a file begins or ends. */
  getActivity = (file: string): number => this.#activity.get(file) ?? 0

  isRunning = (file: string): boolean => this.#waiting.has(file)

  #noteActivity(file: string) {
    this.#activity.set(file, this.getActivity(file) + 1)
  }

  /** Waits until the worker has finished with a file that is about to be closed. */
  async waitForFile(file: string) {
    this.#states.delete(file)
    this.#activity.delete(file)
    const done = this.#waiting.get(file)?.promise
    if (!done) return
    // The process must not exit before the worker has finished.
    this.#worker?.ref()
    await done
    if (!this.#waiting.size) this.#worker?.unref()
  }

  close() {
    this.#worker?.terminate()
    for (const { resolve } of this.#waiting.values()) resolve()
  }

  async #checkpoint(file: string, state: FileState, isLong: boolean) {
    const [covered, startedAt] = [state.pendingStatements, performance.now()]
    const done = this.#waiting.get(file)?.promise ?? this.#requestCheckpoint(file)
    // A slow disk must not delay the next write for longer: the log grows, and SQLite checkpoints it by itself in the
    // end.
    await Promise.race([done, Bun.sleep(MAX_CHECKPOINT_WAIT_MS)])
    const ms = performance.now() - startedAt
    state.isConverged = isLong && (ms <= SHORT_CHECKPOINT_MS || ms > CONVERGED_SHARE * state.lastMs)
    state.lastMs = isLong ? ms : Number.POSITIVE_INFINITY
    state.pendingStatements -= covered
    state.running = undefined
  }

  /** Resolves when the worker has checkpointed a file, or at once when there is no worker. */
  #requestCheckpoint(file: string): Promise<void> {
    const worker = this.#getWorker()
    if (!worker) return Promise.resolve()
    const waiting = Promise.withResolvers<void>()
    this.#waiting.set(file, waiting)
    this.#noteActivity(file)
    worker.postMessage({ file, driver: this.driver } satisfies CheckpointRequest)
    return waiting.promise.finally(() => {
      this.#waiting.delete(file)
      if (this.#activity.has(file)) this.#noteActivity(file)
    })
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
