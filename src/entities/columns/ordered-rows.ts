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
    const places = removed
      .map((row) => this.findPlace((other) => this.compare(other, row) >= 0))
      .filter((place, at) => place < this.length && this.#rows[place] === removed[at])
      .sort((one, other) => one - other)
    for (const [at, place] of places.entries())
      this.#rows.copyWithin(place - at, place + 1, places[at + 1] ?? this.length)
    this.length -= places.length
  }

  /** Adds rows that it lacks. */
  add(added: number[]) {
    this.#grow(this.length + added.length)
    const sorted = added.toSorted(this.compare)
    const places = sorted.map((row) => this.findPlace((other) => this.compare(other, row) > 0))
    for (let at = places.length - 1; at >= 0; at--) {
      this.#rows.copyWithin(places[at]! + at + 1, places[at]!, places[at + 1] ?? this.length)
      this.#rows[places[at]! + at] = sorted[at]!
    }
    this.length += added.length
  }

  #grow(length: number) {
    if (length <= this.#rows.length) return
    const grown = new Uint32Array(Math.ceil(length * 1.25))
    grown.set(this.#rows.subarray(0, this.length))
    this.#rows = grown
  }
}
