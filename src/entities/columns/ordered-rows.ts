/** The first of these are moved one by one; with more, all rows are copied once. */
const MAX_SINGLE_MOVES = 24

/** Rows of a table in an order that no two of them share. */
export class OrderedRows {
  #rows: Uint32Array<ArrayBuffer>
  length: number

  /** `sorted` has rows in the order of `compare`. */
  constructor(
    sorted: Uint32Array<ArrayBuffer>,
    private readonly compare: (one: number, other: number) => number,
  ) {
    this.#rows = sorted
    this.length = sorted.length
  }

  /** Returns a row by its place. */
  at = (place: number) => this.#rows[place]!

  toArray = () => this.#rows.subarray(0, this.length)

  /** Returns the rows that pass a test, in the same order. */
  filter(test: (row: number) => boolean): OrderedRows {
    return new OrderedRows(this.toArray().filter(test), this.compare)
  }

  /** Returns the first place whose row passes a test that all later ones pass. */
  findPlace(isPast: (row: number) => boolean): number {
    let [from, to] = [0, this.length]
    while (from < to) {
      const middle = (from + to) >>> 1
      if (isPast(this.#rows[middle]!)) to = middle
      else from = middle + 1
    }
    return from
  }

  /** Removes rows, whose order must not have changed yet. */
  remove(removed: number[]) {
    if (removed.length > MAX_SINGLE_MOVES) {
      const all = new Set(removed)
      let kept = 0
      for (let place = 0; place < this.length; place++) {
        const row = this.#rows[place]!
        if (!all.has(row)) this.#rows[kept++] = row
      }
      this.length = kept
      return
    }
    for (const row of removed) {
      const place = this.findPlace((other) => this.compare(other, row) >= 0)
      if (place === this.length || this.#rows[place] !== row) continue
      this.#rows.copyWithin(place, place + 1, this.length)
      this.length--
    }
  }

  /** Adds rows that it lacks. */
  add(added: number[]) {
    this.#grow(this.length + added.length)
    if (added.length <= MAX_SINGLE_MOVES) {
      for (const row of added) {
        const place = this.findPlace((other) => this.compare(other, row) > 0)
        this.#rows.copyWithin(place + 1, place, this.length)
        this.#rows[place] = row
        this.length++
      }
      return
    }
    const sorted = added.toSorted(this.compare)
    let [from, to] = [this.length - 1, this.length + sorted.length - 1]
    this.length += sorted.length
    for (let at = sorted.length - 1; at >= 0; to--) {
      if (from >= 0 && this.compare(this.#rows[from]!, sorted[at]!) > 0) this.#rows[to] = this.#rows[from--]!
      else this.#rows[to] = sorted[at--]!
    }
  }

  #grow(length: number) {
    if (length <= this.#rows.length) return
    const grown = new Uint32Array(Math.ceil(length * 1.25))
    grown.set(this.#rows.subarray(0, this.length))
    this.#rows = grown
  }
}
