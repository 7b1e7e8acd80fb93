import { now } from '../../core/clock'
import { columnStatistics, measureColumns } from '../../entities/columns/column-cache'
import { type DatabaseStatistics, databaseStatistics } from '../../storage/database-statistics'
import { countConnections, databases, maxOpenTenants } from '../../tenancy/databases'
import { listStorageFailuresSince } from '../../tenancy/placement'
import { countTenantsByStatus } from '../../tenancy/tenant-list'
import { listDamaged } from '../installation-health'
import { defineCounter, defineGauge, defineHistogram } from './collected-metrics'

const RECENT_FAILURE_MS = 60_000

/** Defines the metrics of databases and tenants. */
export function defineDatabaseMetrics() {
  const byEngine = <T>(read: (statistics: DatabaseStatistics) => T) =>
    Object.entries(databaseStatistics).map(([engine, statistics]): [{ engine: string }, T] => [
      { engine },
      read(statistics),
    ])
  defineHistogram('atoll_database_read_duration_seconds', 'How long statements that only read took.', ['engine'], () =>
    byEngine(({ reads }) => reads),
  )
  defineHistogram(
    'atoll_database_write_duration_seconds',
    'How long writes took from their call until they were durable, which includes the wait for other writes.',
    ['engine'],
    () => byEngine(({ writes }) => writes),
  )
  defineHistogram('atoll_database_commit_writes', 'How many writes shared a commit.', ['engine'], () =>
    byEngine(({ commits }) => commits),
  )
  defineCounter(
    'atoll_database_slow_statements_total',
    'The statements that took longer than ATOLL_SLOW_QUERY.',
    ['engine'],
    () => byEngine(({ slowStatements }) => slowStatements),
  )
  defineGauge(
    'atoll_database_connections',
    'The connections to PostgreSQL that are busy or idle, and the work that waits for one.',
    ['cluster', 'state'],
    () =>
      countConnections().flatMap(({ cluster, ...counts }) =>
        Object.entries(counts).map(([state, count]): [Record<string, string>, number] => [{ cluster, state }, count]),
      ),
  )
  defineGauge(
    'atoll_tenants',
    'The tenants of the installation.',
    ['status'],
    async () =>
      // A registry that cannot be read must not take the other metrics along.
      (await countTenantsByStatus().catch(() => [])).map(({ status, count }) => [{ status }, count]),
    'max',
  )
  defineGauge('atoll_column_cache_bytes', 'The values of entities in memory that answer lists.', [], measureColumns)
  defineCounter(
    'atoll_column_cache_reads_total',
    'Lists and counts that values in memory answered.',
    [],
    () => columnStatistics.reads,
  )
  defineGauge('atoll_open_tenants', 'The tenants whose database is open.', [], () => databases.openCount)
  defineGauge('atoll_open_tenants_limit', 'How many databases of tenants may be open.', [], () => maxOpenTenants)
  defineGauge(
    'atoll_damaged_tenants',
    'The tenants whose data was found missing or damaged, within a day or at their latest weekly check.',
    [],
    () => listDamaged().length,
    'max',
  )
  defineGauge(
    'atoll_storage_failing_tenants',
    'The tenants for which the disk failed within a minute.',
    [],
    () => listStorageFailuresSince(now() - RECENT_FAILURE_MS).length,
    'max',
  )
}
