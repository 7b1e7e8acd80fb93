import type { RunQuery } from '../../port'

export type ReadQuery = { sql: string; params: unknown[] | undefined }
type WaitingRead = ReadQuery & PromiseWithResolvers<unknown[][]>

/** Answers questions in one transaction: for each its rows or its error, in their order. */
export type RunReads = (questions: ReadQuery[]) => Promise<PromiseSettledResult<unknown[][]>[]>

const MAX_CONCURRENT_BATCHES = 4 // transactions of one tenant at a time
const MAX_READS_PER_BATCH = 8 // questions in one of them; a slow one holds up those behind it

/**
 * A tenant's reads. Those that come while all lanes are in use share the next transaction: what it costs to begin one,
 * and to say whose rows may be seen, is divided among them.
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
        // An error ends the transaction for those behind it, who are innocent.
        else this.#waiting.unshift(read)
      }
    } catch (error) {
      for (const { reject } of reads) reject(error)
    }
  }
}
