const WINDOW_MS = 50
const MAX_FACTOR = 1.25 // of an even share

/** Tells which tenants take more of the thread than others that use it at the same time. */
export class ThreadShares {
  /** Thread time (ms) by tenant, of this window and of the last one. */
  #current = new Map<string, number>()
  #last = new Map<string, number>()
  #lastMs = 0
  #startedAt: number

  /** `readTime` returns the time in ms. */
  constructor(private readonly readTime = () => performance.now()) {
    this.#startedAt = readTime()
  }

  /** Records thread time (ms) of a tenant. */
  note(tenant: string, ms: number) {
    this.#startWindow()
    this.#current.set(tenant, (this.#current.get(tenant) ?? 0) + ms)
  }

  /** Tells whether a tenant has just used more than an even share of what all tenants used. */
  isExceeded(tenant: string): boolean {
    this.#startWindow()
    const evenMs = this.#lastMs / this.#last.size
    return (this.#last.get(tenant) ?? 0) > evenMs * MAX_FACTOR
  }

  /** Whether only one tenant has used the thread of late. */
  get isAlone(): boolean {
    this.#startWindow()
    return this.#current.size <= 1 && this.#last.size <= 1
  }

  #startWindow() {
    const elapsedMs = this.readTime() - this.#startedAt
    if (elapsedMs < WINDOW_MS) return
    this.#last = elapsedMs < 2 * WINDOW_MS ? this.#current : new Map()
    this.#lastMs = this.#last.values().reduce((sum, ms) => sum + ms, 0)
    this.#current = new Map()
    this.#startedAt += elapsedMs
  }
}
