import type { Ask } from '../../port'

export type Question = { sql: string; params: unknown[] | undefined }
type Waiting = Question & PromiseWithResolvers<unknown[][]>

/** Answers questions in one transaction: for each its rows or its error, in their order. */
export type Answering = (questions: Question[]) => Promise<PromiseSettledResult<unknown[][]>[]>

const LANES = 4 // transactions of one tenant at a time
const TOGETHER = 8 // questions in one of them; a slow one holds up those behind it

/**
 * A tenant's reads. Those that come while all lanes are in use share the next transaction: what it costs to begin one,
 * and to say whose rows may be seen, is divided among them.
 */
export class Reads {
  #waiting: Waiting[] = []
  #lanes = 0

  constructor(private answering: Answering) {}

  ask: Ask = (sql, params) => {
    const question = { ...Promise.withResolvers<unknown[][]>(), sql, params }
    this.#waiting.push(question)
    if (this.#lanes < LANES) this.#run()
    return question.promise
  }

  async #run() {
    this.#lanes++
    while (this.#waiting.length) await this.#answer(this.#waiting.splice(0, TOGETHER))
    this.#lanes--
  }

  async #answer(questions: Waiting[]) {
    try {
      const answers = await this.answering(questions)
      const failed = answers.findIndex(({ status }) => status === 'rejected')
      for (const [index, answer] of answers.entries()) {
        const question = questions[index]!
        if (answer.status === 'fulfilled') question.resolve(answer.value)
        else if (index === failed) question.reject(answer.reason)
        // An error ends the transaction for those behind it, who are innocent.
        else this.#waiting.unshift(question)
      }
    } catch (error) {
      for (const { reject } of questions) reject(error)
    }
  }
}
