import { report } from '../../../core/log'
import type { Order } from './checkpointer'
import type { drivers } from './drivers'

const DUE = 10_000 // statements written since the last checkpoint: some 20 MB of log
const FULL = 40_000
// Inside a compiled binary all code is one file at its root, and the thread's is where the entry points have it.
const BINARY = '/$bunfs/'
const BUNDLED = './storage/engines/sqlite/checkpointer.js'

const PATIENCE = 5_000 // ms

type State = { written: number; logged: number /** bytes */; longest: number; running?: Promise<void> }
/** What a write has written, and the length of the log after it (bytes). */
type Written = { statements: number; log: number; logLimit: number }

/**
 * Empties the logs of busy databases. A checkpoint writes thousands of pages and waits for the disk, so it runs in
 * another thread while requests are served; only where the log has grown long does the next write wait for it.
 */
export class Checkpoints {
  #worker?: Worker
  #broken = false
  /** The files that the thread has been told to checkpoint. */
  #waiting = new Map<string, PromiseWithResolvers<void>>()
  #states = new Map<string, State>()

  constructor(private driver: keyof typeof drivers) {}

  /** To be called between two writes, with what the last one has written. */
  async wrote(file: string, { statements, log, logLimit }: Written) {
    const state = this.#states.get(file) ?? { written: 0, logged: 0, longest: log }
    this.#states.set(file, state)
    state.written += statements
    state.logged += statements
    // A log that begins anew keeps its length, so only one that grows tells how long it is.
    const grown = log > state.longest ? log : 0
    state.longest = Math.max(state.longest, log)
    if (state.written < DUE && grown < logLimit / 2) return
    state.running ??= this.#run(file, state)
    if (state.logged < FULL && grown < logLimit) return
    // The log begins anew only when nothing was written since the last checkpoint; most of it is copied already.
    await state.running
    await this.#run(file, state)
    state.logged = 0
  }

  /** Waits until the thread has nothing to do with the file any more, which is about to be closed. */
  async finish(file: string) {
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

  async #run(file: string, state: State) {
    const covered = state.written
    const done = this.#waiting.get(file)?.promise ?? this.#order(file)
    // A slow disk must not hold up the next write for longer: the log grows, and SQLite copies it by itself at last.
    await Promise.race([done, Bun.sleep(PATIENCE)])
    state.written -= covered
    state.running = undefined
  }

  /** Until the thread has checkpointed a file; at once when there is no thread. */
  #order(file: string): Promise<void> {
    const worker = this.#thread()
    if (!worker) return Promise.resolve()
    const waiting = Promise.withResolvers<void>()
    this.#waiting.set(file, waiting)
    worker.postMessage({ file, driver: this.driver } satisfies Order)
    return waiting.promise.finally(() => this.#waiting.delete(file))
  }

  #thread() {
    if (this.#worker || this.#broken) return this.#worker
    const file = import.meta.url.includes(BINARY) ? BUNDLED : './checkpointer.ts'
    let worker: Worker
    try {
      worker = new Worker(new URL(file, import.meta.url).href)
    } catch (error) {
      this.#broken = true
      report('CHECKPOINTS_STOPPED', { cause: error })
      return
    }
    worker.onmessage = ({ data: file }: MessageEvent<string>) => this.#waiting.get(file)?.resolve()
    worker.onerror = ({ message }) => {
      this.#broken = true
      this.#worker = undefined
      report('CHECKPOINTS_STOPPED', { cause: message })
      for (const { resolve } of this.#waiting.values()) resolve()
    }
    worker.unref()
    this.#worker = worker
    return worker
  }
}
