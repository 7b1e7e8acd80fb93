import { DURATION_BOUNDS, Histogram } from '../core/histogram'
import { log } from '../core/log'
import { LogQuota } from '../core/log-quota'
import type { DatabaseLocation, RunQuery } from './port'

/** What the databases of an engine did in this process. Durations are in seconds. */
export class DatabaseStatistics {
  /** Statements that only read. */
  readonly reads = new Histogram(DURATION_BOUNDS)
  /** Writes from their call to their acknowledgement: the wait for other writes, and the commit. */
  readonly writes = new Histogram(DURATION_BOUNDS)
  /** How many writes shared a commit. */
  readonly commits = new Histogram([1, 2, 4, 8, 16, 32, 64, 128, 256])
  slowStatements = 0
}

type EngineName = 'sqlite' | 'postgres'
/** What a thread has read in the databases of an engine. */
export type ReadStatistics = { engine: EngineName; reads: Pick<Histogram, 'counts' | 'sum'>; slowStatements: number }

/** Returns what was read in this thread since the last call, for each engine that has read anything. */
export function takeReadStatistics(): ReadStatistics[] {
  return (['sqlite', 'postgres'] as const).flatMap((engine) => {
    const statistics = databaseStatistics[engine]
    if (!statistics.reads.count) return []
    const taken = { engine, reads: statistics.reads.take(), slowStatements: statistics.slowStatements }
    statistics.slowStatements = 0
    return [taken]
  })
}

/** Adds what another thread of this process has read. */
export function addReadStatistics({ engine, reads, slowStatements }: ReadStatistics) {
  databaseStatistics[engine].reads.add(reads)
  databaseStatistics[engine].slowStatements += slowStatements
}

/** The statistics of all databases of this process, by engine. */
export const databaseStatistics: Record<EngineName, DatabaseStatistics> = {
  sqlite: new DatabaseStatistics(),
  postgres: new DatabaseStatistics(),
}

export const engineOf = ({ bucket }: Pick<DatabaseLocation, 'bucket'>): EngineName => (bucket ? 'postgres' : 'sqlite')

/** Returns the first word of a statement, such as SELECT. */
export const operationOf = (sql: string) => /^\s*(\w+)/.exec(sql)?.[1]?.toUpperCase() ?? 'STATEMENT'

/** Returns what a span says about a statement, whose text has no values, or about a transaction. */
export const describeStatement = (place: DatabaseLocation, operation: string, sql?: string) => ({
  'db.system.name': place.bucket ? 'postgresql' : 'sqlite',
  'db.operation.name': operation,
  ...(sql && { 'db.query.text': shortenSql(sql) }),
  'atoll.tenant': place.tenant,
})

const shortenSql = (sql: string) => sql.replace(/\s+/g, ' ').slice(0, MAX_SQL_LENGTH)

const MAX_SQL_LENGTH = 2_000 // characters of a line
const slowLines = new LogQuota(60, 20)

/**
 * Returns a function that runs statements as `query` does, adds their durations to `durations`, and logs those that take
 * longer than `slowAfter` ms; 0 logs none. The line has the text of the statement, which has no values.
 */
export const timeStatements =
  (query: RunQuery, place: DatabaseLocation, slowAfter: number, durations?: Histogram): RunQuery =>
  async (sql, params) => {
    const began = performance.now()
    let rowCount = 0
    try {
      const rows = await query(sql, params)
      rowCount = rows.length
      return rows
    } finally {
      recordStatement(began, sql, rowCount, { place, slowAfter, durations })
    }
  }

/** Does the same for statements that run without a promise. */
export const timeStatementsAtOnce =
  (
    query: (sql: string, params: unknown[]) => unknown[][],
    place: DatabaseLocation,
    slowAfter: number,
    durations?: Histogram,
  ): typeof query =>
  (sql, params) => {
    const began = performance.now()
    const rows = query(sql, params)
    recordStatement(began, sql, rows.length, { place, slowAfter, durations })
    return rows
  }

function recordStatement(
  began: number,
  sql: string,
  rows: number,
  { place, slowAfter, durations }: { place: DatabaseLocation; slowAfter: number; durations?: Histogram },
) {
  const ms = performance.now() - began
  durations?.record(ms / 1_000)
  if (slowAfter && ms > slowAfter) reportSlowStatement(place, sql, ms, rows)
}

function reportSlowStatement(place: DatabaseLocation, sql: string, ms: number, rows: number) {
  databaseStatistics[engineOf(place)].slowStatements++
  const omitted = slowLines.take(place.tenant)
  if (omitted === undefined) return
  const about = { tenant: place.tenant, ms: Math.round(ms), rows, sql: shortenSql(sql), ...(omitted && { omitted }) }
  log.warn({ event: 'slow-statement', ...about })
}
