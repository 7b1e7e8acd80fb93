import type { RunQuery } from '../../port'

export type ReadQuery = { sql: string; params: unknown[] | undefined }
type WaitingRead = ReadQuery & PromiseWithResolvers<unknown[][]>

/** Runs reads in one transaction. Returns the rows or the error of each, in their order. */
export type RunReads = (reads: ReadQuery[]) => Promise<PromiseSettledResult<unknown[][]>[]>

const MAX_CONCURRENT_BATCHES = 4 // transactions of one tenant at a time
const MAX_QUICK_BATCHES = 2 // of quick reads; each further one costs as much as a read
const MAX_SLOW_READS_PER_BATCH = 8 // reads of one transaction; a slow read delays those behind it
const MAX_READS_PER_BATCH = 32 // quick reads of one transaction
const BATCH_MS = 1 // expected time of one transaction of quick reads
const AVERAGE_WEIGHT = 0.1 // weight of the latest transaction in the average time of a read
const CONNECTIONS_PER_BATCH = 10 // of the pool, for each transaction of a tenant that reads beside others
const LONG_BATCH_MS = 50 // beside others, reads that wait for longer batches get one more
const ACTIVE_MS = 10 // how long after its last read a tenant counts as reading, if it waits for none

/** Knows whether several tenants read at the same time, and how many transactions each of them gets then. */
export class ReadShares {
  /** How many transactions of all tenants are running. */
  runningBatches = 0
  #latest = { tenant: '', readAt: Number.NEGATIVE_INFINITY }
  #previous = this.#latest
  #batchesBesideOthers: number

  /** @param connections of the pool, which tell how much work the server can do at once */
  constructor(connections: number) {
    const batches = Math.floor(connections / CONNECTIONS_PER_BATCH)
    this.#batchesBesideOthers = Math.min(Math.max(batches, 1), MAX_CONCURRENT_BATCHES)
  }

  /** Records that a tenant reads now. */
  recordRead(tenant: string) {
    if (this.#latest.tenant !== tenant) {
      this.#previous = this.#latest
      this.#latest = { tenant, readAt: 0 }
    }
    this.#latest.readAt = performance.now()
  }

  /** Returns how many transactions a tenant may run at once, of which it runs some. */
  maxBatchesOf(tenant: string, running: number): number {
    const other = this.#latest.tenant === tenant ? this.#previous : this.#latest
    const isBesideOthers = this.runningBatches > running || performance.now() - other.readAt < ACTIVE_MS
    return isBesideOthers ? this.#batchesBesideOthers : MAX_CONCURRENT_BATCHES
  }
}

/**
 * Runs a tenant's reads. Reads that arrive in the same turn of the event loop, or while all batches are running, share a
 * transaction, which spreads the cost of a message and of setting the tenant: quick ones one or two, slow ones as many as
 * there may be. While others read, too, a tenant has fewer transactions, because each occupies a processor of the server;
 * but its quick reads do not wait for a slow one.
 */
export class ReadBatcher {
  #waiting: WaitingRead[] = []
  #batches = 0
  #isStarting = false
  /** The average time of a read (ms). */
  #readMs = 0
  #lastStartedAt = 0
  #longBatchTimer: ReturnType<typeof setTimeout> | undefined

  constructor(
    private tenant: string,
    private shares: ReadShares,
    private runReads: RunReads,
  ) {}

  query: RunQuery = (sql, params) => {
    const read = { ...Promise.withResolvers<unknown[][]>(), sql, params }
    this.shares.recordRead(this.tenant)
    this.#waiting.push(read)
    if (this.#batches < this.#maxBatches) this.#startSoon()
    else this.#watchForLongBatch()
    return read.promise
  }

  /** Starts batches for all reads of this turn of the event loop. */
  #startSoon() {
    if (this.#isStarting) return
    this.#isStarting = true
    setImmediate(() => {
      this.#isStarting = false
      while (this.#waiting.length && this.#batches < this.#maxBatches) this.#run()
      if (this.#waiting.length) this.#watchForLongBatch()
    })
  }

  /** Takes the reads of the next transaction: as many quick ones as take `BATCH_MS`, or a share of those that wait. */
  #takeReads(): WaitingRead[] {
    const share = Math.ceil(this.#waiting.length / this.#maxConcurrentBatches)
    const count = Math.max(Math.min(share, MAX_SLOW_READS_PER_BATCH), BATCH_MS / this.#readMs)
    return this.#waiting.splice(0, Math.min(count, MAX_READS_PER_BATCH))
  }

  get #maxConcurrentBatches() {
    return this.#readMs < BATCH_MS ? MAX_QUICK_BATCHES : MAX_CONCURRENT_BATCHES
  }

  get #maxBatches() {
    return Math.min(this.shares.maxBatchesOf(this.tenant, this.#batches), this.#maxConcurrentBatches)
  }

  async #run() {
    this.#batches++
    this.shares.runningBatches++
    do {
      this.#lastStartedAt = performance.now()
      await this.#runBatch(this.#takeReads())
    } while (this.#waiting.length && this.#batches <= this.#maxBatches)
    this.#batches--
    this.shares.runningBatches--
  }

  /** Starts one more batch for the waiting reads if no other has begun for long. */
  #watchForLongBatch() {
    if (this.#longBatchTimer || this.#batches >= MAX_CONCURRENT_BATCHES) return
    const ms = this.#lastStartedAt + LONG_BATCH_MS - performance.now()
    this.#longBatchTimer = setTimeout(() => {
      this.#longBatchTimer = undefined
      if (!this.#waiting.length || this.#batches >= MAX_CONCURRENT_BATCHES) return
      if (performance.now() >= this.#lastStartedAt + LONG_BATCH_MS) this.#run()
      if (this.#waiting.length) this.#watchForLongBatch()
    }, ms)
  }

  async #runBatch(reads: WaitingRead[]) {
    const began = performance.now()
    try {
      const results = await this.runReads(reads)
      this.#readMs += AVERAGE_WEIGHT * ((performance.now() - began) / reads.length - this.#readMs)
      const failed = results.findIndex(({ status }) => status === 'rejected')
      for (const [index, result] of results.entries()) {
        const read = reads[index]!
        if (result.status === 'fulfilled') read.resolve(result.value)
        else if (index === failed) read.reject(result.reason)
        // The error has aborted the transaction, so the reads behind the failed one are repeated.
        else this.#waiting.unshift(read)
      }
    } catch (error) {
      for (const { reject } of reads) reject(error)
    }
  }
}
