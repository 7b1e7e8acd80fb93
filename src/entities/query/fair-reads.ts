import type { PublicCtx } from '../../accounts/context'
import { toWorkOwner } from '../../accounts/work-owner'
import type { Awaitable } from '../../core/awaitable'
import { createDb } from '../../storage/db'
import { Busy } from '../../storage/errors'
import type { Db } from '../../storage/port'
import { costlyWork, type WorkOwner } from '../../tenancy/fair-queue'
import { hasReaderThreads, hasThread, startThread, ThreadFailed } from '../../tenancy/reader-threads'
import { COSTLY_READ_LIMITS, chargeFreeRead, clusterReadMs, isCostlyRead, isFlooding } from './read-costs'
import { isKnownCostly, markCostly, type PreparedRead, readThreaded, type ThreadedRead } from './threaded-reads'

/** Ends a read on the main thread, which a reader thread then repeats. */
class BecameCostly extends Error {}

const PROBABLY_SHORT_MS = 10 // of thread time, before a probably short read moves to a reader thread
const BRIDGE_MS = 1_000 // before the read that continues here while a thread starts moves to it
const bridge = { isTaken: false, until: 0 }

/**
 * Reads that take turns with all other costly work once they turn out to be costly. Each statement is then a slice, so
 * a statement may take only a few ms. Cheap reads never wait.
 */
class FairReads {
  readonly db: Db
  #leaveQueue: (() => void) | undefined
  #wasCostly: boolean
  #isInCluster: boolean
  #hasEnded = false
  /** Whether the read continues here while a reader thread starts. */
  #isBridge = false
  #threadMs = 0
  /** The thread time of a read that takes turns. */
  #chargedMs = 0
  #waitedMs = 0
  /** The number of running statements, and since when the results of all of them are being processed. */
  #pending = 0
  #busySince: number | undefined

  constructor(
    { db, place }: Pick<PublicCtx, 'db' | 'place'>,
    private payer: WorkOwner,
    /** Has the signal of the client's disconnection. A request makes its own when it is first asked for it. */
    private caller: { signal?: AbortSignal },
    /** Whether a reader thread takes over when the read becomes costly. */
    private canUseThread: boolean,
    /** Whether the read is costly from its first statement on. */
    isKnownCostly = false,
    /** Whether an index finds its first rows, so that it takes turns here before a thread takes over. */
    private isProbablyShort = false,
  ) {
    this.#isInCluster = !!place?.cluster
    // A thread has few connections to PostgreSQL, so all reads there take turns with them.
    this.#wasCostly = isKnownCostly || (this.#isInCluster && !Bun.isMainThread)
    this.db = {
      ...createDb((sql, params) => this.#query(db, sql, params)),
      vectorSearch: db.vectorSearch,
      wordIndex: db.wordIndex,
      yieldToOthers: () => this.#pause(db),
      runInTurn: (work) => this.#measure(() => this.#runInTurn(async () => work())),
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
    if (this.#hasEnded) return
    this.#hasEnded = true
    if (this.#isBridge) {
      bridge.isTaken = false
      startThread()
    }
    this.suspend()
    chargeFreeRead(this.payer.tenant, this.#threadMs)
  }

  async #query(db: Db, sql: string, params?: unknown[]): Promise<unknown[][]> {
    return this.#measure(async () => {
      if (this.#wasCostly || this.isCostly) {
        if (this.#shouldLeave()) throw new BecameCostly()
        return this.#runInTurn(() => db.query(sql, params))
      }
      const began = performance.now()
      const answered = db.query(sql, params)
      this.#threadMs += performance.now() - began
      const rows = await answered
      this.#waitedMs += performance.now() - began
      return rows
    })
  }

  /**
   * Tells whether a thread takes over now. A read that already takes turns continues with them. While no thread runs, one read
   * continues here, because starting a thread takes as long as many reads.
   */
  #shouldLeave(): boolean {
    if (this.#isBridge) return performance.now() > bridge.until
    if ((this.#wasCostly && !this.isProbablyShort) || !this.shouldUseThread) return false
    if (this.#isInCluster || bridge.isTaken || hasThread()) return true
    this.#isBridge = bridge.isTaken = true
    bridge.until = performance.now() + BRIDGE_MS
    return false
  }

  #pause = (db: Db) =>
    this.#measure(() =>
      this.#wasCostly || (this.isCostly && !this.shouldUseThread)
        ? this.#runInTurn(async () => {})
        : db.yieldToOthers(),
    )

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
    if (this.#hasEnded || this.caller.signal?.aborted) throw new Busy('The client disconnected.')
    // A read is refused only at its beginning, not after much work has been done for it.
    this.#leaveQueue ??= costlyWork.acquireSlot(this.payer, this.#wasCostly ? undefined : COSTLY_READ_LIMITS)
    this.#wasCostly = true
    return costlyWork.run(this.payer, slice)
  }

  get isCostly() {
    return isCostlyRead(this.payer.tenant, this.#threadMs, this.#waitedMs)
  }

  /**
   * Tells whether a reader thread should answer such a read. PostgreSQL runs its statements in processes of its own, so
   * only what the read does with their rows counts there.
   */
  get shouldUseThread() {
    if (!this.canUseThread) return false
    if (this.#isInCluster) return this.#threadMs + this.#chargedMs > clusterReadMs.thread
    return this.isProbablyShort ? this.#threadMs + this.#chargedMs > PROBABLY_SHORT_MS : this.isCostly
  }

  #spend() {
    if (this.#busySince === undefined) return
    const ms = performance.now() - this.#busySince
    this.#busySince = undefined
    if (!this.#wasCostly) this.#threadMs += ms
    else {
      costlyWork.chargeThreadTime(ms)
      this.#chargedMs += ms
    }
  }
}

/**
 * Calls `read` with a database whose statements take turns with other costly work once the whole read has become
 * costly. A read that a thread can answer is answered there instead, from its beginning.
 * @throws 503 BUSY when the tenant or the caller has too many such reads under way
 */
export async function readFairly<T>(
  ctx: PublicCtx,
  request: Request,
  read: (db: Db) => Awaitable<T>,
  threaded?: ThreadedRead<T>,
): Promise<T> {
  if (!threaded || !hasReaderThreads(ctx.place) || (ctx.place.cluster && !isPopulated(request)))
    return readHere(ctx, request, read)
  if (isKnownCostly(ctx, request, threaded)) return readPrepared(ctx, request, read, threaded, false)
  try {
    return await readHere(ctx, request, read, threaded)
  } catch (error) {
    if (!(error instanceof BecameCostly)) throw error
    markCostly(ctx, request, threaded)
  }
  return readPrepared(ctx, request, read, threaded, true)
}

/** Reads on the main thread. @throws BecameCostly when a thread can answer the read and it takes long here */
async function readHere<T>(
  ctx: PublicCtx,
  request: Request,
  read: (db: Db) => Awaitable<T>,
  threaded?: ThreadedRead<T>,
  isProbablyShort = false,
): Promise<T> {
  const payer = toWorkOwner(ctx, request)
  const takesTurns = isFlooding(ctx.tenant)
  const reads = new FairReads(ctx, payer, request, !!threaded, takesTurns, isProbablyShort || takesTurns)
  try {
    const result = await read(reads.db)
    reads.end()
    // Most of it may have been done after the last statement.
    if (threaded && reads.shouldUseThread) markCostly(ctx, request, threaded)
    return result
  } finally {
    reads.end()
  }
}

/** Runs a read up to its first statement, which authorizes and counts it. @throws BecameCostly */
async function beginHere<T>(ctx: PublicCtx, request: Request, read: (db: Db) => Awaitable<T>): Promise<T> {
  const reads = new FairReads(ctx, toWorkOwner(ctx, request), request, true)
  try {
    return await read(createCostlyDb(reads.db))
  } finally {
    reads.end()
  }
}

/** Prepares and runs a costly read. With `hasBegun`, it is already authorized and counted. */
async function readPrepared<T>(
  ctx: PublicCtx,
  request: Request,
  read: (db: Db) => Awaitable<T>,
  threaded: ThreadedRead<T>,
  hasBegun: boolean,
): Promise<T> {
  const leaveQueue = costlyWork.acquireSlot(toWorkOwner(ctx, request), COSTLY_READ_LIMITS)
  const { size, end } = await (
    threaded.prepare?.(hasBegun) ?? Promise.resolve<PreparedRead>({ size: 'large' })
  ).finally(leaveQueue)
  const answer = async () => {
    // No time limit, because other processes may use the CPU.
    if (size === 'small') return readHere(ctx, request, read)
    try {
      if (size === 'unknown') return await readHere(ctx, request, read, threaded, true)
      if (!hasBegun) return await beginHere(ctx, request, read)
    } catch (error) {
      if (!(error instanceof BecameCostly)) throw error
    }
    return readInThreadOrHere(ctx, request, read, threaded)
  }
  return answer().finally(end)
}

/** Reads in a thread, or here if the thread fails. */
async function readInThreadOrHere<T>(
  ctx: PublicCtx,
  request: Request,
  read: (db: Db) => Awaitable<T>,
  threaded: ThreadedRead<T>,
): Promise<T> {
  try {
    return await readThreaded(ctx, request, threaded)
  } catch (error) {
    if (!(error instanceof ThreadFailed)) throw error
    return readHere(ctx, request, read)
  }
}

// Other reads of PostgreSQL mostly wait for its processes, which a thread would not shorten.
const isPopulated = ({ url }: Request) => /populate=/i.test(url)

/** Calls `read` with a database all of whose statements take turns with other costly work, on the main thread. */
export async function readInTurns<T>(ctx: PublicCtx, signal: AbortSignal | undefined, read: (db: Db) => Promise<T>) {
  const reads = new FairReads(ctx, toWorkOwner(ctx), { signal }, false, true)
  return read(reads.db).finally(() => reads.end())
}

/** Returns a database whose first statement already counts as costly. */
const createCostlyDb = (db: Db): Db => ({
  ...db,
  ...createDb(async () => {
    throw new BecameCostly()
  }),
  origin: db.origin,
})

/** Yields the texts of `read` like `readFairly`; the time during which the client reads them does not count. */
export async function* streamFairly(
  ctx: PublicCtx,
  request: Request,
  read: (db: Db) => AsyncGenerator<string>,
): AsyncGenerator<string> {
  const reads = new FairReads(ctx, toWorkOwner(ctx, request), request, false)
  try {
    for await (const text of read(reads.db)) {
      reads.suspend()
      yield text
    }
  } finally {
    reads.end()
  }
}
