import type { Model, ModelField } from '../../blueprints/model'
import { type Caller, mayReadField, mayWriteField } from '../../blueprints/permissions'
import { badRequest } from '../../core/problem'
import type { Doc } from '../store/doc'
import { unknownPropertyMessage } from '../write/document'

/**
 * A spreadsheet reads a text that begins like this as a formula (OWASP, "CSV injection"); an apostrophe before it makes
 * it text. Reading removes one apostrophe, so that every text survives a round trip.
 */
const FORMULA_PATTERN = /^'*[=+\-@\t\r\n＝＋－＠]/

/** Returns a text for a cell, with an apostrophe if a spreadsheet would read it as a formula. */
export const escapeFormula = (text: string) => (FORMULA_PATTERN.test(text) ? `'${text}` : text)
const unescapeFormula = (cell: string) => (cell.startsWith("'") && FORMULA_PATTERN.test(cell) ? cell.slice(1) : cell)

/** Returns a row of RFC 4180 with its line break. */
export const toCsvRow = (cells: string[]) => `${cells.map(quoteCell).join(',')}\r\n`

const quoteCell = (cell: string) => (/[",\r\n]|^\s|\s$/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell)

/** Returns a property as a cell: lists and objects as JSON, a missing value as an empty text. */
export function toCell({ kind, multi }: ModelField, value: unknown): string {
  if (value === undefined || value === null) return ''
  if (multi || kind.jsonSchema.type === 'object') return JSON.stringify(value)
  return kind.isPlainInCsv ? String(value) : escapeFormula(value as string)
}

/** Returns the properties of a row by the names of its columns; an empty cell means no value. */
export function toDocument(model: Model, columns: string[], cells: string[]): Doc {
  const doc: Doc = {}
  for (const [n, column] of columns.entries()) {
    const cell = cells[n]
    if (!cell) continue
    const field = model.field.get(column)
    doc[column] = field ? parseCell(field, cell) : unescapeFormula(cell)
  }
  return doc
}

/** Returns the value of a cell. Text that is no value of the field is kept as it is, so that validation rejects it. */
function parseCell({ kind, multi }: ModelField, cell: string): unknown {
  const { type } = kind.jsonSchema
  if (multi || type === 'object') return parseJsonCell(cell)
  if (type === 'boolean') return cell === 'true' ? true : cell === 'false' ? false : cell
  if (type === 'number' || type === 'integer') return /^-?(\d+|\d*\.\d+)(e[+-]?\d+)?$/i.test(cell) ? Number(cell) : cell
  return kind.isPlainInCsv ? cell : unescapeFormula(cell)
}

function parseJsonCell(cell: string): unknown {
  try {
    return JSON.parse(cell)
  } catch {
    return cell
  }
}

/** Returns the cells of a row without its line break, or undefined when its quotes are malformed. */
export function parseCells(row: string): string[] | undefined {
  const cells: string[] = []
  for (let at = 0; ; ) {
    if (row[at] !== '"') {
      const end = row.indexOf(',', at)
      const cell = end < 0 ? row.slice(at) : row.slice(at, end)
      if (cell.includes('"')) return
      cells.push(cell)
      if (end < 0) return cells
      at = end + 1
      continue
    }
    let close = at + 1
    for (;;) {
      close = row.indexOf('"', close)
      if (close < 0) return
      if (row[close + 1] !== '"') break
      close += 2
    }
    cells.push(row.slice(at + 1, close).replaceAll('""', '"'))
    if (close + 1 === row.length) return cells
    if (row[close + 1] !== ',') return
    at = close + 2
  }
}

/** The columns of an export that precede those of the fields. */
export const HEADER_COLUMNS = ['_id', 'identifier', 'created', 'updated', 'user', 'workspace']
/** Further columns that an import accepts and ignores. */
const IGNORED_COLUMNS = ['blueprint', 'tenant', 'id']

/** Returns the columns that the header row of a CSV names. @throws 400 for unknown or repeated columns */
export function parseColumns(model: Model, actor: Caller | undefined, cells: string[]): string[] {
  const columns = cells.map((cell) => cell.trim())
  const isKnownColumn = (name: string) => {
    const field = model.field.get(name)
    if (field) return mayReadField(field, actor) || mayWriteField(field, actor)
    return HEADER_COLUMNS.includes(name) || IGNORED_COLUMNS.includes(name)
  }
  const flaws = columns.flatMap((name, n) => {
    const path = `/columns/${n}`
    if (!isKnownColumn(name)) return [{ path, message: unknownPropertyMessage(model, actor, name) }]
    return columns.indexOf(name) < n ? [{ path, message: `The column "${name}" appears twice.` }] : []
  })
  if (flaws.length) badRequest(...flaws.slice(0, 100))
  return columns
}
