import type pg from 'pg'
import { toStorageError } from '../../errors'
import { type GroupedStatement, runGroup, type Statement, type StatementResult } from './statement-group'

type WaitingStatement = GroupedStatement & PromiseWithResolvers<StatementResult>

const MAX_STATEMENTS_PER_GROUP = 200 // the first of them are run while others are still being made

const AWAITED_PROMISES = 10 // one after the other, for which statements wait that belong together

/** Sends the statements that a transaction begins together in one piece, so that both sides wake up once for all. */
export class StatementQueue {
  #waiting: WaitingStatement[] = []
  #hasEnded = false

  constructor(private client: pg.ClientBase) {}

  /** Runs a statement, after those that are queued. @throws the error as one of `errors.ts`, also that of one before it */
  run = (statement: Statement, params?: unknown[]): Promise<StatementResult> => {
    if (this.#hasEnded) return Promise.reject(transactionEnded())
    const waiting = { ...Promise.withResolvers<StatementResult>(), statement, params }
    this.#waiting.push(waiting)
    if (this.#waiting.length === 1) this.#sendSoon()
    if (this.#waiting.length === MAX_STATEMENTS_PER_GROUP) this.send()
    return waiting.promise
  }

  async #sendSoon() {
    for (let n = 0; n < AWAITED_PROMISES; n++) await undefined
    this.send()
  }

  /** Sends what is queued now. */
  send = () => {
    const group = this.#waiting.splice(0)
    if (group.length) this.#runGroup(group)
  }

  /** Refuses what is queued, and what comes later: after the transaction, it would run without the tenant's role. */
  end() {
    this.#hasEnded = true
    for (const { reject } of this.#waiting.splice(0)) reject(transactionEnded())
  }

  async #runGroup(group: WaitingStatement[]) {
    const { results, error } = await runGroup(this.client, group).catch((error) => ({ results: [], error }))
    const failure = error && toStorageError(error)
    for (const [n, { resolve, reject }] of group.entries()) {
      const result = results[n]
      if (result) resolve(result)
      else reject(failure)
    }
  }
}

const transactionEnded = () => new Error('The transaction has already ended.')
