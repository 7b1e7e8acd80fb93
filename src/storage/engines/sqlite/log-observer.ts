import { statSync } from 'node:fs'
import type { CheckpointScheduler } from './checkpoint-scheduler'
import { type LogFrames, type LogPosition, LogReader } from './log-reader'

/** Calls of `read` after which a log is read that this process did not write to. */
const TICKS_BETWEEN_READS = 10

/** Receives what is added to the logs of databases while they are open. `state` identifies the content of a file. */
export type LogListener = {
  /** Returns where to go on, if the log has everything from there; undefined for its beginning. */
  opened(file: string, state: string): LogPosition | undefined
  /** Receives whole transactions, in their order. */
  received(file: string, frames: LogFrames): void
  closed(file: string, state: string): void
}

/**
 * Gives a listener everything that is added to the log of an open database. A log begins anew with a write after a
 * checkpoint has copied all of it, so it is read before such a write. Other processes may make it begin anew as well,
 * which is told as a gap.
 */
export class LogObserver {
  #reader: LogReader
  #seenActivity = -1
  #mayBeginAnew = false
  #ticksSinceRead = 0
  #hasWritten = false

  constructor(
    private path: string,
    private file: string,
    private listener: LogListener,
    private checkpoints: CheckpointScheduler,
  ) {
    this.#reader = new LogReader(path)
    const place = listener.opened(file, readFileState(path))
    if (place && !this.#reader.resume(place)) listener.received(file, { frames: [], pageSize: 0, isGap: true })
  }

  beforeWrite() {
    const activity = this.checkpoints.getActivity(this.path)
    if (activity === this.#seenActivity) return
    if (!this.checkpoints.isRunning(this.path)) this.#seenActivity = activity
    this.read()
    this.#mayBeginAnew = true
  }

  afterWrite() {
    this.#hasWritten = true
    if (this.#mayBeginAnew) this.#reader.followRestart()
    this.#mayBeginAnew = false
  }

  /** Reads what this process has written since the last call, and now and then what others have. */
  tick(ticksBetweenReads: number) {
    if (this.#hasWritten || ++this.#ticksSinceRead >= ticksBetweenReads) this.read()
  }

  read() {
    this.#hasWritten = false
    this.#ticksSinceRead = 0
    try {
      const frames = this.#reader.read()
      if (frames) this.listener.received(this.file, frames)
    } catch {
      // The writes go on; whoever listens has to copy the whole database again.
      this.listener.received(this.file, { frames: [], pageSize: 0, isGap: true })
    }
  }

  /** Reads the rest. Call `closed` once the log is copied into the file. */
  close() {
    this.read()
    this.#reader.close()
  }

  closed(isReplaced: boolean) {
    this.listener.closed(this.file, isReplaced ? 'replaced' : readFileState(this.path))
  }
}

/** The observers of the logs of open databases. */
export class LogObservers {
  #listener?: LogListener
  #observers = new Set<LogObserver>()

  constructor(private checkpoints: CheckpointScheduler) {}

  /** Sets who is told of what is added to the logs of databases that are opened from now on. */
  setListener(listener: LogListener | undefined) {
    this.#listener = listener
  }

  /** Returns an observer of a database that was just opened, if there is a listener. */
  open(path: string, file: string): LogObserver | undefined {
    if (!this.#listener) return
    const observer = new LogObserver(path, file, this.#listener, this.checkpoints)
    this.#observers.add(observer)
    return observer
  }

  close(observer: LogObserver, isReplaced: boolean) {
    observer.closed(isReplaced)
    this.#observers.delete(observer)
  }

  /** Lets the listener know what was added to the logs since the last call. */
  read() {
    for (const observer of this.#observers) observer.tick(TICKS_BETWEEN_READS)
  }
}

/** Returns a text that is another one once a database file was written to. */
export function readFileState(path: string): string {
  const { mtimeNs, size, ino } = statSync(path, { bigint: true, throwIfNoEntry: false }) ?? {}
  return `${ino} ${size} ${mtimeNs}`
}
