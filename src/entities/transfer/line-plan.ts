import type { Model } from '../../blueprints/model'
import { requireStorable } from '../../core/body'
import { Problem } from '../../core/problem'
import { parseIdentifier } from '../write/document'
import type { PlannedLine } from './held-lines'
import { parseLine } from './import-errors'
import type { ImportOptions, ImportSource } from './import-reader'
import type { Line } from './line-reader'
import { RowOperation } from './operation'
import { addTimeZone } from './zoned-times'

/**
 * Returns the operation of a line of an import, or what is wrong with it; undefined for a line without values.
 * @throws what is wrong with a whole table
 */
export function planLine(
  source: Line,
  { table, zone }: ImportSource,
  model: Model,
  mode: ImportOptions['mode'],
): PlannedLine | Problem | undefined {
  const { line, text, problem } = source
  try {
    if (problem) throw problem
    const row = table?.readRow(source, model)
    if (table && !row) return
    if (row?.texts) {
      const name = parseIdentifier(row.texts.identifier) ?? ''
      return { line, operation: new RowOperation(name ? mode : 'create', name, row, row.texts) }
    }
    const data = row ? requireStorable(row.readProperties()) : parseLine(text)
    if (!row && zone) addTimeZone(model, data, zone)
    const { identifier } = (data ?? {}) as { identifier?: unknown }
    const name = parseIdentifier(identifier) ?? ''
    const op = name ? mode : 'create'
    return { line, operation: { op, name, data, _id: Bun.randomUUIDv7(), parts: table?.parts } }
  } catch (error) {
    if (!(error instanceof Problem) || (table && !table.isReadable)) throw error
    return error
  }
}
