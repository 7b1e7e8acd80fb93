import { Busy } from '../storage/errors'
import type { Tenant } from './tenants'

/** The waiting work by tenant. */
type TenantQueues = Map<string, (() => void)[]>

/**
 * Runs at most `concurrency` pieces of expensive work at a time. Tenants take turns, so that a flood at one of them
 * delays only its own.
 */
export class FairSemaphore {
  #runningByTenant = new Map<string, number>()
  #urgent: TenantQueues = new Map()
  /** Starts only when no urgent work that waits may start. */
  #lowPriority: TenantQueues = new Map()
  #total = 0

  constructor(
    private concurrency: number,
    /** How much work of one tenant may wait. */
    private maxQueuedPerTenant: number,
    /** How much work of one tenant runs at once, and the longest wait (ms). */
    private options: { perTenant?: number; timeoutMs?: number } = {},
  ) {}

  /** Tells whether new work has to wait. */
  get isBusy() {
    return this.#total >= this.concurrency
  }

  /**
   * Runs work in its turn.
   * @throws 503 BUSY when too much work of the tenant waits already, or this waited for too long
   */
  run<T>({ tenant }: Pick<Tenant, 'tenant'>, work: () => Promise<T>): Promise<T> {
    return this.#execute(tenant, this.#urgent, work)
  }

  /**
   * Runs work that never goes ahead of work of `run`, and waits in a queue of its own.
   * @throws 503 BUSY as `run` does
   */
  runLowPriority<T>({ tenant }: Pick<Tenant, 'tenant'>, work: () => Promise<T>): Promise<T> {
    return this.#execute(tenant, this.#lowPriority, work)
  }

  async #execute<T>(tenant: string, queues: TenantQueues, work: () => Promise<T>): Promise<T> {
    if (this.#total < this.concurrency && this.#mayRun(tenant)) this.#addRunning(tenant, 1)
    else await this.#waitForTurn(tenant, queues)
    try {
      return await work()
    } finally {
      this.#addRunning(tenant, -1)
      this.#startNext()
    }
  }

  async #waitForTurn(tenant: string, queues: TenantQueues) {
    const queue = queues.get(tenant) ?? []
    if (queue.length >= this.maxQueuedPerTenant) throw new Busy()
    queues.set(tenant, queue)
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    queue.push(resolve)
    const { timeoutMs } = this.options
    const giveUp = () => {
      queue.splice(queue.indexOf(resolve), 1)
      if (!queue.length && queues.get(tenant) === queue) queues.delete(tenant)
      reject(new Busy())
    }
    const timer = timeoutMs && setTimeout(giveUp, timeoutMs)
    await promise.finally(() => timer && clearTimeout(timer))
  }

  /** Starts the next work and counts it as running, because new work could overtake it otherwise. */
  #startNext() {
    if (!this.#startNextOf(this.#urgent)) this.#startNextOf(this.#lowPriority)
  }

  #startNextOf(queues: TenantQueues): boolean {
    for (const [tenant, queue] of queues) {
      if (!this.#mayRun(tenant)) continue
      queues.delete(tenant)
      const resolve = queue.shift()
      if (queue.length) queues.set(tenant, queue)
      this.#addRunning(tenant, 1)
      resolve?.()
      return true
    }
    return false
  }

  #mayRun = (tenant: string) => (this.#runningByTenant.get(tenant) ?? 0) < (this.options.perTenant ?? this.concurrency)

  #addRunning(tenant: string, by: number) {
    const running = (this.#runningByTenant.get(tenant) ?? 0) + by
    if (running) this.#runningByTenant.set(tenant, running)
    else this.#runningByTenant.delete(tenant)
    this.#total += by
  }
}
