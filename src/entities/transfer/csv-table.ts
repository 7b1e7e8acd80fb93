import type { CellNotation } from '../../blueprints/fields/cell-notation'
import type { Model } from '../../blueprints/model'
import type { Caller } from '../../blueprints/permissions'
import { badRequest, Problem } from '../../core/problem'
import type { Doc } from '../store/doc'
import { parseCells, SEPARATORS, type Separator } from './csv'
import { type CsvColumn, isHeaderRow, parseColumns, toDocument } from './csv-columns'
import { CsvDialect, type CsvOptions, describeSeparator } from './csv-dialect'
import type { Line } from './line-reader'
import { RowPlan, type RowTexts } from './row-plan'

/** Reads the rows of a CSV file, whose first row names its columns. */
export class CsvTable {
  readonly dialect: CsvDialect
  #columns?: CsvColumn[]
  /** The columns without a name. */
  #unnamed: number[] = []
  /** The paths into objects that columns fill. */
  parts: string[][] | undefined
  /** How rows become entities, for the latest model; it is undefined where cells alone do not say so. */
  #plan: { model: Model; rows: RowPlan | undefined } | undefined
  #rows = 0
  #firstNumber?: string

  constructor(
    private model: Model,
    private actor: Caller | undefined,
    private notation: CellNotation,
    options: CsvOptions,
  ) {
    this.dialect = new CsvDialect(options, (cells) => isHeaderRow(model, actor, cells))
  }

  /** Whether rows can be read: it has a header, whose columns are known. */
  get isReadable() {
    return !!this.#columns
  }

  /** What the columns fill; those without a name are left out. */
  get columns() {
    return this.#columns?.map(({ name }) => name).filter(Boolean)
  }

  /**
   * Returns a row; undefined for the header, and for a row of empty cells. `model` is the current one.
   * @throws 400 for a row that cannot be read, or for a file when it is not readable then
   */
  readRow(line: Line, model: Model): TableRow | undefined {
    const separator = this.dialect.separator!
    const { text } = line
    const plan = this.#columns && this.#planOf(model, this.#columns)
    const texts = plan?.toTexts(line)
    if (this.#columns && plan && texts) {
      this.#rows++
      for (const n of this.#unnamed) this.#assertRunningNumber(plan.readCell(line, n), n)
      return new TableRow(this.#columns, text, separator, texts)
    }
    const cells = parseCells(text, separator) ?? throwMalformedLine('Check its quotes.')
    if (!this.#columns) {
      this.#columns = parseColumns(this.model, this.actor, cells, this.notation)
      this.#unnamed = this.#columns.flatMap(({ name }, n) => (name ? [] : [n]))
      const parts = this.#columns.flatMap(({ path }) => (path ? [path] : []))
      if (parts.length) this.parts = parts
      return
    }
    if (isBlank(cells, text)) return
    this.#rows++
    if (cells.length !== this.#columns.length) this.#assertLength(cells, text)
    for (const n of this.#unnamed) this.#assertRunningNumber(cells[n] ?? '', n)
    return new TableRow(this.#columns, text, separator, undefined)
  }

  #planOf(model: Model, columns: CsvColumn[]): RowPlan | undefined {
    if (this.#plan?.model !== model) {
      const rows = RowPlan.create(model, this.actor, columns, this.dialect.separator!)
      this.#plan = { model, rows }
    }
    return this.#plan.rows
  }

  /** Further cells may be there if they are empty. @throws 400 */
  #assertLength(cells: string[], text: string) {
    const count = this.#columns!.length
    if (cells.length > count && cells.slice(count).every((cell) => !cell.trim())) return
    const other = SEPARATORS.find((one) => one !== this.dialect.separator && parseCells(text, one)?.length === count)
    const hint =
      other && count > 1
        ? ` Its cells are separated by ${describeSeparator(other)}, those of the header by ${describeSeparator(this.dialect.separator!)}.`
        : ''
    throwMalformedLine(`It has ${cells.length} cells, but the header has ${count} columns.${hint}`)
  }

  /**
   * Some programs begin each row with its number (0 or 1 for the first), in a column without a name. It is left out;
   * other values have to have a name. @throws 400 for the file when its first row has another value, else for the row
   */
  #assertRunningNumber(cell: string, n: number) {
    if (!cell) return
    if (this.#rows === 1 && n === 0 && (cell === '0' || cell === '1')) this.#firstNumber = cell
    if (n === 0 && this.#firstNumber && cell === String(Number(this.#firstNumber) + this.#rows - 1)) return
    const message = `Column ${n + 1} has values, but the header has no name for it. Name it, or leave it out.`
    if (this.#rows === 1) this.#columns = undefined
    badRequest({ path: `/columns/${n}`, message })
  }
}

/** A row of a table. Its properties are read when something asks for them. */
export class TableRow {
  constructor(
    private columns: CsvColumn[],
    private text: string,
    private separator: Separator,
    /** The texts of a new entity, where they follow from the cells alone. */
    readonly texts: RowTexts | undefined,
  ) {}

  /** Returns the properties. @throws 400 for a cell that is no value of its column */
  readProperties = (): Doc => toDocument(this.columns, parseCells(this.text, this.separator)!)
}

const isBlank = (cells: string[], text: string) =>
  cells.every((cell) => cell === '') || (!text.includes('"') && cells.every((cell) => cell.trim() === ''))

/** @throws 400 MALFORMED_LINE */
export const throwMalformedLine = (message: string): never => {
  throw new Problem(400, 'MALFORMED_LINE', `This line cannot be read. ${message}`)
}
