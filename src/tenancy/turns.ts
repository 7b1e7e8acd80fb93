import { Busy } from '../storage/errors'
import type { Tenant } from './tenants'

/** Who waits, by tenant. */
type Queues = Map<string, (() => void)[]>

/** Does costly work `atOnce` pieces at a time. Tenants take turns, so that a flood at one of them delays only its own. */
export class Turns {
  #running = new Map<string, number>()
  #urgent: Queues = new Map()
  /** Begins only when nothing urgent waits, of any tenant. */
  #patient: Queues = new Map()
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
  take<T>({ tenant }: Pick<Tenant, 'tenant'>, work: () => Promise<T>): Promise<T> {
    return this.#do(tenant, this.#urgent, work)
  }

  /** The same for work that never goes ahead of what is taken by `take`; the tenant's room to wait is one of its own. */
  takeLater<T>({ tenant }: Pick<Tenant, 'tenant'>, work: () => Promise<T>): Promise<T> {
    return this.#do(tenant, this.#patient, work)
  }

  async #do<T>(tenant: string, queues: Queues, work: () => Promise<T>): Promise<T> {
    if (this.#total < this.atOnce && this.#mayRun(tenant)) this.#count(tenant, 1)
    else await this.#turn(tenant, queues)
    try {
      return await work()
    } finally {
      this.#count(tenant, -1)
      this.#handOn()
    }
  }

  async #turn(tenant: string, queues: Queues) {
    const queue = queues.get(tenant) ?? []
    if (queue.length >= this.waiting) throw new Busy()
    queues.set(tenant, queue)
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    queue.push(resolve)
    const { patience } = this.more
    const late = () => {
      queue.splice(queue.indexOf(resolve), 1)
      if (!queue.length && queues.get(tenant) === queue) queues.delete(tenant)
      reject(new Busy())
    }
    const timer = patience && setTimeout(late, patience)
    await promise.finally(() => timer && clearTimeout(timer))
  }

  /** The place is handed on, or else somebody who comes just now would overtake. */
  #handOn() {
    if (!this.#handOnTo(this.#urgent)) this.#handOnTo(this.#patient)
  }

  #handOnTo(queues: Queues): boolean {
    for (const [tenant, queue] of queues) {
      if (!this.#mayRun(tenant)) continue
      queues.delete(tenant)
      const resolve = queue.shift()
      if (queue.length) queues.set(tenant, queue)
      this.#count(tenant, 1)
      resolve?.()
      return true
    }
    return false
  }

  #mayRun = (tenant: string) => (this.#running.get(tenant) ?? 0) < (this.more.each ?? this.atOnce)

  #count(tenant: string, by: number) {
    const running = (this.#running.get(tenant) ?? 0) + by
    if (running) this.#running.set(tenant, running)
    else this.#running.delete(tenant)
    this.#total += by
  }
}
