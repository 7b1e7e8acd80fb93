import type { PublicCtx } from '../../accounts/context'
import type { Model, ModelField } from '../../blueprints/model'
import { mayReadField } from '../../blueprints/permissions'
import type { Query } from '../query/query-parser'
import { parseEntity } from '../store/serializer'
import { escapeFormula, toCsvHeader, toCsvRow } from './csv'
import { HEADER_COLUMNS } from './csv-columns'
import type { LineFormat } from './export'
import type { CsvExportOptions } from './export-options'

const BYTE_ORDER_MARK = '\ufeff'

/** Returns how entities are written as CSV: a column for each system property and each field that the caller may read. */
export function csvFormat(
  model: Model,
  { actor }: PublicCtx,
  { select }: Query,
  options: CsvExportOptions,
): LineFormat {
  const { separator, decimal, bom, titles } = options
  const isChosen = (name: string) =>
    !select || select.includes(name) || name === '_id' || name === 'identifier' || isOfMetadata(name)
  const isOfMetadata = (name: string) => select?.includes('metadata') && model.field.has(name)
  const system = HEADER_COLUMNS.filter(isChosen)
  const fields = model.fields.filter((field) => mayReadField(field, actor) && isChosen(field.key))
  const names = fields.map(({ key, title }) => (titles && title) || key)
  return {
    head: (bom ? BYTE_ORDER_MARK : '') + toCsvHeader([...system, ...names], separator),
    lines: (slice) => [slice.map(line).join('')],
  }

  function line(shown: string) {
    const entity = parseEntity(shown)
    const headerCells = system.map((name) => escapeFormula((entity[name] ?? '') as string))
    return toCsvRow([...headerCells, ...fields.map((field) => toCell(field, entity.metadata[field.key]))], separator)
  }

  /** Returns a property as a cell: lists and objects as JSON, a missing value as an empty text. */
  function toCell({ kind, multi }: ModelField, value: unknown): string {
    if (value === undefined || value === null) return ''
    if (multi || kind.jsonSchema.type === 'object') return JSON.stringify(value)
    if (!kind.fromCell) return escapeFormula(value as string)
    return kind.hasDecimalPoint && decimal === 'comma' ? String(value).replace('.', ',') : String(value)
  }
}
