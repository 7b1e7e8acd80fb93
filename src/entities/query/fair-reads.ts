import type { PublicCtx } from '../../accounts/context'
import { toBodyStream } from '../../core/body-stream'
import { BoundedMap } from '../../core/bounded-map'
import { createDb } from '../../storage/db'
import { Busy } from '../../storage/errors'
import type { Db } from '../../storage/port'
import { clientNetwork } from '../../tenancy/client-connection'
import { costlyWork, type WorkOwner } from '../../tenancy/fair-queue'
import { hasReaderThreads, readInThread, ThreadFailed, type ThreadRead } from '../../tenancy/reader-threads'

/** How many ms a read may take before it counts as costly: on the thread, and waiting for the database. */
export const freeReadMs = { thread: 2.5, waiting: 200 }
const QUEUE_LIMITS = { perTenant: 200, perCaller: 50 }

/** A read that a thread can answer by its name, and what the caller gets of its answer. */
export type ThreadedRead<T> = { name: string; args: string[]; receive(response: Response): T | Promise<T> }

/** Ends the attempt to read on this thread. */
class BecameCostly extends Error {}

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
    ctx: PublicCtx,
    private request: Request,
    /** Whether a thread goes on with reads that turn out to be costly. */
    private mayLeave: boolean,
  ) {
    const { db } = ctx
    this.#payer = toWorkOwner(ctx, request)
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
      if (this.#wasCostly || this.#isCostly()) {
        if (this.mayLeave) throw new BecameCostly()
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

  #pause = (db: Db) =>
    this.#measure(() =>
      !this.mayLeave && (this.#wasCostly || this.#isCostly()) ? this.#runInTurn(async () => {}) : db.yieldToOthers(),
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

const toWorkOwner = ({ tenant, actor }: PublicCtx, request: Request): WorkOwner => ({
  tenant,
  caller: actor?.user ?? `at ${clientNetwork(request)}`,
})

/**
 * Calls `read` with a database whose statements take turns with other costly work once the whole read has become
 * costly. A read that a thread can answer is answered there instead, from its beginning.
 * @throws 503 BUSY when the tenant or the caller has too many such reads under way
 */
export async function readFairly<T>(
  ctx: PublicCtx,
  request: Request,
  read: (db: Db) => Promise<T>,
  threaded?: ThreadedRead<T>,
): Promise<T> {
  const mayLeave = !!threaded && hasReaderThreads(ctx.place)
  const shape = mayLeave ? shapeOf(ctx, threaded, request) : ''
  const reads = new FairReads(ctx, request, mayLeave)
  try {
    return await read(mayLeave && isKnownCostly(shape) ? leaveAtOnce(reads.db) : reads.db)
  } catch (error) {
    if (!(error instanceof BecameCostly)) throw error
  } finally {
    reads.end()
  }
  try {
    return await readApart(ctx, request, threaded!, shape)
  } catch (error) {
    if (!(error instanceof ThreadFailed)) throw error
    return readFairly(ctx, request, read)
  }
}

/** Lets a thread read. Others of this shape go to a thread at once while they take long. */
async function readApart<T>(ctx: PublicCtx, request: Request, threaded: ThreadedRead<T>, shape: string): Promise<T> {
  const began = performance.now()
  const leaveQueue = costlyWork.acquireSlot(toWorkOwner(ctx, request), QUEUE_LIMITS)
  try {
    const response = await readInThread(toThreadRead(ctx, request, threaded), request.signal)
    const isCostly = performance.now() - began > freeReadMs.thread
    costlyUntil.set(shape, isCostly ? performance.now() + COSTLY_TTL_MS : 0)
    return await threaded.receive(response)
  } finally {
    leaveQueue()
  }
}

/**
 * Lets a thread answer with a body that comes in parts; the time during which the client reads them does not count.
 * `onEnd` is called when the client has all of it or goes. Returns undefined where threads do not read, or one has
 * failed.
 * @throws 503 BUSY as `readFairly` does
 */
export async function streamInThread(
  ctx: PublicCtx,
  request: Request,
  read: Pick<ThreadedRead<unknown>, 'name' | 'args'>,
  onEnd: () => void,
): Promise<Response | undefined> {
  if (!hasReaderThreads(ctx.place)) return
  const owner = toWorkOwner(ctx, request)
  const leaveQueue = costlyWork.acquireSlot(owner, QUEUE_LIMITS)
  try {
    const { status, headers, body } = await readInThread(toThreadRead(ctx, request, read), request.signal)
    return new Response(toBodyStream(readParts(body!, owner, onEnd)), { status, headers })
  } catch (error) {
    if (!(error instanceof ThreadFailed)) throw error
  } finally {
    leaveQueue()
  }
}

async function* readParts(body: ReadableStream<Uint8Array>, owner: WorkOwner, onEnd: () => void) {
  const reader = body.getReader()
  try {
    for (;;) {
      const leaveQueue = costlyWork.acquireSlot(owner)
      const { done, value } = await reader.read().finally(leaveQueue)
      if (done) return
      yield value
    }
  } finally {
    await reader.cancel()
    onEnd()
  }
}

function toThreadRead(
  ctx: PublicCtx,
  { url, headers }: Request,
  { name, args }: Pick<ThreadedRead<unknown>, 'name' | 'args'>,
): ThreadRead {
  const sent = SENT_HEADERS.flatMap((header): [string, string][] => {
    const value = headers.get(header)
    return value === null ? [] : [[header, value]]
  })
  return { name, args, place: ctx.place!, actor: ctx.actor, url, headers: sent }
}

/** The headers that the answer of a list depends on. */
const SENT_HEADERS = ['accept-version']

const COSTLY_TTL_MS = 10_000
/** Until when (`performance.now()`) reads of a shape go to a thread at once. */
const costlyUntil = new BoundedMap<string, number>(10_000)
const isKnownCostly = (shape: string) => (costlyUntil.get(shape) ?? 0) > performance.now()

/** Returns what reads have in common that take about equally long: everything but the values of their filters. */
const shapeOf = ({ tenant }: PublicCtx, { name, args }: ThreadedRead<unknown>, { url }: Request) =>
  `${tenant} ${name} ${args.join(' ')} ${url.slice(url.indexOf('?') >>> 0).replace(/=[^&]*/g, '')}`

/** Returns a database that ends the attempt to read on this thread with the first statement. */
const leaveAtOnce = (db: Db): Db => ({
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
  const reads = new FairReads(ctx, request, false)
  try {
    for await (const text of read(reads.db)) {
      reads.suspend()
      yield text
    }
  } finally {
    reads.end()
  }
}
