import { Busy } from '../storage/errors'
import type { Tenant } from './tenants'

/** Does costly work `atOnce` pieces at a time. Tenants take turns, so that a flood at one of them delays only its own. */
export class Turns {
  #running = 0
  #queues = new Map<string, (() => void)[]>()

  constructor(
    private atOnce: number,
    /** How many of one tenant may wait. */
    private waiting: number,
  ) {}

  /** @throws 503 when too many of the tenant wait already. */
  async take<T>({ tenant }: Pick<Tenant, 'tenant'>, work: () => Promise<T>): Promise<T> {
    const queue = this.#queues.get(tenant) ?? []
    if (queue.length >= this.waiting) throw new Busy()
    if (this.#running >= this.atOnce) {
      this.#queues.set(tenant, queue)
      await new Promise<void>((resolve) => queue.push(resolve))
    } else this.#running++
    try {
      return await work()
    } finally {
      this.#handOn()
    }
  }

  /** The place is handed on, or else somebody who comes just now would overtake. */
  #handOn() {
    const [next] = this.#queues
    if (!next) {
      this.#running--
      return
    }
    const [tenant, queue] = next
    this.#queues.delete(tenant)
    const resolve = queue.shift()
    if (queue.length) this.#queues.set(tenant, queue)
    resolve?.()
  }
}
