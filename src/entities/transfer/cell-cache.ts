import type { TextBytes } from './text-bytes'

const MAX_ENTRIES = 1 << 15
const SLOT_MASK = 2 * MAX_ENTRIES - 1
const MAX_BYTES = 1 << 21
const MAX_CELL_BYTES = 64
const INTEGERS_PER_ENTRY = 4

/** The parts that a cell adds to the texts of its entity. */
export type ValueTexts = { property: string; storedKey: string }

/** Caches the parts of entity texts by the bytes of their cells. Parts are copied as bytes, without a string for each cell. */
export class CellCache {
  /** The numbers of entries by the hashes of their cells; 0 is none. */
  #slots = new Int32Array(SLOT_MASK + 1)
  /** Per entry: the offset of its bytes, its column and the length of its cell, and the lengths of its two texts. */
  #entries = new Int32Array(INTEGERS_PER_ENTRY * (MAX_ENTRIES + 1))
  #bytes = Buffer.allocUnsafe(MAX_BYTES)
  #count = 0
  #size = 0
  #isFull = false
  /** The slot in which the search for a cell ended. */
  #freeSlot = 0
  #hits: Int32Array
  #misses: Int32Array
  #isSkipped: boolean[]

  constructor(columns: number) {
    this.#hits = new Int32Array(columns)
    this.#misses = new Int32Array(columns)
    this.#isSkipped = new Array(columns).fill(false)
  }

  /** Returns the entry of a cell, or 0. */
  find(line: Uint8Array, from: number, to: number, column: number): number {
    const length = to - from
    if (length > MAX_CELL_BYTES || this.#isSkipped[column]) return 0
    const signature = (column << 8) | length
    const [slots, entries, bytes] = [this.#slots, this.#entries, this.#bytes]
    let hash = signature
    for (let at = from; at < to; at++) hash = Math.imul(hash ^ line[at]!, 0x01000193)
    hash ^= hash >>> 15
    for (let slot = hash & SLOT_MASK; ; slot = (slot + 1) & SLOT_MASK) {
      const entry = slots[slot]!
      if (entry === 0) {
        this.#freeSlot = slot
        return 0
      }
      const place = INTEGERS_PER_ENTRY * entry
      if (entries[place + 1] !== signature) continue
      const start = entries[place]!
      let at = 0
      while (at < length && bytes[start + at] === line[from + at]) at++
      if (at < length) continue
      this.#hits[column]!++
      return entry
    }
  }

  /** Adds the cell of the last `find`. Returns its entry, or 0 when it is not cached. */
  add(line: Uint8Array, from: number, to: number, column: number, { property, storedKey }: ValueTexts): number {
    const length = to - from
    if (length > MAX_CELL_BYTES || this.#isSkipped[column]) return 0
    this.#misses[column]!++
    const most = length + 3 * (property.length + storedKey.length)
    this.#isFull ||= this.#count === MAX_ENTRIES || this.#size + most > MAX_BYTES
    if (this.#isFull) return 0
    const entry = ++this.#count
    this.#slots[this.#freeSlot] = entry
    const place = INTEGERS_PER_ENTRY * entry
    this.#entries[place] = this.#size
    this.#entries[place + 1] = (column << 8) | length
    this.#bytes.set(line.subarray(from, to), this.#size)
    const written = this.#bytes.write(property, this.#size + length)
    this.#entries[place + 2] = written
    this.#entries[place + 3] = this.#bytes.write(storedKey, this.#size + length + written)
    this.#size += length + written + this.#entries[place + 3]!
    return entry
  }

  /** Appends the property of an entry to a text. */
  copyProperty(entry: number, target: TextBytes) {
    const place = INTEGERS_PER_ENTRY * entry
    const start = this.#entries[place]! + (this.#entries[place + 1]! & 0xff)
    target.copy(this.#bytes, start, this.#entries[place + 2]!)
  }

  /** Appends the index key of an entry to a text. */
  copyStoredKey(entry: number, target: TextBytes) {
    const place = INTEGERS_PER_ENTRY * entry
    const length = this.#entries[place + 3]!
    if (length === 0) return
    const start = this.#entries[place]! + (this.#entries[place + 1]! & 0xff) + this.#entries[place + 2]!
    target.copy(this.#bytes, start, length)
  }

  /** Clears a full cache, between two rows. Columns with mostly distinct cells are no longer cached. */
  clearIfFull() {
    if (!this.#isFull) return
    this.#isFull = false
    for (let column = 0; column < this.#hits.length; column++)
      if (this.#hits[column]! < this.#misses[column]!) this.#isSkipped[column] = true
    this.#hits.fill(0)
    this.#misses.fill(0)
    this.#slots.fill(0)
    this.#count = 0
    this.#size = 0
  }
}
