import type { PublicCtx } from '../../accounts/context'
import { Busy } from '../../storage/errors'
import type { Db } from '../../storage/port'
import { clientNetwork } from '../../tenancy/client-connection'
import { costlyWork, type WorkOwner } from '../../tenancy/fair-queue'

/** What a read may take before it counts as costly, in ms: of the thread, and of waiting for the database. */
export const freeReadMs = { thread: 2.5, waiting: 200 }
const QUEUE_LIMITS = { perTenant: 200, perCaller: 50 }

/**
 * Reads that take turns with all other costly work once they have turned out to be costly: then each statement is a
 * slice, so none may take more than some ms. Cheap reads wait for nobody.
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
  /** Statements that are not answered yet, and since when it has been working on the answers of all. */
  #pending = 0
  #busySince: number | undefined

  constructor(
    { tenant, actor, db }: PublicCtx,
    private request: Request,
  ) {
    this.#payer = { tenant, caller: actor?.user ?? `at ${clientNetwork(request)}` }
    this.db = {
      ...db,
      query: (sql, params) => this.#query(db, sql, params),
      yieldToOthers: () => this.#pause(db),
      origin: db,
    }
  }

  /** For work that goes on for long, and waits for a reader now and then: counts again when it asks for something. */
  suspend() {
    this.#spend()
    this.#leaveQueue?.()
    this.#leaveQueue = undefined
  }

  /** For the end of it: what its parts ask for now is asked in vain, and counted for nobody. */
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
    // Only at its beginning it is refused, and not when much has been done for it.
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
 * Reads by a database whose statements take turns with those of others when all together take long.
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

/** The same for texts that are made only as fast as somebody takes them. */
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
