import type { EntityRow } from './index-rows'

const ROWS_PER_RUN = 5_000 // sorted together

/** Rows in the order of the index, so that consecutive inserts write to the same pages. */
export class SortedRows {
  #added: EntityRow[] = []
  #texts = new Map<string, string>()
  #runs: { rows: EntityRow[]; next: number }[] = []

  add(rows: EntityRow[]) {
    for (const row of rows) row.path = this.#shareText(row.path)
    this.#added.push(...rows)
    if (this.#added.length >= ROWS_PER_RUN) this.#sortAdded()
  }

  /** Removes and returns the next rows. */
  take(count: number): EntityRow[] {
    if (this.#added.length) this.#sortAdded()
    const taken: EntityRow[] = []
    while (taken.length < count && this.#runs.length) {
      let first = this.#runs[0]!
      for (const run of this.#runs) if (compareRows(run.rows[run.next]!, first.rows[first.next]!) < 0) first = run
      taken.push(first.rows[first.next++]!)
      if (first.next === first.rows.length) this.#runs.splice(this.#runs.indexOf(first), 1)
    }
    return taken
  }

  /** Returns a text that is the same in memory for all rows that have it, so that comparing it with itself is quick. */
  #shareText(text: string): string {
    const shared = this.#texts.get(text)
    if (shared === undefined) this.#texts.set(text, text)
    return shared ?? text
  }

  #sortAdded() {
    this.#runs.push({ rows: this.#added.sort(compareRows), next: 0 })
    this.#added = []
  }
}

/** Databases order some rare letters differently, which costs at most an extra page. */
const compareRows = (one: EntityRow, other: EntityRow) =>
  compare(one.path, other.path) ||
  compare(one.value, other.value) ||
  one.created - other.created ||
  one.entity - other.entity

const compare = (one: string, other: string) => (one === other ? 0 : one < other ? -1 : 1)
