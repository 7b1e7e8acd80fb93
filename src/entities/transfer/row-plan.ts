import { type Model, type ModelField, pendingModelOf } from '../../blueprints/model'
import { type Caller, mayWriteField, rowScopeOf } from '../../blueprints/permissions'
import { isStorable } from '../../core/body'
import { fieldLabel, isSingleValued } from '../store/index-keys'
import { toStoredKeyJson } from '../store/stored-keys'
import { OWNER_KEYS } from '../write/document'
import type { EntityTexts } from '../write/insert'
import { CellCache, type ValueTexts } from './cell-cache'
import { unescapeFormula } from './csv'
import type { CsvColumn } from './csv-columns'
import type { Line } from './line-reader'
import { TextBytes } from './text-bytes'

/** The texts of a new entity whose row alone decides what is stored. */
export type RowTexts = EntityTexts & { identifier: string }

/** A field that a new entity may get a value of. */
type PlannedField = { isRequired: boolean; default?: ValueTexts }

/** A column whose cells are values of a field: how they are read, and the number of the field in the plan. */
type PlannedColumn = { field: ModelField; index: number; read: CsvColumn['read']; toTexts(value: unknown): ValueTexts }

const QUOTE = 34

/**
 * Builds the texts of new entities from the cells of a table. A cell is read, validated and written as JSON once for all rows
 * that repeat it.
 */
export class RowPlan {
  #cache: CellCache
  #properties = new TextBytes()
  #storedKeys = new TextBytes()
  /** The cache entry of each field's cell; `#texts` has the texts of uncached cells. */
  #entries: Int32Array
  #texts: (ValueTexts | undefined)[]
  /** Where the cells of the row begin and end. */
  #starts: Int32Array
  #ends: Int32Array

  private constructor(
    readonly model: Model,
    private columns: (PlannedColumn | undefined)[],
    /** In the order of the blueprint. */
    private fields: PlannedField[],
    private identifierColumn: number,
    private separator: number,
  ) {
    this.#cache = new CellCache(columns.length)
    this.#entries = new Int32Array(fields.length)
    this.#texts = fields.map(() => undefined)
    this.#starts = new Int32Array(columns.length)
    this.#ends = new Int32Array(columns.length)
  }

  /** Returns the plan of a table, or undefined when the stored entity depends on more than its cells. */
  static create(model: Model, actor: Caller | undefined, columns: CsvColumn[], separator: string): RowPlan | undefined {
    if (model.formulas.length || model.fileFields.length || pendingModelOf(model)) return
    if (!rowScopeOf(model, 'create', actor)) return
    const columnsByKey = new Map<string, number>()
    for (const [at, { name, path, isSystem }] of columns.entries()) {
      if (path || (isSystem && actor?.privileged && OWNER_KEYS.has(name))) return
      if (!name || isSystem) continue
      const field = model.field.get(name)
      if (!field || !isSingleValued(field) || !mayWriteField(field, actor)) return
      columnsByKey.set(name, at)
    }
    const planned: (PlannedColumn | undefined)[] = columns.map(() => undefined)
    const fields: PlannedField[] = []
    for (const field of model.fields) {
      const at = columnsByKey.get(field.key)
      const value = field.default ?? undefined
      if (value !== undefined && !isSingleValued(field)) return
      if (at === undefined && value === undefined) {
        if (field.required) return
        continue
      }
      const toTexts = createTextWriter(field)
      if (at !== undefined) planned[at] = { field, index: fields.length, read: columns[at]!.read, toTexts }
      fields.push({ isRequired: !!field.required, default: value === undefined ? undefined : toTexts(value) })
    }
    const identifierColumn = columns.findIndex(({ name, isSystem }) => isSystem && name === 'identifier')
    return new RowPlan(model, planned, fields, identifierColumn, separator.charCodeAt(0))
  }

  /** Returns the texts of a row's entity; undefined for a row that is invalid or that the plan cannot read. */
  toTexts({ text, bytes }: Line): RowTexts | undefined {
    if (!this.#findCells(bytes)) return
    this.#cache.clearIfFull()
    this.#entries.fill(0)
    const [properties, storedKeys] = [this.#properties.clear(), this.#storedKeys.clear()]
    for (let n = 0; n < this.columns.length; n++) {
      const column = this.columns[n]
      const [from, to] = [this.#starts[n]!, this.#ends[n]!]
      if (!column || from === to) continue
      let entry = this.#cache.find(bytes, from, to, n)
      if (entry === 0) {
        const texts = this.#readValue(column, this.#readCell(text, bytes, n))
        if (!texts) return
        entry = this.#cache.add(bytes, from, to, n, texts)
        if (entry === 0) {
          this.#texts[column.index] = texts
          properties.write(texts.property)
        }
      }
      this.#entries[column.index] = entry || UNCACHED
      if (entry !== 0) this.#cache.copyProperty(entry, properties)
    }
    for (let n = 0; n < this.fields.length; n++) {
      const entry = this.#entries[n]!
      if (entry > 0) this.#cache.copyStoredKey(entry, storedKeys)
      else if (entry === UNCACHED) storedKeys.write(this.#texts[n]!.storedKey)
      else {
        const { isRequired, default: absent } = this.fields[n]!
        if (absent) {
          properties.write(absent.property)
          storedKeys.write(absent.storedKey)
        } else if (isRequired) return
      }
    }
    const identifier = this.identifierColumn < 0 ? '' : this.#readCell(text, bytes, this.identifierColumn)
    return {
      model: this.model,
      identifier: unescapeFormula(identifier),
      text: properties.toJson(),
      storedKeys: storedKeys.toJson(),
    }
  }

  /** Returns a cell of the last row. */
  readCell = (line: Line, column: number) => this.#readCell(line.text, line.bytes, column)

  /** Finds the cells of a row. Returns false for a malformed or blank row, and for escaped quotes. */
  #findCells(bytes: Uint8Array): boolean {
    const { separator } = this
    const count = this.columns.length
    const size = bytes.length
    let isBlank = true
    let at = 0
    for (let n = 0; n < count; n++) {
      const isQuoted = bytes[at] === QUOTE
      if (isQuoted) at++
      const end = isQuoted ? QUOTE : separator
      this.#starts[n] = at
      for (; at < size; at++) {
        const byte = bytes[at]!
        if (byte === end) break
        if (byte === QUOTE || byte === 0) return false
        if (byte > 32 && byte < 128) isBlank = false
      }
      this.#ends[n] = at
      if (isQuoted && bytes[at++] !== QUOTE) return false
      if (n === count - 1 ? at !== size : bytes[at++] !== separator) return false
    }
    return !isBlank
  }

  /** Byte offsets equal text offsets if all characters are one byte long. */
  #readCell(text: string, bytes: Uint8Array, column: number): string {
    const [from, to] = [this.#starts[column]!, this.#ends[column]!]
    return text.length === bytes.length ? text.slice(from, to) : Buffer.from(bytes.subarray(from, to)).toString()
  }

  #readValue({ field, read, toTexts }: PlannedColumn, cell: string): ValueTexts | undefined {
    let value: unknown
    try {
      value = read(cell)
    } catch {
      return // the usual reader throws the same error
    }
    return isStorable(value) && !field.validate(value).length ? toTexts(value) : undefined
  }
}

const UNCACHED = -1

function createTextWriter(field: ModelField) {
  const prefix = `,${JSON.stringify(field.key)}:`
  const label = fieldLabel(field)
  return (value: unknown): ValueTexts => {
    const json = toStoredKeyJson(field, value)
    return { property: prefix + JSON.stringify(value), storedKey: json === undefined ? '' : `,"${label}":${json}` }
  }
}
