import { turn } from '../core/turn'
import { Busy } from '../storage/errors'

/** For whom costly work is done. */
export type Payer = { tenant: string; caller: string }

/** How many pieces of costly work may be under way. */
export type Limits = { perTenant: number; perCaller: number }

type Waiting = Map<string, (() => void)[]>

const BURST = 2 // ms that costly work holds the thread before others get their turn

/**
 * Divides the thread that answers everybody between costly work, a slice of at most some ms at a time, and everything
 * else: whenever slices have taken t, and somebody else has asked something meanwhile, the next one waits for t. So what
 * is cheap has at least half of the thread, whoever asks for how much. Tenants take turns with their slices, and so do the
 * callers of a tenant, who has one slice under way at a time.
 */
export class FairQueue {
  #waiting = new Map<string, Waiting>()
  #running = new Set<string>()
  #entered = new Map<string, number>()
  /** A slice holds the thread now, or was just told to. */
  #held = false
  #resting = false
  /** Thread time (ms) that others have not had back, and when the last of it ended. */
  #owed = 0
  #released = 0
  #arrivals = 0

  /** Notes that somebody has asked something. */
  arrived() {
    this.#arrivals++
  }

  /**
   * Counts a piece of costly work as under way, until the function that it returns is called. What has begun already is
   * counted without limits. @throws 503 BUSY when the tenant or the caller has as many as that
   */
  enter({ tenant, caller }: Payer, limits?: Limits): () => void {
    const [ofTenant, ofCaller] = [`${tenant} `, `${tenant} ${caller}`]
    if (limits && (this.#count(ofTenant) >= limits.perTenant || this.#count(ofCaller) >= limits.perCaller))
      throw new Busy()
    for (const name of [ofTenant, ofCaller]) this.#entered.set(name, this.#count(name) + 1)
    return () => {
      for (const name of [ofTenant, ofCaller]) {
        if (this.#count(name) > 1) this.#entered.set(name, this.#count(name) - 1)
        else this.#entered.delete(name)
      }
    }
  }

  /**
   * Does a slice of work when it is the caller's turn. What it does at once counts as thread time, and with `whole` all
   * until it ends, for work that waits for nothing but itself.
   */
  async run<T>(payer: Payer, work: () => Promise<T>, { whole = false } = {}): Promise<T> {
    const { tenant } = payer
    if (this.#held || this.#resting || this.#owed >= BURST || this.#running.has(tenant)) await this.#turn(payer)
    this.#running.add(tenant)
    this.#held = true
    const began = performance.now()
    try {
      const working = Promise.try(work)
      if (!whole) this.#release(performance.now() - began)
      return await working
    } finally {
      this.#running.delete(tenant)
      if (whole) this.#release(performance.now() - began)
      else this.#handOn()
    }
  }

  /** Adds thread time (ms) that was taken for costly work after a slice. */
  spend(ms: number) {
    this.#owed += ms
    this.#released = performance.now()
  }

  #count = (name: string) => this.#entered.get(name) ?? 0

  #turn({ tenant, caller }: Payer): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    const callers: Waiting = this.#waiting.get(tenant) ?? new Map()
    this.#waiting.set(tenant, callers)
    const own = callers.get(caller) ?? []
    callers.set(caller, own)
    own.push(resolve)
    this.#handOn()
    return promise
  }

  #release(ms: number) {
    this.#held = false
    this.spend(ms)
    this.#handOn()
  }

  /** The place is handed on, or else somebody who comes just now would overtake. */
  #handOn() {
    if (this.#held || this.#resting || !this.#waiting.size) return
    if (this.#owed >= BURST) {
      this.#resting = true
      this.#rest().then(() => {
        this.#resting = false
        this.#handOn()
      })
      return
    }
    for (const [tenant, callers] of this.#waiting) {
      if (this.#running.has(tenant)) continue
      this.#waiting.delete(tenant)
      const [caller, own] = callers.entries().next().value!
      callers.delete(caller)
      const resolve = own.shift()
      if (own.length) callers.set(caller, own)
      if (callers.size) this.#waiting.set(tenant, callers)
      this.#running.add(tenant)
      this.#held = true
      resolve?.()
      return
    }
  }

  /** Leaves the thread to others for as long as it was taken from them, if there are any. */
  async #rest() {
    const [until, arrivals] = [this.#released + this.#owed, this.#arrivals]
    this.#owed = 0
    if (until <= performance.now()) return
    // Twice, so that what came in meanwhile has been read.
    await turn()
    await turn()
    if (this.#arrivals === arrivals) return
    const left = until - performance.now()
    if (left > 0) await Bun.sleep(left)
  }
}

/** All costly work of this process. */
export const costlyWork = new FairQueue()
