import { fieldTypes } from '../../blueprints/fields'
import type { CellNotation } from '../../blueprints/fields/cell-notation'
import type { Model, ModelField } from '../../blueprints/model'
import { type Caller, mayReadField, mayWriteField } from '../../blueprints/permissions'
import { InexactNumber, parseExactJson, toInexactNumberError } from '../../core/exact-numbers'
import { badRequest, type FieldError } from '../../core/problem'
import { getOwn } from '../query/object-paths'
import type { Doc } from '../store/doc'
import { unknownPropertyMessage } from '../write/document'
import { unescapeFormula } from './csv'
import { setPart } from './operation'

/** The columns of an export that precede those of the fields. */
export const HEADER_COLUMNS = ['_id', 'identifier', 'created', 'updated', 'user', 'workspace']
/** Further columns that an import accepts and ignores. */
const IGNORED_COLUMNS = ['blueprint', 'tenant', 'id']

/** A column of a table: what it fills, and how its cells are read. */
export type CsvColumn = {
  /** The key of a field, a path into an object, or a system property. It is empty for a column without a name. */
  name: string
  /** The path into an object, of which the column is one part. */
  path?: string[]
  /** Whether it is a system property. */
  isSystem?: boolean
  read(cell: string): unknown
}

type NamedField = { field: ModelField; path?: string[] }

/** Returns what the header row of a CSV names, or undefined where it is neither a field nor a system property. */
function findColumn(model: Model, actor: Caller | undefined, name: string): NamedField | 'system' | undefined {
  const isVisible = (field: ModelField) => mayReadField(field, actor) || mayWriteField(field, actor)
  const own = model.field.get(name)
  if (own) return isVisible(own) ? { field: own } : undefined
  if (HEADER_COLUMNS.includes(name) || IGNORED_COLUMNS.includes(name)) return 'system'
  const titled = model.fields.filter((field) => field.title === name && isVisible(field))
  if (titled.length === 1) return { field: titled[0]! }
  const [key = '', ...path] = name.split('.')
  const object = model.field.get(key)
  const isPart = object && isObject(object) && !object.multi && isVisible(object)
  return isPart && path.length && path.every((step) => step && step !== '__proto__')
    ? { field: object, path }
    : undefined
}

const isObject = ({ kind }: ModelField) => kind.jsonSchema.type === 'object'

/** Tells whether all cells of a row name columns that an import knows. */
export const isHeaderRow = (model: Model, actor: Caller | undefined, cells: string[]) =>
  cells.every((cell) => findColumn(model, actor, cell.trim()))

/** Returns the columns that the header row of a CSV names. @throws 400 for unknown or repeated columns */
export function parseColumns(
  model: Model,
  actor: Caller | undefined,
  cells: string[],
  notation: CellNotation,
): CsvColumn[] {
  const names = cells.map((cell) => cell.trim())
  const flaws: FieldError[] = []
  const columns = names.map((written, n): CsvColumn => {
    if (!written) return { name: '', read: (cell) => cell }
    const found = findColumn(model, actor, written)
    if (!found) flaws.push({ path: `/columns/${n}`, message: unknownPropertyMessage(model, actor, written) })
    if (!found || found === 'system') return { name: written, isSystem: true, read: unescapeFormula }
    const { field, path } = found
    const name = [field.key, ...(path ?? [])].join('.')
    const read = path ? partReader(field, path, notation) : (cell: string) => readCell(field, cell, notation)
    return { name, path: path && [field.key, ...path], read }
  })
  for (const [n, { name }] of columns.entries()) {
    const clash = columns.slice(0, n).find((other) => name && isSameOrPart(name, other.name))
    if (!clash) continue
    const message =
      clash.name === name
        ? `The column "${name}" appears twice.`
        : `The columns "${clash.name}" and "${name}" fill the same part. Leave one of them out.`
    flaws.push({ path: `/columns/${n}`, message })
  }
  if (flaws.length) badRequest(...flaws.slice(0, 100))
  return columns
}

const isSameOrPart = (one: string, other: string) =>
  one === other || one.startsWith(`${other}.`) || other.startsWith(`${one}.`)

/** Returns the properties of a row by the columns of its cells; an empty cell means no value. */
export function toDocument(columns: CsvColumn[], cells: string[]): Doc {
  const doc: Doc = {}
  for (let n = 0; n < columns.length; n++) {
    const cell = cells[n]
    const { name, path, read } = columns[n]!
    if (!cell || !name) continue
    if (path) setPart(doc, path, read(cell))
    else doc[name] = read(cell)
  }
  return doc
}

/** Returns the value of a cell. Text that is no value of the field is kept as it is, so that validation rejects it. */
function readCell(
  { key, kind, multi }: Pick<ModelField, 'key' | 'kind' | 'multi'>,
  cell: string,
  notation: CellNotation,
): unknown {
  if (multi || kind.jsonSchema.type === 'object') return parseJsonCell(cell)
  if (!kind.fromCell) return unescapeFormula(cell)
  const value = kind.fromCell(cell, notation)
  if (value === undefined && kind.hasDecimalPoint) assertNotation(key, cell, notation)
  return value ?? cell
}

/** @throws 400 for a number that is written in the other of the two notations */
function assertNotation(key: string, cell: string, { decimal }: CellNotation) {
  if (decimal === 'point' && /^\s*[+-]?\d*,\d+\s*$/.test(cell))
    badRequest({
      path: `/${key}`,
      message: `${key} is "${cell}". If this is a decimal comma, import with decimal=comma.`,
    })
  if (decimal === 'comma' && cell.includes('.'))
    badRequest({ path: `/${key}`, message: `${key} is "${cell}", but this import has decimal commas (decimal=comma).` })
}

/** Returns how cells of a part of an object are read: by the type that its schema declares, else as texts. */
function partReader({ key, schema }: ModelField, path: string[], notation: CellNotation): CsvColumn['read'] {
  const declared = path.reduce<unknown>((here, step) => getOwn(getOwn(here, 'properties'), step), schema)
  const type = getOwn(declared, 'type')
  if (type === 'array' || type === 'object') return parseJsonCell
  if (type !== 'number' && type !== 'integer' && type !== 'boolean') return unescapeFormula
  const part = { key: [key, ...path].join('.'), kind: fieldTypes[type], multi: false }
  return (cell) => readCell(part, cell, notation)
}

function parseJsonCell(cell: string): unknown {
  try {
    return parseExactJson(cell)
  } catch (error) {
    if (error instanceof InexactNumber) return badRequest(toInexactNumberError(error, cell))
    return cell
  }
}
