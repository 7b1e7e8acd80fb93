import type { RunQuery } from '../../port'

export type ReadQuery = { sql: string; params: unknown[] | undefined }
type WaitingRead = ReadQuery & PromiseWithResolvers<unknown[][]>

/** Runs reads in one transaction. Returns the rows or the error of each, in their order. */
export type RunReads = (reads: ReadQuery[]) => Promise<PromiseSettledResult<unknown[][]>[]>

const MAX_CONCURRENT_BATCHES = 4 // transactions of one tenant at a time
const MAX_READS_PER_BATCH = 8 // reads of one transaction; a slow read delays those behind it

/**
 * Runs a tenant's reads. Reads that arrive while all batches are running share the next transaction, which spreads the
 * cost of beginning it and of setting the tenant.
 */
export class ReadBatcher {
  #waiting: WaitingRead[] = []
  #batches = 0

  constructor(private runReads: RunReads) {}

  query: RunQuery = (sql, params) => {
    const read = { ...Promise.withResolvers<unknown[][]>(), sql, params }
    this.#waiting.push(read)
    if (this.#batches < MAX_CONCURRENT_BATCHES) this.#run()
    return read.promise
  }

  async #run() {
    this.#batches++
    while (this.#waiting.length) await this.#runBatch(this.#waiting.splice(0, MAX_READS_PER_BATCH))
    this.#batches--
  }

  async #runBatch(reads: WaitingRead[]) {
    try {
      const results = await this.runReads(reads)
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
