import { Busy } from './errors'

/** How many databases may be open at a time, counting those that are being opened or closed. */
export class DatabaseSlots {
  #limit: number
  #used = 0
  #waiting: PromiseWithResolvers<void>[] = []

  /** @param deadline how long somebody waits for one, in ms */
  constructor(
    count: number,
    private deadline: number,
  ) {
    // At least one, or nothing could be asked.
    this.#limit = Math.max(1, count)
  }

  /** Waits until one is free. @throws 503 BUSY when all are in use for too long */
  async acquire() {
    if (this.#used < this.#limit) {
      this.#used++
      return
    }
    const waiter = Promise.withResolvers<void>()
    this.#waiting.push(waiter)
    const timer = setTimeout(() => {
      this.#waiting = this.#waiting.filter((one) => one !== waiter)
      waiter.reject(new Busy('All open databases are in use.'))
    }, this.deadline)
    await waiter.promise.finally(() => clearTimeout(timer))
  }

  /** Hands a slot on to who has waited longest. */
  release() {
    const next = this.#waiting.shift()
    if (next) next.resolve()
    else this.#used--
  }
}
