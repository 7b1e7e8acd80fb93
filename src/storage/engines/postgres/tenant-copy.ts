import type pg from 'pg'
import { Busy, toStorageError } from '../../errors'
import type { ExclusiveAccess, Executor, RunQuery, TenantCopyConnection } from '../../port'
import {
  CHANGED_ROWS_TABLE,
  isDerivedTable,
  SEARCH_PROGRESS_TABLES,
  sortByReferences,
  type TableSchema,
  toColumnKind,
} from '../../schema-catalog'
import { ANALYZE_BUCKET_SQL } from './auto-analyze'
import { runMany, runQuery } from './query'

const ENGINE_TABLES = ['tenant_lock', 'commits', CHANGED_ROWS_TABLE]
const MAX_EXCLUSIVE_IDLE_MS = 10_000 // a copy that hangs blocks writers for no longer
const LOCK_TIMEOUT_MS = 5_000 // for other writers to finish

// Rows are read in the order of the key, page by page. As long as the planner expects few rows of the tenant, it would
// read and sort all of them each time.
const READ_BY_KEY_SETTINGS = ['seqscan', 'sort', 'hashjoin', 'mergejoin'].map((way) => `set local enable_${way} to off`)
const CHANGES_PER_DELETE = 10_000
const CAPTURE_EXPIRY_SQL = "clock_timestamp() + interval '1 minute'"

/**
 * Opens the rows of one tenant for copying, on a connection of its own. `tenant` holds the SQL settings that select the
 * tenant.
 */
export async function openTenantCopy(client: pg.Client, tenant: string): Promise<TenantCopyConnection> {
  const settings = [tenant, ...READ_BY_KEY_SETTINGS, "set local app.followed to 'no'"].join('; ')
  const executor: Executor = {
    query: (sql, params) => runQuery(client, sql, params),
    executeMany: (sql, rows) => runMany(client, sql, rows),
  }

  async function runTransaction<T>(begin: string, work: () => Promise<T>): Promise<T> {
    try {
      await client.query(begin).catch((error) => Promise.reject(toStorageError(error)))
      const result = await work()
      const { command } = await client.query('commit').catch((error) => Promise.reject(toStorageError(error)))
      if (command !== 'COMMIT') throw new Error('The transaction had already failed.')
      return result
    } catch (error) {
      await client.query('rollback').catch(() => {}) // the first error counts
      throw error
    }
  }

  const tables = await runTransaction(`begin; ${settings}`, async () => {
    await executor.query('insert into tenant_lock default values on conflict do nothing')
    return readTables(executor)
  }).catch(async (error) => {
    await client.end().catch(() => {}) // the connection may be broken already
    throw error
  })
  let isCapturing = false
  // Deletes page by page: deleting all changes of a large copy at once could exceed the time limit of a statement.
  const deleteChanges = async () => {
    const deleteOldest = `delete from ${CHANGED_ROWS_TABLE} where number <= (select max(number) from (select number from ${CHANGED_ROWS_TABLE} order by number limit ${CHANGES_PER_DELETE}) as oldest) returning true`
    while ((await runTransaction(`begin; ${settings}`, () => executor.query(deleteOldest))).length);
  }
  const setEnded = async (ended: number | null, moved: string | null) =>
    void (await executor.query('update tenant_lock set ended = ?, moved = ?', [ended, moved]))

  return {
    tables,
    async captureChanges() {
      if (!isCapturing) await deleteChanges()
      await runTransaction(`begin; ${settings}`, async () => {
        const condition = isCapturing ? 'where followed > clock_timestamp()' : ''
        const [isActive] = await executor.query(
          `update tenant_lock set followed = ${CAPTURE_EXPIRY_SQL} ${condition} returning true`,
        )
        if (!isActive) throw captureExpired()
      })
      isCapturing = true
    },
    // The snapshot begins with the first statement other than a setting.
    readSnapshot: <T>(work: (state: { query: RunQuery }) => Promise<T>) =>
      runTransaction(`begin isolation level repeatable read read only; ${settings}; select`, () => work(executor)),
    runExclusive: <T>(work: (state: ExclusiveAccess) => Promise<T>) =>
      runTransaction(
        `begin; ${settings}; set local lock_timeout to ${LOCK_TIMEOUT_MS}; set local statement_timeout to ${LOCK_TIMEOUT_MS};
         set local idle_in_transaction_session_timeout to ${MAX_EXCLUSIVE_IDLE_MS}; select from tenant_lock for update`,
        async () => {
          if (isCapturing) {
            const [isActive] = await executor.query('select true from tenant_lock where followed > clock_timestamp()')
            if (!isActive) throw captureExpired()
          }
          const leave = (home?: string) => setEnded(Date.now(), home ?? null)
          const serve = async () => {
            await executor.query('select advance_numbers()')
            await setEnded(null, null)
          }
          return work({ ...executor, markMoved: leave, markServing: serve })
        },
      ),
    async finish() {
      await runTransaction(`begin; ${settings}`, async () => {
        await executor.query('select advance_numbers()')
        for (const table of SEARCH_PROGRESS_TABLES) {
          const [[derives] = []] = await executor.query('select to_regclass(?) is not null', [table])
          if (derives) await executor.query(`delete from ${table}`)
        }
      })
      // Without statistics of the rows, PostgreSQL would look up a thousand of them by scanning the table.
      await runTransaction(`begin; ${settings}; set local role none`, () => client.query(ANALYZE_BUCKET_SQL)).catch(
        () => {},
      )
    },
    async close() {
      try {
        if (isCapturing) {
          await runTransaction(`begin; ${settings}`, () => executor.query('update tenant_lock set followed = null'))
          await deleteChanges()
        }
      } catch {
        // The capture expires by itself. The next capture starts from the beginning.
      }
      await client.end()
    },
  }
}

const captureExpired = () => new Busy('The change capture has expired.')

/** Returns the tables of the bucket from the catalogue, without those of the engine. */
async function readTables({ query }: Executor): Promise<TableSchema[]> {
  const columns = await query(
    `select relname, attname, format_type(atttypid, null), array_position(indkey::int2[], attnum)
     from pg_class c join pg_attribute on attrelid = c.oid join pg_index on indrelid = c.oid and indisprimary
     where relnamespace = current_schema()::regnamespace and relkind in ('r', 'p') and attnum > 0
       and not attisdropped and attname <> 'tenant_id' order by relname, attnum`,
  )
  const references = await query(
    `select c.relname, f.relname from pg_constraint k join pg_class c on c.oid = conrelid join pg_class f on f.oid = confrelid
     where contype = 'f' and connamespace = current_schema()::regnamespace`,
  )
  const tables = Map.groupBy(columns as [string, string, string, number | null][], ([table]) => table)
  return sortByReferences(
    [...tables]
      .filter(([name]) => !ENGINE_TABLES.includes(name) && !isDerivedTable(name))
      .map(([name, of]) => ({
        name,
        columns: of.map(([, column, type]) => ({ name: column, kind: toColumnKind(type) })),
        key: of
          .filter(([, , , place]) => place !== null)
          .sort((one, other) => one[3]! - other[3]!)
          .map(([, column]) => column),
        references: references.flatMap(([table, to]) => (table === name ? [to as string] : [])),
      })),
  )
}
