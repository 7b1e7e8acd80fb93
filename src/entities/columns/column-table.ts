import type { ChangePosition } from '../changes/tracked-changes'
import { Column } from './column'
import { OrderedRows } from './ordered-rows'
import type { Value } from './sorted-values'

/** The number of an entity, when it was created, and its values of some columns. */
export type EntityValues = [seq: number, created: number, ...values: (Value | null)[]]

/** What is told which rows lose their values, and which have new ones. */
export interface TableFollower {
  readonly bytes: number
  leave(rows: number[]): void
  enter(rows: number[]): void
}

const MIN_ROWS = 1_024
const OTHER_BYTES = 48 // of a row that is found by a map
const MAX_DEAD_SHARE = 1 / 4 // of the rows
const MIN_DEAD = 5_000
const MAX_VALUES_PER_ROW = 2

/**
 * Values of all entities of a blueprint in memory, by column, as they were at a position of the blueprint's changes. A row
 * keeps its number as long as the table exists.
 */
export class ColumnTable {
  position: ChangePosition
  seqs = new Float64Array(MIN_ROWS)
  created = new Float64Array(MIN_ROWS)
  columns = new Map<string, Column>()
  /** The rows by time, once all entities have been read. */
  rows: OrderedRows | undefined
  followers: ReadonlyMap<string, TableFollower> = new Map()
  #isAlive = new Uint8Array(MIN_ROWS)
  /** The number of entities. */
  length = 0
  #rowCount = 0
  /** So many rows from the first are in order of their numbers. */
  #ascending = 0
  #others = new Map<number, number>()
  #sorting: Generator<void, void> | undefined

  constructor(position: ChangePosition) {
    this.position = position
  }

  /** Estimated from what its arrays and texts take. */
  get bytes() {
    let bytes = (8 + 8 + 1 + 4) * this.seqs.length + OTHER_BYTES * this.#others.size
    for (const column of this.columns.values()) bytes += column.bytes
    for (const follower of this.followers.values()) bytes += follower.bytes
    return bytes
  }

  /** Tells whether so many entities or values were removed that the table should be read again. */
  get isSparse() {
    const isFull = ({ valueCount }: Column) => valueCount > MIN_DEAD + MAX_VALUES_PER_ROW * this.length
    return (
      this.#rowCount - this.length > Math.max(MIN_DEAD, this.#rowCount * MAX_DEAD_SHARE) ||
      this.columns.values().some(isFull)
    )
  }

  addColumn(key: string): Column {
    const column = new Column()
    column.grow(this.seqs.length)
    this.columns.set(key, column)
    return column
  }

  /** Compares rows by time. */
  compareTime = (one: number, other: number) =>
    this.created[one]! - this.created[other]! || this.seqs[one]! - this.seqs[other]!

  /** Sets the values of entities in some columns that are being read. Later values come from `change` alone. */
  fill(columns: Column[], entities: EntityValues[]) {
    const isFirst = !this.rows
    const found = entities.map(([seq]) => this.#findRow(seq) ?? (isFirst ? this.#addRow(seq) : undefined))
    if (isFirst)
      for (const [at, row] of found.entries()) {
        if (!this.#isAlive[row!]) this.length++
        this.created[row!] = entities[at]![1]
        this.#isAlive[row!] = 1
      }
    for (const [place, column] of columns.entries())
      for (let at = 0; at < entities.length; at++) {
        const row = found[at]
        if (row !== undefined) column.codes[row] = column.encode(entities[at]![place + 2] as Value | null)
      }
  }

  /** Sorts the rows by time, once all entities have been read. */
  sortByTime() {
    this.rows ??= new OrderedRows(this.#sortByTime(), this.compareTime)
  }

  /** Sorts the rows by a column whose values have all been read. */
  sortBy(column: Column) {
    column.rows = new OrderedRows(
      column.sortRows(this.rows!.toArray()),
      (one, other) => column.compareCodes(column.codes[one]!, column.codes[other]!) || this.compareTime(one, other),
    )
  }

  /** Takes a step of a few ms towards sorting the values that were added, if they are many. */
  sortFurther() {
    this.#sorting ??= this.columns
      .values()
      .find((column) => column.rows && column.isUnsorted)
      ?.sort()
    if (this.#sorting?.next().done) this.#sorting = undefined
  }

  #sortByTime() {
    const rows = new Uint32Array(this.length)
    let [count, isSorted] = [0, true]
    for (let row = 0; row < this.#rowCount; row++) {
      if (!this.#isAlive[row]) continue
      if (count && this.compareTime(rows[count - 1]!, row) > 0) isSorted = false
      rows[count++] = row
    }
    return isSorted ? rows : rows.sort(this.compareTime)
  }

  /** Takes over the values of entities that changed, in the order of all columns; those without values were removed. */
  change(changed: number[], entities: EntityValues[]) {
    const gone = this.#findGone(changed, entities)
    const rows = entities.map(([seq]) => this.#findRow(seq) ?? this.#addRow(seq))
    const added = rows.filter((row) => !this.#isAlive[row])
    // One that was removed and created again has another time.
    const isMoved = (row: number, at: number) => !!this.#isAlive[row] && this.created[row] !== entities[at]![1]
    const moved = rows.filter(isMoved)
    const left = [...gone, ...rows.filter((row) => this.#isAlive[row])]
    for (const follower of this.followers.values()) follower.leave(left)
    this.rows?.remove([...gone, ...moved])
    // Rows leave their places by their old values, and get new ones by the new values.
    const changes = [...this.columns.values()].map((column, place) => {
      const codes = entities.map((entity) => column.encode(entity[place + 2] as Value | null))
      const placed = rows.filter(
        (row, at) => this.#isAlive[row] && (column.codes[row] !== codes[at] || isMoved(row, at)),
      )
      column.rows?.remove([...gone, ...placed])
      return { column, codes, placed }
    })
    for (const row of gone) this.#isAlive[row] = 0
    for (const [at, row] of rows.entries()) {
      this.#isAlive[row] = 1
      this.created[row] = entities[at]![1]
    }
    this.length += added.length - gone.length
    for (const { column, codes, placed } of changes) {
      for (const [at, row] of rows.entries()) column.codes[row] = codes[at]!
      column.rows?.add([...added, ...placed])
    }
    this.rows?.add([...added, ...moved])
    for (const follower of this.followers.values()) follower.enter(rows)
  }

  #findGone(changed: number[], entities: EntityValues[]): number[] {
    const left = new Set(changed)
    for (const [seq] of entities) left.delete(seq)
    return [...left].flatMap((seq) => {
      const row = this.#findRow(seq)
      return row !== undefined && this.#isAlive[row] ? [row] : []
    })
  }

  #findRow(seq: number): number | undefined {
    // Most entities that are read or created have the greatest number so far.
    if (this.#ascending && seq > this.seqs[this.#ascending - 1]!) return this.#others.get(seq)
    let [from, to] = [0, this.#ascending]
    while (from < to) {
      const middle = (from + to) >>> 1
      if (this.seqs[middle]! >= seq) to = middle
      else from = middle + 1
    }
    return this.seqs[from] === seq && from < this.#ascending ? from : this.#others.get(seq)
  }

  #addRow(seq: number): number {
    const row = this.#rowCount++
    if (row === this.seqs.length) this.#grow()
    this.seqs[row] = seq
    if (this.#ascending === row && (row === 0 || this.seqs[row - 1]! < seq)) this.#ascending++
    else this.#others.set(seq, row)
    return row
  }

  #grow() {
    const size = Math.ceil(this.seqs.length * 1.5)
    const grow = (old: Float64Array) => {
      const grown = new Float64Array(size)
      grown.set(old)
      return grown
    }
    this.seqs = grow(this.seqs)
    this.created = grow(this.created)
    const alive = new Uint8Array(size)
    alive.set(this.#isAlive)
    this.#isAlive = alive
    for (const column of this.columns.values()) column.grow(size)
  }
}
