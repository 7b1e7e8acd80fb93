import { BoundedMap } from './bounded-map'

/** The tenant and the caller that costly work is done for. */
export type WorkOwner = { tenant: string; caller: string }

const MAX_REMEMBERED = 10_000 // tenants, and callers of a tenant, that may owe turns
const MAX_OWED_TURNS = 100 // so that one piece of work that took very long does not keep an owner out

/**
 * Decides by deficit round robin who is next: everybody gets one turn in each round, and who took more than a turn sits
 * out as many rounds.
 */
class Rotation {
  #round = 0
  /** The round in which the next turn of each name is. */
  #nextRounds = new BoundedMap<string, number>(MAX_REMEMBERED)

  /** Returns who is next, and takes a turn for it: of those with the earliest round the first one. */
  takeTurn(names: Iterable<string>): string | undefined {
    let next: string | undefined
    let earliest = Number.POSITIVE_INFINITY
    for (const name of names) {
      const round = this.#nextRoundOf(name)
      if (round >= earliest) continue
      next = name
      earliest = round
    }
    if (next === undefined) return
    this.#round = earliest
    this.charge(next, 1)
    return next
  }

  charge(name: string, turns: number) {
    this.#nextRounds.set(name, Math.min(this.#nextRoundOf(name) + turns, this.#round + MAX_OWED_TURNS))
  }

  clear() {
    this.#round = 0
    this.#nextRounds.clear()
  }

  #nextRoundOf = (name: string) => Math.max(this.#nextRounds.get(name) ?? 0, this.#round)
}

const NO_CALLERS = new Map<string, never[]>()

/** Work that waits. Tenants take turns with it, and so do the callers of each tenant. */
export class TurnQueue<T> {
  #items = new Map<string, Map<string, T[]>>()
  #tenants = new Rotation()
  #callers = new BoundedMap<string, Rotation>(MAX_REMEMBERED)
  /** How much waits. */
  size = 0

  sizeOfTenant(tenant: string): number {
    let size = 0
    for (const items of this.#items.get(tenant)?.values() ?? []) size += items.length
    return size
  }

  /** Returns how much of a tenant waits, and of one of its callers. */
  sizesOf = ({ tenant, caller }: WorkOwner) => ({
    ofTenant: this.sizeOfTenant(tenant),
    ofCaller: this.#items.get(tenant)?.get(caller)?.length ?? 0,
  })

  add({ tenant, caller }: WorkOwner, item: T) {
    const callers = this.#items.get(tenant) ?? new Map<string, T[]>()
    this.#items.set(tenant, callers)
    const items = callers.get(caller) ?? []
    callers.set(caller, items)
    items.push(item)
    this.size++
  }

  /** Removes work that waits no longer. Returns false when it was taken before. */
  remove(owner: WorkOwner, item: T): boolean {
    const index = this.#items.get(owner.tenant)?.get(owner.caller)?.indexOf(item) ?? -1
    if (index >= 0) this.#removeAt(owner, index)
    return index >= 0
  }

  /** Removes and returns the last work of the caller of whose work most waits, if that is more than `moreThan`. */
  takeLastOfLongest(tenant: string, moreThan: number): T | undefined {
    let [longest, length] = ['', moreThan]
    for (const [caller, items] of this.#items.get(tenant) ?? NO_CALLERS)
      if (items.length > length) [longest, length] = [caller, items.length]
    return length > moreThan ? this.#removeAt({ tenant, caller: longest }, length - 1) : undefined
  }

  /**
   * Removes and returns the work whose turn it is, among that of owners who may start (of one tenant, if it is given).
   * Returns undefined when there is none.
   */
  takeNext(mayStart: (owner: WorkOwner) => boolean, ofTenant?: string): T | undefined {
    if (!this.size) return
    const startableOf = (tenant: string) =>
      (this.#items.get(tenant) ?? NO_CALLERS).keys().filter((caller) => mayStart({ tenant, caller }))
    const tenants = ofTenant === undefined ? this.#items.keys() : [ofTenant].values()
    const tenant = this.#tenants.takeTurn(tenants.filter((name) => !startableOf(name).next().done))
    if (tenant === undefined) return
    const caller = this.#callersOf(tenant).takeTurn(startableOf(tenant))!
    return this.#removeAt({ tenant, caller }, 0)
  }

  /** Makes an owner sit out turns, because its work took more than one. */
  charge({ tenant, caller }: WorkOwner, turns: number) {
    if (turns <= 0) return
    this.#tenants.charge(tenant, turns)
    this.#callersOf(tenant).charge(caller, turns)
  }

  /** Forgets who owes turns, once nobody waits for them. */
  forgetTurns() {
    this.#tenants.clear()
    this.#callers.clear()
  }

  #callersOf(tenant: string): Rotation {
    const rotation = this.#callers.get(tenant) ?? new Rotation()
    this.#callers.set(tenant, rotation)
    return rotation
  }

  #removeAt({ tenant, caller }: WorkOwner, index: number): T | undefined {
    const callers = this.#items.get(tenant)
    const items = callers?.get(caller)
    const [item] = items?.splice(index, 1) ?? []
    if (items && !items.length) callers?.delete(caller)
    if (callers && !callers.size) this.#items.delete(tenant)
    this.size--
    return item
  }
}
