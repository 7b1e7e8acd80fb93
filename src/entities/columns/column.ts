import { isTruncated } from '../../blueprints/fields/index-key-codec'
import { compareValues } from '../query/value-order'
import type { OrderedRows } from './ordered-rows'
import { packValues, type SortedValues, sortValues, type Value } from './sorted-values'

/** A value, and the code of the first sorted value that is not less. */
type ValuePlace = { value: Value; code: number }

/** The code of rows without a value. */
export const NO_VALUE = 0
const WIDE = /[^\0-\xff]/
const [NUMBER_BYTES, END_BYTES] = [8, 4] // of a sorted number, and of where a text ends
const MIN_UNSORTED = 2_000 // values
const VALUES_PER_STEP = 16_384

/**
 * The values that the rows of a table have of one target. Each distinct value has a code. Codes of sorted values are in the
 * order of the values; values that were added later have higher codes, until they are sorted.
 */
export class Column {
  codes = new Uint32Array(0)
  /** The rows by value and time, once all entities have been read. */
  rows: OrderedRows | undefined
  /** Whether there was a text of which the index key has only the beginning. */
  hasLongTexts = false
  #sorted: SortedValues = []
  #added: Value[] = []
  #addedCodes = new Map<Value, number>()
  #characters = 0
  #sortedBytes = END_BYTES
  /** A text with other letters than Latin ones has two bytes for each, and so have all that are joined with it. */
  #characterBytes = 1

  grow(rows: number) {
    const grown = new Uint32Array(rows)
    grown.set(this.codes)
    this.codes = grown
  }

  /** Estimated from what its arrays and texts take. */
  get bytes() {
    return 8 * this.codes.length + this.valueBytes
  }

  get valueBytes() {
    return this.#sortedBytes * this.#sorted.length + 100 * this.#added.length + this.#characterBytes * this.#characters
  }

  /** How many distinct values there are, also such as no row has any more. */
  get valueCount() {
    return this.#sorted.length + this.#added.length
  }

  /** Returns the code of a value, which it is given unless it has one. */
  encode(value: Value | null): number {
    if (value === null) return NO_VALUE
    const known = this.findCode(value)
    if (known !== undefined) return known
    const code = this.#sorted.length + this.#added.push(value)
    this.#addedCodes.set(value, code)
    if (typeof value === 'number') this.#sortedBytes = NUMBER_BYTES
    else {
      this.#characters += value.length
      if (isTruncated(value)) this.hasLongTexts = true
      if (WIDE.test(value)) this.#characterBytes = 2
    }
    return code
  }

  /** Returns the code of a value, or undefined when no row has it. */
  findCode(value: Value): number | undefined {
    if (!this.#sorted.length) return this.#addedCodes.get(value)
    const { code } = this.locate(value)
    return this.#valueOf(code) === value && code <= this.#sorted.length ? code : this.#addedCodes.get(value)
  }

  /** Returns the value of a row. */
  valueAt = (row: number): Value | null => this.#valueOf(this.codes[row]!) ?? null

  #valueOf(code: number): Value | undefined {
    if (code === NO_VALUE) return
    const { length } = this.#sorted
    return code <= length ? this.#sorted.at(code - 1) : this.#added[code - length - 1]
  }

  locate(value: Value): ValuePlace {
    let [from, to] = [0, this.#sorted.length]
    while (from < to) {
      const middle = (from + to) >>> 1
      if (compareValues(this.#sorted.at(middle)!, value) >= 0) to = middle
      else from = middle + 1
    }
    return { value, code: from + 1 }
  }

  /** Compares a value by its code with one that was located. No value is less than any value. */
  compareToPlace(code: number, { value, code: place }: ValuePlace): number {
    if (code === NO_VALUE) return -1
    if (code > this.#sorted.length) return compareValues(this.#valueOf(code)!, value)
    if (code !== place) return code < place ? -1 : 1
    return compareValues(this.#valueOf(code)!, value)
  }

  /** Compares the values of two codes. No value is less than any value. */
  compareCodes(one: number, other: number): number {
    const { length } = this.#sorted
    if (one === other || (one <= length && other <= length)) return one - other
    if (!one || !other) return one ? 1 : -1
    return compareValues(this.#valueOf(one)!, this.#valueOf(other)!)
  }

  /** Tells whether so many values are not sorted that comparing them takes long. */
  get isUnsorted() {
    return this.#added.length > Math.max(MIN_UNSORTED, this.#sorted.length / 8)
  }

  /** Sorts the values that were added, and yields after every few ms. Codes change in its last step. */
  *sort(): Generator<void, void> {
    const { length } = this.#sorted
    const count = this.#added.length
    const values = [...this.#added]
    for (let at = 0; at < length; at++) {
      values.push(this.#sorted.at(at)!)
      if (at % VALUES_PER_STEP === VALUES_PER_STEP - 1) yield
    }
    yield
    const sorted = yield* sortValues(values)
    const newCodes = new Uint32Array(length + count + 1)
    for (let at = 0, old = 0; at < sorted.length; at++) {
      const value = sorted[at]!
      const isOld = old < length && this.#sorted.at(old) === value
      newCodes[isOld ? ++old : this.#addedCodes.get(value)!] = at + 1
      if (at % VALUES_PER_STEP === VALUES_PER_STEP - 1) yield
    }
    const packed = packValues(sorted)
    yield
    const shift = sorted.length - length - count
    const later = this.#added.slice(count)
    const { codes } = this
    for (let row = 0; row < codes.length; row++) {
      const code = codes[row]!
      codes[row] = code < newCodes.length ? newCodes[code]! : code + shift
    }
    this.#sorted = packed
    this.#added = later
    this.#addedCodes = new Map(later.map((value, at) => [value, sorted.length + at + 1]))
  }

  /** Returns the rows, which are given in order of time, by value; rows of the same value stay in order of time. */
  sortRows(rowsByTime: Uint32Array): Uint32Array<ArrayBuffer> {
    const sorted = new Uint32Array(rowsByTime.length)
    const ends = new Uint32Array(this.#sorted.length + this.#added.length + 1)
    for (const row of rowsByTime) ends[this.codes[row]!]!++
    let end = 0
    if (!this.#added.length) for (let code = 0; code < ends.length; code++) end = ends[code] = end + ends[code]!
    else for (const code of this.#codesInOrder()) end = ends[code] = end + ends[code]!
    for (let at = rowsByTime.length - 1; at >= 0; at--) {
      const row = rowsByTime[at]!
      sorted[--ends[this.codes[row]!]!] = row
    }
    return sorted
  }

  *#codesInOrder() {
    const { length } = this.#sorted
    const later = this.#added
      .map((_, at) => length + at + 1)
      .sort((one, other) => compareValues(this.#valueOf(one)!, this.#valueOf(other)!))
    let next = 0
    yield NO_VALUE
    for (let code = 1; code <= length; code++) {
      while (next < later.length && this.compareCodes(later[next]!, code) < 0) yield later[next++]!
      yield code
    }
    yield* later.slice(next)
  }
}
