import type { PublicCtx } from '../../accounts/context'
import { createDb } from '../../storage/db'
import { Busy } from '../../storage/errors'
import type { Db } from '../../storage/port'
import { clientNetwork } from '../../tenancy/client-connection'
import { costlyWork, type WorkOwner } from '../../tenancy/fair-queue'

/** How many ms a read may take before it counts as costly: on the thread, and waiting for the database. */
export const freeReadMs = { thread: 2.5, waiting: 200 }
const QUEUE_LIMITS = { perTenant: 200, perCaller: 50 }

/**
 * Reads that take turns with all other costly work once they turn out to be costly. Each statement is then a slice, so
 * a statement may take only a few ms. Cheap reads never wait.
 */
class FairReads {
  readonly db: Db
  #payer: WorkOwner
  #signal: AbortSignal | undefined
  #leaveQueue: (() => void) | undefined
  #wasCostly = false
  #hasEnded = false
  #threadMs = 0
  #waitedMs = 0
  /** The number of running statements, and since when the results of all of them are being processed. */
  #pending = 0
  #busySince: number | undefined

  constructor(
    { tenant, actor, db }: PublicCtx,
    private request: Request,
  ) {
    this.#payer = { tenant, caller: actor?.user ?? `at ${clientNetwork(request)}` }
    this.db = {
      ...createDb((sql, params) => this.#query(db, sql, params)),
      vectorSearch: db.vectorSearch,
      yieldToOthers: () => this.#pause(db),
      origin: db,
    }
  }

  /** Stops the measurement and leaves the queue while a long read waits for the client; the next query resumes both. */
  suspend() {
    this.#spend()
    this.#leaveQueue?.()
    this.#leaveQueue = undefined
  }

  /** Ends the reads: later queries of costly reads fail, and later work is charged to nobody. */
  end() {
    this.#hasEnded = true
    this.suspend()
  }

  async #query(db: Db, sql: string, params?: unknown[]): Promise<unknown[][]> {
    return this.#measure(async () => {
      if (this.#wasCostly || this.#isCostly()) return this.#runInTurn(() => db.query(sql, params))
      const began = performance.now()
      const answered = db.query(sql, params)
      this.#threadMs += performance.now() - began
      const rows = await answered
      this.#waitedMs += performance.now() - began
      return rows
    })
  }

  #pause = (db: Db) =>
    this.#measure(() => (this.#wasCostly || this.#isCostly() ? this.#runInTurn(async () => {}) : db.yieldToOthers()))

  async #measure<T>(work: () => Promise<T>): Promise<T> {
    this.#spend()
    this.#pending++
    try {
      return await work()
    } finally {
      if (--this.#pending === 0) this.#busySince = performance.now()
    }
  }

  async #runInTurn<T>(slice: () => Promise<T>): Promise<T> {
    this.#signal ??= this.request.signal
    if (this.#hasEnded || this.#signal.aborted) throw new Busy('The client disconnected.')
    // A read is refused only at its beginning, not after much work has been done for it.
    this.#leaveQueue ??= costlyWork.acquireSlot(this.#payer, this.#wasCostly ? undefined : QUEUE_LIMITS)
    this.#wasCostly = true
    return costlyWork.run(this.#payer, slice)
  }

  #isCostly = () => this.#threadMs > freeReadMs.thread || this.#waitedMs > freeReadMs.waiting

  #spend() {
    if (this.#busySince === undefined) return
    const ms = performance.now() - this.#busySince
    this.#busySince = undefined
    if (this.#wasCostly) costlyWork.chargeThreadTime(ms)
    else this.#threadMs += ms
  }
}

/**
 * Calls `read` with a database whose statements take turns with other costly work once the whole read has become
 * costly.
 * @throws 503 BUSY when the tenant or the caller has too many such reads under way
 */
export async function readFairly<T>(ctx: PublicCtx, request: Request, read: (db: Db) => Promise<T>): Promise<T> {
  const reads = new FairReads(ctx, request)
  try {
    return await read(reads.db)
  } finally {
    reads.end()
  }
}

/** Yields the texts of `read` like `readFairly`; the time during which the client reads them does not count. */
export async function* streamFairly(
  ctx: PublicCtx,
  request: Request,
  read: (db: Db) => AsyncGenerator<string>,
): AsyncGenerator<string> {
  const reads = new FairReads(ctx, request)
  try {
    for await (const text of read(reads.db)) {
      reads.suspend()
      yield text
    }
  } finally {
    reads.end()
  }
}
