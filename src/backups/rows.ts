import type { FileSink } from 'bun'
import { tenantMigrations } from '../../migrations'
import { tryParseJson } from '../core/json'
import { LineTooLong } from '../core/lines'
import { Problem } from '../core/problem'
import { retryWhenBusy } from '../storage/errors'
import type { DatabaseLocation, RunQuery, TenantCopyConnection } from '../storage/port'
import { encodeRow, type Row, TableRows } from '../storage/table-rows'
import { databases } from '../tenancy/databases'

const FORMAT = 1
const PAGE_ROWS = 1_000

/**
 * The first line: the tables whose rows follow, each as a list that begins with the number of its table. The last line
 * is a `RowsEnd`.
 */
type RowsHeader = {
  format: number
  tenant: string
  schemaVersion: number
  tables: { name: string; columns: string[] }[]
}
type RowsEnd = { rows: Record<string, number> }

/** Returns the row to write, or undefined to leave it out. */
export type RowFilter = (table: string, row: Record<string, unknown>) => Record<string, unknown> | undefined

/** Writes all rows of one consistent state as lines of JSON that any engine can take. Returns their number by table. */
export async function writeRows(
  tenant: string,
  source: TenantCopyConnection,
  sink: FileSink,
  control: { onRows?(count: number): void; signal?: AbortSignal; filter?: RowFilter } = {},
): Promise<Record<string, number>> {
  const { tables } = source
  const header: RowsHeader = {
    ...{ format: FORMAT, tenant },
    schemaVersion: tenantMigrations.sqlite.length,
    tables: tables.map(({ name, columns }) => ({ name, columns: columns.map(({ name }) => name) })),
  }
  sink.write(`${JSON.stringify(header)}\n`)
  const rows: RowsEnd['rows'] = {}
  let written = 0
  await source.readSnapshot(async ({ query }) => {
    for (const [number, table] of tables.entries()) {
      rows[table.name] = 0
      for await (const page of readAllPages(query, new TableRows(table))) {
        control.signal?.throwIfAborted()
        const kept = control.filter
          ? page.flatMap((row) => filterRow(header.tables[number]!, row, control.filter!))
          : page
        for (const row of kept) sink.write(`[${number},${encodeRow(row).slice(1)}\n`)
        await sink.flush()
        rows[table.name]! += kept.length
        written += kept.length
        control.onRows?.(written)
      }
    }
  })
  sink.write(`${JSON.stringify({ rows } satisfies RowsEnd)}\n`)
  await sink.end()
  return rows
}

function filterRow({ name, columns }: RowsHeader['tables'][number], row: Row, filter: RowFilter): Row[] {
  const kept = filter(name, Object.fromEntries(columns.map((column, place) => [column, row[place]])))
  return kept ? [columns.map((column) => kept[column] as Row[number])] : []
}

/** Returns the row that takes the place of another one of a table. `tenant` is the one that was written. */
type RowChange = (row: Record<string, unknown>, tenant: string) => Record<string, unknown>

/**
 * Yields the lines that `writeRows` wrote, in which the rows of some tables are changed.
 * @throws 409 BACKUP_DAMAGED when the first line is invalid, BACKUP_TOO_NEW for lines of a later version
 */
export async function* changeRows(
  lines: AsyncIterable<string>,
  changeByTable: Record<string, RowChange>,
): AsyncGenerator<string> {
  const changeByStart = new Map<string, (line: string) => string>()
  let header: RowsHeader | undefined
  for await (const line of lines) {
    if (header) {
      yield changeByStart.get(line.slice(0, line.indexOf(',')))?.(line) ?? line
      continue
    }
    header = parseHeader(line)
    const { tenant, tables } = header
    for (const [number, { name, columns }] of tables.entries()) {
      const change = changeByTable[name]
      if (change) changeByStart.set(`[${number}`, (row) => changeLine(row, columns, (values) => change(values, tenant)))
    }
    yield line
  }
}

function changeLine(
  line: string,
  columns: string[],
  change: (row: Record<string, unknown>) => Record<string, unknown>,
) {
  const value = tryParseJson(line)
  if (!Array.isArray(value)) return line // it is refused where it is read
  const [number, ...row] = value
  const changed = change(Object.fromEntries(columns.map((column, place) => [column, row[place]])))
  return JSON.stringify([number, ...columns.map((column) => changed[column])])
}

async function* readAllPages(query: RunQuery, rows: TableRows) {
  for await (const { rows: page } of rows.readPages(query, {}, PAGE_ROWS)) if (page.length) yield page
}

/**
 * Creates a SQLite database of the lines that `writeRows` wrote, with the schema that they had. Returns whose
 * they are, and their number.
 * @throws 409 BACKUP_DAMAGED when lines are missing or invalid, BACKUP_TOO_NEW for those of a later version
 */
export async function createDatabaseOfRows(
  lines: AsyncIterable<string>,
  place: DatabaseLocation,
): Promise<{ tenant: string; rows: number }> {
  const iterator = lines[Symbol.asyncIterator]()
  const header = parseHeader((await iterator.next()).value)
  const migrations = { ...tenantMigrations, sqlite: tenantMigrations.sqlite.slice(0, header.schemaVersion) }
  const target = await databases.openTenantCopy(place, migrations)
  try {
    const tables = header.tables.map(({ name, columns }) => findTable(target, name, columns))
    const counts = new Map(header.tables.map(({ name }) => [name, 0]))
    let batch: { number: number; rows: Row[] } = { number: 0, rows: [] }
    const insertBatch = async () => {
      const { number, rows } = batch
      batch = { number, rows: [] }
      if (!rows.length) return
      const { upsertSql, table } = tables[number]!
      await retryWhenBusy(() => target.runExclusive(({ executeMany }) => executeMany(upsertSql, rows)))
      counts.set(table.name, counts.get(table.name)! + rows.length)
    }
    for (;;) {
      const { value: line, done } = await iterator.next()
      if (done) throw damaged('its last lines are missing')
      const value = tryParseJson(line)
      if (Array.isArray(value)) {
        const [number, ...row] = value
        if (!tables[number] || row.length !== header.tables[number]!.columns.length) throw damaged('a line is invalid')
        if (number !== batch.number || batch.rows.length === PAGE_ROWS) await insertBatch()
        batch.number = number
        batch.rows.push(row.map(decodeValue))
        continue
      }
      await insertBatch()
      const expected = (value as RowsEnd | undefined)?.rows
      if (!expected || !Bun.deepEquals(expected, Object.fromEntries(counts))) throw damaged('rows are missing')
      // The end of the stream is also where a changed file is noticed.
      if (!(await iterator.next()).done) throw damaged('lines follow after its end')
      await target.finish()
      const rows = counts.values().reduce((sum, count) => sum + count, 0)
      return { tenant: header.tenant, rows }
    }
  } catch (error) {
    if (error instanceof LineTooLong) throw damaged('a line is too long')
    // When the stream was changed, its end tells so, and that is why its rows could not be stored.
    while (!(await iterator.next()).done);
    throw error
  } finally {
    await target.close()
  }
}

function parseHeader(line: string | undefined): RowsHeader {
  const header = tryParseJson(line ?? '') as Partial<RowsHeader> | undefined
  const { format, tenant, schemaVersion, tables } = header ?? {}
  if (
    !Number.isInteger(format) ||
    typeof tenant !== 'string' ||
    !Number.isInteger(schemaVersion) ||
    !Array.isArray(tables)
  )
    throw damaged('it does not begin with the tables')
  if (format! > FORMAT || schemaVersion! > tenantMigrations.sqlite.length) throw tooNew()
  return header as RowsHeader
}

function findTable(target: TenantCopyConnection, name: string, columns: string[]): TableRows {
  const table = target.tables.find((table) => table.name === name)
  const isSame = table && Bun.deepEquals(table.columns.map(({ name }) => name).sort(), columns.toSorted())
  if (!isSame) throw damaged(`the table "${name}" is not one of its version`)
  return new TableRows({
    ...table,
    columns: columns.map((name) => table.columns.find((column) => column.name === name)!),
  })
}

const decodeValue = (value: unknown): Row[number] =>
  value !== null && typeof value === 'object'
    ? Uint8Array.fromHex((value as { bytes: string }).bytes)
    : (value as Row[number])

const damaged = (reason: string) => new Problem(409, 'BACKUP_DAMAGED', `The file cannot be used: ${reason}.`)

/** The refusal of data that a later version wrote. */
export const tooNew = () =>
  new Problem(409, 'BACKUP_TOO_NEW', 'The data were written by a newer version of Atoll. Upgrade Atoll first.')
