import { Busy } from './errors'

/** Limits how many databases are open at a time, including those that are being opened or closed. */
export class DatabaseSlots {
  #limit: number
  #used = 0
  #waiting: PromiseWithResolvers<void>[] = []

  /** @param deadline the longest wait for a slot, in ms */
  constructor(
    count: number,
    private deadline: number,
  ) {
    // Without a slot nothing could be read.
    this.#limit = Math.max(1, count)
  }

  /** Takes a slot, and waits for one if necessary. @throws 503 BUSY when all are in use for too long */
  async acquire() {
    if (this.#used < this.#limit) {
      this.#used++
      return
    }
    const waiter = Promise.withResolvers<void>()
    this.#waiting.push(waiter)
    const timer = setTimeout(() => {
      this.#waiting = this.#waiting.filter((waiting) => waiting !== waiter)
      waiter.reject(new Busy('All open databases are in use.'))
    }, this.deadline)
    await waiter.promise.finally(() => clearTimeout(timer))
  }

  /** Passes the slot to the longest waiting caller, or frees it. */
  release() {
    const next = this.#waiting.shift()
    if (next) next.resolve()
    else this.#used--
  }
}
