import type { CellNotation } from '../../blueprints/fields/cell-notation'
import type { Model } from '../../blueprints/model'
import { type Caller, mayReadField } from '../../blueprints/permissions'
import { badRequest } from '../../core/problem'
import { parseFlag } from '../../core/shapes'
import type { Separator } from './csv'
import { parseCsvOptions } from './csv-dialect'
import { type Format, parseFormat } from './format'

/** How a table is written: the separator of its cells, its decimals, its first bytes and the names of its columns. */
export type CsvExportOptions = {
  separator: Separator
  decimal: CellNotation['decimal']
  /** Whether the file begins with a byte order mark, by which some spreadsheets recognise UTF-8. */
  bom: boolean
  /** Whether columns have the titles of fields for names, where fields have titles. */
  titles: boolean
}

const CSV_OPTIONS = ['separator', 'decimal', 'bom', 'titles']

/**
 * Takes the options of the file out of the query of an export; what is left are filters. A field that is called like an
 * option is filtered by; with a dollar sign, the name always means the option.
 * @throws 400
 */
export function takeExportOptions(
  model: Model,
  actor: Caller | undefined,
  search: URLSearchParams,
): { format: Format; csv?: CsvExportOptions } {
  const format = parseFormat(search) ?? 'ndjson'
  search.delete('format')
  const options = new URLSearchParams()
  const isField = (name: string) => !!model.field.get(name) && mayReadField(model.field.get(name)!, actor)
  for (const name of CSV_OPTIONS)
    for (const written of isField(name) ? [`$${name}`] : [name, `$${name}`]) {
      const value = search.get(written)
      if (value === null) continue
      if (format !== 'csv') badRequest({ path: written, message: `${written} is an option of format=csv.` })
      options.set(name, value)
      search.delete(written)
    }
  if (format !== 'csv') return { format }
  const readFlag = (name: string) => !!parseFlag({ [name]: options.get(name) ?? undefined }, name)
  const { separator = ',', decimal } = parseCsvOptions(options, ',')
  return { format, csv: { separator, decimal, bom: readFlag('bom'), titles: readFlag('titles') } }
}
