import type { DecimalMark } from '../../blueprints/fields/number-cell'
import { api, fetchData } from '../api/client'
import { connection } from '../api/connection'
import { newId } from '../api/new-id'
import { ApiProblem, ConnectionLost } from '../api/problem'
import type { Blueprint } from '../api/schema'
import type { WorkControl } from '../tray/work'
import { parseCell } from './cell-value'
import { type ColumnTargets, IDENTIFIER } from './column-match'
import { type FileRow, type RowFile, readRows } from './file-rows'

/** The server reports at most so many refused rows of a request. */
const ROWS_PER_REQUEST = 1_000
const CHARACTERS_PER_REQUEST = 4 << 20
const RETRY_PAUSE_MS = 1_000
const MAX_ATTEMPTS = 8

/** How a file writes numbers, and the zone of its times that name none. */
export type Notation = { decimal: DecimalMark; timezone: string }

/** An import of a file into a blueprint. */
export type Import = {
  blueprint: Blueprint
  file: RowFile
  targets: ColumnTargets
  /** `upsert` updates the entities whose identifiers exist. */
  mode: 'create' | 'upsert'
  notation: Notation
  /** Checks the rows and saves nothing. */
  isDryRun: boolean
}

/** A row that the server refused. */
export type RefusedRow = FileRow & { message: string }

/** What came of an import. */
export type ImportReport = { imported: number; failed: number; refused: RefusedRow[] }

/** Returns the entity that a row describes. @throws Error for a cell that cannot be read */
function toEntity({ values }: FileRow, { blueprint, file, targets, notation }: Import): Record<string, unknown> {
  const entity: Record<string, unknown> = {}
  for (const [column, target] of Object.entries(targets)) {
    const value = values[column]
    const field = target === IDENTIFIER ? undefined : blueprint.fields.find(({ key }) => key === target)
    entity[target] = file.isCsv ? parseCell(String(value ?? ''), field, notation.decimal) : value
  }
  return entity
}

/** Returns whether the same request may be sent again; its idempotency key keeps it from being done twice. */
const isTemporary = (error: unknown) =>
  error instanceof ConnectionLost ||
  (error instanceof ApiProblem && (error.status === 503 || error.code === 'IDEMPOTENCY_IN_PROGRESS'))

async function waitUntilOnline(signal: AbortSignal) {
  do await new Promise((resolve) => setTimeout(resolve, RETRY_PAUSE_MS))
  while (connection.get() === 'lost' && !signal.aborted)
}

async function sendLines(lines: string[], { blueprint, mode, isDryRun, notation }: Import, signal: AbortSignal) {
  const key = newId()
  for (let attempt = 1; ; attempt++)
    try {
      return await fetchData(
        api.POST('/api/blueprints/{key}/entities/import', {
          params: {
            path: { key: blueprint.key },
            query: { mode, timezone: notation.timezone, ...(isDryRun && { dryRun: true }) },
          },
          headers: { 'content-type': 'application/x-ndjson', 'idempotency-key': key },
          body: lines.join('\n') as never,
          bodySerializer: (body) => body as never,
          signal,
        }),
      )
    } catch (error) {
      signal.throwIfAborted()
      if (attempt === MAX_ATTEMPTS || !isTemporary(error)) throw error
      await waitUntilOnline(signal)
    }
}

/** Sends the rows of a file, some at a time. `report` counts what was done, also when the import breaks off. */
export async function importRows(
  request: Import,
  report: ImportReport,
  { signal, report: reportProgress }: WorkControl,
) {
  let [pending, lines, size]: [FileRow[], string[], number] = [[], [], 0]
  const flush = async () => {
    if (!lines.length) return
    const [rows, sent] = [pending, lines]
    ;[pending, lines, size] = [[], [], 0]
    const { imported, failed, errors } = await sendLines(sent, request, signal)
    report.imported += imported
    report.failed += failed
    for (const { line, message } of errors) report.refused.push({ ...rows[line - 1]!, message })
    reportProgress(report.imported + report.failed)
  }
  const toLine = (row: FileRow): string | undefined => {
    try {
      return JSON.stringify(toEntity(row, request))
    } catch (error) {
      report.failed++
      report.refused.push({ ...row, message: (error as Error).message })
    }
  }
  for await (const { rows } of readRows(request.file))
    for (const row of rows) {
      const line = toLine(row)
      if (line === undefined) continue
      pending.push(row)
      lines.push(line)
      size += line.length
      if (lines.length === ROWS_PER_REQUEST || size > CHARACTERS_PER_REQUEST) await flush()
    }
  await flush()
}
