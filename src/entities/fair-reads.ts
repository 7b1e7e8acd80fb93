import type { OpenCtx } from '../accounts/guard'
import { Busy } from '../storage/errors'
import type { Db } from '../storage/port'
import { networkOf } from '../tenancy/caller'
import { costlyWork, type Payer } from '../tenancy/fair-queue'

/** What a read may take before it counts as costly, in ms: of the thread, and of waiting for the database. */
export const freeOfTurns = { thread: 2.5, waiting: 200 }
const LIMITS = { perTenant: 200, perCaller: 50 }

/**
 * Reads that take turns with all other costly work once they have turned out to be costly: then each statement is a
 * slice, so none may take more than some ms. Cheap reads wait for nobody.
 */
class FairReads {
  readonly db: Db
  #payer: Payer
  #signal: AbortSignal | undefined
  #leave: (() => void) | undefined
  #costly = false
  #ended = false
  #thread = 0
  #waited = 0
  /** Statements that are not answered yet, and since when it has been working on the answers of all. */
  #asking = 0
  #since: number | undefined

  constructor(
    { tenant, actor, db }: OpenCtx,
    private request: Request,
  ) {
    this.#payer = { tenant, caller: actor?.user ?? `at ${networkOf(request)}` }
    this.db = { ...db, ask: (sql, params) => this.#ask(db, sql, params), pause: () => this.#pause(db), origin: db }
  }

  /** For work that goes on for long, and waits for a reader now and then: counts again when it asks for something. */
  rest() {
    this.#spend()
    this.#leave?.()
    this.#leave = undefined
  }

  /** For the end of it: what its parts ask for now is asked in vain, and counted for nobody. */
  end() {
    this.#ended = true
    this.rest()
  }

  async #ask(db: Db, sql: string, params?: unknown[]): Promise<unknown[][]> {
    return this.#working(async () => {
      if (this.#costly || this.#isCostly()) return this.#inTurn(() => db.ask(sql, params))
      const began = performance.now()
      const asked = db.ask(sql, params)
      this.#thread += performance.now() - began
      const rows = await asked
      this.#waited += performance.now() - began
      return rows
    })
  }

  #pause = (db: Db) =>
    this.#working(() => (this.#costly || this.#isCostly() ? this.#inTurn(async () => {}) : db.pause()))

  async #working<T>(work: () => Promise<T>): Promise<T> {
    this.#spend()
    this.#asking++
    try {
      return await work()
    } finally {
      if (--this.#asking === 0) this.#since = performance.now()
    }
  }

  async #inTurn<T>(slice: () => Promise<T>): Promise<T> {
    this.#signal ??= this.request.signal
    if (this.#ended || this.#signal.aborted) throw new Busy('Whoever asked has gone.')
    // Only at its beginning it is refused, and not when much has been done for it.
    this.#leave ??= costlyWork.enter(this.#payer, this.#costly ? undefined : LIMITS)
    this.#costly = true
    return costlyWork.run(this.#payer, slice)
  }

  #isCostly = () => this.#thread > freeOfTurns.thread || this.#waited > freeOfTurns.waiting

  #spend() {
    if (this.#since === undefined) return
    const ms = performance.now() - this.#since
    this.#since = undefined
    if (this.#costly) costlyWork.spend(ms)
    else this.#thread += ms
  }
}

/**
 * Reads by a database whose statements take turns with those of others when all together take long.
 * @throws 503 BUSY when the tenant or the caller has too many such reads under way
 */
export async function readFairly<T>(ctx: OpenCtx, request: Request, read: (db: Db) => Promise<T>): Promise<T> {
  const reads = new FairReads(ctx, request)
  try {
    return await read(reads.db)
  } finally {
    reads.end()
  }
}

/** The same for texts that are made only as fast as somebody takes them. */
export async function* streamFairly(
  ctx: OpenCtx,
  request: Request,
  read: (db: Db) => AsyncGenerator<string>,
): AsyncGenerator<string> {
  const reads = new FairReads(ctx, request)
  try {
    for await (const text of read(reads.db)) {
      reads.rest()
      yield text
    }
  } finally {
    reads.end()
  }
}
