import type { Db } from '../../storage/port'
import { isAscii } from '../search/tokenizer'
import type { SqlFragment } from '../store/sql-fragments'

/**
 * A lower-case substring of the text of every entity (`e`) that meets a condition, unless the text is not ASCII, has more than
 * `maxBytes`, or contains `hiddenBy`.
 */
export type Literal = { text: SqlFragment; part: string; maxBytes: number; hiddenBy?: string }

/** Keeps SQLite from evaluating a text once for each of its uses. */
const MAX_ROWS = 1 << 20

/** Searches the concatenated texts of a slice for a literal. Most slices lack it, and are skipped without a look at each row. */
export class LiteralScan {
  #isUseful = true
  #wasInLastSlice = false

  constructor(private literal: Literal) {}

  /** Returns the numbers of the entities that may contain the literal, or undefined when many may. */
  async find(db: Db, from: string, where: SqlFragment): Promise<number[] | undefined> {
    if (!this.#isUseful) return
    let read = await this.#read(db, from, where, this.#wasInLastSlice)
    if (!read) return
    this.#wasInLastSlice = read.isAnyLong || read.texts.includes(this.literal.part)
    if (!this.#wasInLastSlice) return []
    // One statement reads both, because entities may change between two.
    read = read.numbers ? read : await this.#read(db, from, where, true)
    if (!read?.numbers) return
    const found = this.#findRows(read.texts, read.numbers)
    // If many contain it, testing each row is faster.
    this.#isUseful = 8 * found.length < read.numbers.length
    return this.#isUseful ? found : undefined
  }

  /** Returns the concatenated texts, or undefined unless they are ASCII. `numbers` has the number and the size of each row. */
  async #read(db: Db, from: string, where: SqlFragment, withNumbers: boolean) {
    const { text, part, maxBytes, hiddenBy } = this.literal
    const short = `group_concat(case when octet_length(n.text) <= ${maxBytes} then n.text else '' end, '')`
    const numbers = withNumbers ? `group_concat(concat(n.seq, ',', octet_length(n.text)), ',')` : 'null'
    const rows = `select e.seq as seq, coalesce(${text.sql}, '') as text from ${from} where ${where.sql} limit ${MAX_ROWS}`
    const [row] = await db.query(`select ${short}, max(octet_length(n.text)), ${numbers} from (${rows}) as n`, [
      ...text.params,
      ...where.params,
    ])
    const [texts, longest, joined] = row as [string | null, number | null, string | null]
    if (texts === null) return { texts: '', isAnyLong: false, numbers: [] }
    this.#isUseful = isAscii(texts) && !(hiddenBy && texts.includes(hiddenBy))
    if (!this.#isUseful) return
    return {
      texts: part === part.toUpperCase() ? texts : texts.toLowerCase(),
      isAnyLong: Number(longest) > maxBytes,
      numbers: withNumbers ? (JSON.parse(`[${joined}]`) as number[]) : undefined,
    }
  }

  /** Returns the entities whose texts contain the literal or are long. */
  #findRows(texts: string, numbers: number[]): number[] {
    const { part, maxBytes } = this.literal
    const found: number[] = []
    let [at, end] = [texts.indexOf(part), 0]
    for (let n = 0; n < numbers.length; n += 2) {
      const [entity, size] = [numbers[n]!, numbers[n + 1]!]
      const isLong = size > maxBytes
      const start = end
      if (!isLong) end += size
      if (at >= 0 && at < start) at = texts.indexOf(part, start)
      if (isLong || (at >= 0 && at + part.length <= end)) found.push(entity)
    }
    return found
  }
}
