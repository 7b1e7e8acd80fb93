import { Busy } from '../storage/errors'
import type { Tenant } from './tenants'

/** Does costly work `atOnce` pieces at a time. Tenants take turns, so that a flood at one of them delays only its own. */
export class Turns {
  #running = new Map<string, number>()
  #queues = new Map<string, (() => void)[]>()
  #total = 0

  constructor(
    private atOnce: number,
    /** How many of one tenant may wait. */
    private waiting: number,
    /** How many of one tenant are done at once, and how long each waits (ms). */
    private more: { each?: number; patience?: number } = {},
  ) {}

  /** Whether whoever comes now has to wait. */
  get isBusy() {
    return this.#total >= this.atOnce
  }

  /** @throws 503 when too many of the tenant wait already, or it has waited for too long. */
  async take<T>({ tenant }: Pick<Tenant, 'tenant'>, work: () => Promise<T>): Promise<T> {
    if (this.#total < this.atOnce && this.#mayRun(tenant)) this.#count(tenant, 1)
    else await this.#turn(tenant)
    try {
      return await work()
    } finally {
      this.#count(tenant, -1)
      this.#handOn()
    }
  }

  async #turn(tenant: string) {
    const queue = this.#queues.get(tenant) ?? []
    if (queue.length >= this.waiting) throw new Busy()
    this.#queues.set(tenant, queue)
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    queue.push(resolve)
    const { patience } = this.more
    const late = () => {
      queue.splice(queue.indexOf(resolve), 1)
      if (!queue.length && this.#queues.get(tenant) === queue) this.#queues.delete(tenant)
      reject(new Busy())
    }
    const timer = patience && setTimeout(late, patience)
    await promise.finally(() => timer && clearTimeout(timer))
  }

  /** The place is handed on, or else somebody who comes just now would overtake. */
  #handOn() {
    for (const [tenant, queue] of this.#queues) {
      if (!this.#mayRun(tenant)) continue
      this.#queues.delete(tenant)
      const resolve = queue.shift()
      if (queue.length) this.#queues.set(tenant, queue)
      this.#count(tenant, 1)
      resolve?.()
      return
    }
  }

  #mayRun = (tenant: string) => (this.#running.get(tenant) ?? 0) < (this.more.each ?? this.atOnce)

  #count(tenant: string, by: number) {
    const running = (this.#running.get(tenant) ?? 0) + by
    if (running) this.#running.set(tenant, running)
    else this.#running.delete(tenant)
    this.#total += by
  }
}
