import { config } from '../../../config'
import { DAY } from '../../../core/clock'
import { Problem } from '../../../core/problem'
import { Busy } from '../../../storage/errors'
import type { Tenant } from '../../../tenancy/tenants'
import { Turns } from '../../../tenancy/turns'
import { Child } from './child'

/**
 * Processes in which lambdas run. They are started when they are first needed, handed on from one run to the next, and
 * end when nobody needed them for some time.
 */
export class Pool {
  #turns: Turns
  #resting: { child: Child; timer: Timer }[] = []

  constructor(
    private bounds: {
      /** How many there are at most; one tenant gets half of them. */
      most: number
      /** How many runs of one tenant may wait, and how long (ms). */
      waiting: number
      patience: number
      /** ms after which a process that nobody needs ends; and the last one of them. */
      idle: number
      last: number
    },
  ) {
    const { most, waiting, patience } = bounds
    this.#turns = new Turns(most, waiting, { each: Math.ceil(most / 2), patience })
  }

  /** Does work with a process of its own, when it is the tenant's turn. @throws 503 LAMBDA_BUSY */
  async use<T>(tenant: Pick<Tenant, 'tenant'>, work: (child: Child) => Promise<T>): Promise<T> {
    let begun = false
    try {
      return await this.#turns.take(tenant, async () => {
        begun = true
        const child = this.#taken()
        try {
          return await work(child)
        } finally {
          this.#give(child)
        }
      })
    } catch (error) {
      if (begun || !(error instanceof Busy)) throw error
      throw new Problem(503, 'LAMBDA_BUSY', 'Too many lambdas are running. Try again in a moment.', {
        headers: { 'retry-after': '1' },
      })
    }
  }

  /** Has a process that waits for whoever comes next, and goes on waiting. */
  ready() {
    const [first, ...others] = this.#resting
    if (first) clearTimeout(first.timer)
    this.#resting = others
    const child = first?.child.good ? first.child : started()
    if (child) this.#resting.unshift(this.#waiting(child, this.bounds.last))
  }

  #taken(): Child {
    // The one that was used last is the warmest.
    for (let one = this.#resting.pop(); one; one = this.#resting.pop()) {
      clearTimeout(one.timer)
      if (one.child.good) return one.child
    }
    return new Child()
  }

  /** A process that had to be ended is replaced at once: whoever comes next need not wait for that. */
  #give(used: Child) {
    const child = used.good ? used : started()
    const { idle, last } = this.bounds
    if (child) this.#resting.push(this.#waiting(child, this.#resting.length ? idle : last))
  }

  #waiting(child: Child, time: number) {
    return { child, timer: setTimeout(() => child.end(), time).unref() }
  }
}

/** Where the system refuses another process, whoever needs one is told. */
function started() {
  try {
    return new Child()
  } catch {}
}

/** Where the lambdas of this server run. */
export const pool = new Pool({
  ...{ most: config.ATOLL_LAMBDA_PROCESSES, waiting: 100, patience: 10_000 },
  ...{ idle: 300_000, last: DAY / 12 },
})
