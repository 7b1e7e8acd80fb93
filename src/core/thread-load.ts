import { readFileSync } from 'node:fs'

const WINDOW_MS = 50
const BUSY_SHARE = 0.75 // of the time; a saturated thread still waits for its sockets now and then

/** Measures how busy the calling thread is. */
export class ThreadLoad {
  #isBusy = true
  #measuredAt = performance.now()
  #readyMs = readReadyMs()

  /** Returns whether the thread ran or waited for a processor most of the time since the last measurement, 50 ms or more ago. */
  isBusy(): boolean {
    const elapsedMs = performance.now() - this.#measuredAt
    if (elapsedMs >= WINDOW_MS) {
      const readyMs = readReadyMs()
      this.#isBusy = readyMs - this.#readyMs >= elapsedMs * BUSY_SHARE
      this.#measuredAt += elapsedMs
      this.#readyMs = readyMs
    }
    return this.#isBusy
  }
}

/** Returns how long (ms) this thread has run so far; on Linux, with the time for which it waited for a processor. */
function readReadyMs(): number {
  try {
    const [ranNs, waitedNs] = readFileSync('/proc/thread-self/schedstat', 'latin1').split(' ')
    return (Number(ranNs) + Number(waitedNs)) / 1e6
  } catch {
    return readThreadMs()
  }
}

/** Returns how long (ms) this thread has had a processor so far. */
export function readThreadMs(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1_000
}
