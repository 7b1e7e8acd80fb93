import { config } from '../../config'
import { DAY_MS } from '../../core/clock'
import { Problem } from '../../core/problem'
import { Busy } from '../../storage/errors'
import { FairSemaphore } from '../../tenancy/fair-semaphore'
import type { Tenant } from '../../tenancy/tenants'
import { SandboxProcess } from './sandbox-process'

/**
 * Processes in which lambdas run. They are started when they are first needed, handed on from one run to the next, and
 * end when nobody needed them for some time.
 */
export class SandboxPool {
  #semaphore: FairSemaphore
  #idle: { child: SandboxProcess; timer: Timer }[] = []

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
    this.#semaphore = new FairSemaphore(most, waiting, { perTenant: Math.ceil(most / 2), timeoutMs: patience })
  }

  /** Does work with a process of its own, when it is the tenant's turn. @throws 503 LAMBDA_BUSY */
  async use<T>(tenant: Pick<Tenant, 'tenant'>, work: (child: SandboxProcess) => Promise<T>): Promise<T> {
    let hasBegun = false
    try {
      return await this.#semaphore.run(tenant, async () => {
        hasBegun = true
        const child = this.#acquire()
        try {
          return await work(child)
        } finally {
          this.#release(child)
        }
      })
    } catch (error) {
      if (hasBegun || !(error instanceof Busy)) throw error
      throw new Problem(503, 'LAMBDA_BUSY', 'Too many lambdas are running. Try again in a moment.', {
        headers: { 'retry-after': '1' },
      })
    }
  }

  /** Has a process that waits for whoever comes next, and goes on waiting. */
  prewarm() {
    const [first, ...others] = this.#idle
    if (first) clearTimeout(first.timer)
    this.#idle = others
    const child = first?.child.isReusable ? first.child : tryStartProcess()
    if (child) this.#idle.unshift(this.#withIdleTimer(child, this.bounds.last))
  }

  #acquire(): SandboxProcess {
    // The one that was used last is the warmest.
    for (let resting = this.#idle.pop(); resting; resting = this.#idle.pop()) {
      clearTimeout(resting.timer)
      if (resting.child.isReusable) return resting.child
    }
    return new SandboxProcess()
  }

  /** A process that had to be ended is replaced at once: whoever comes next need not wait for that. */
  #release(used: SandboxProcess) {
    const child = used.isReusable ? used : tryStartProcess()
    const { idle, last } = this.bounds
    if (child) this.#idle.push(this.#withIdleTimer(child, this.#idle.length ? idle : last))
  }

  #withIdleTimer(child: SandboxProcess, time: number) {
    return { child, timer: setTimeout(() => child.kill(), time).unref() }
  }
}

/** Where the system refuses another process, whoever needs one is told. */
function tryStartProcess() {
  try {
    return new SandboxProcess()
  } catch {}
}

/** Where the lambdas of this server run. */
export const sandboxPool = new SandboxPool({
  ...{ most: config.ATOLL_LAMBDA_PROCESSES, waiting: 100, patience: 10_000 },
  ...{ idle: 300_000, last: DAY_MS / 12 },
})
