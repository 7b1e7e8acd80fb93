import pg from 'pg'
import { BoundedMap } from '../../../core/bounded-map'
import { runGroup, Statement } from './statement-group'

const FIRST_ANALYZE_ROWS = 1_000 // rows written
const ANALYZE_GROWTH_FACTOR = 2
const ROWS_PER_NEW_ROW = 10 // a table is analyzed once a tenth of the tenant's rows is new
const MAX_COUNTED_TABLES = 20_000 // tables of tenants whose rows are counted

/** Analyzes the tables of the bucket in the search path that the role owns. */
export const ANALYZE_BUCKET_SQL = `do $$
declare
  one regclass;
begin
  for one in
    select oid from pg_class where relnamespace = current_schema()::regnamespace and relkind in ('r', 'p')
  loop
    execute format('analyze %s', one);
  end loop;
end
$$`

/** How many rows a transaction wrote, by table. */
export type WrittenRows = Map<string, number>

const SET_TENANT = new Statement("select set_config('app.tenant', $1, true)")

/**
 * Analyzes a table of a bucket whenever a tenant's part of it has grown much, such as by a new index. Autovacuum does so at most
 * once a minute, and by the growth of the whole table. Until then, the planner expects almost no rows with new values, and joins
 * of a few thousand rows take seconds. A role that does not own the tables leaves them to autovacuum.
 */
export class AutoAnalyze {
  #counts = new BoundedMap<string, { rows: number; next: number }>(MAX_COUNTED_TABLES)
  #analyzing = new Set<string>()

  constructor(private pool: pg.Pool) {}

  /**
   * Counts the rows that a commit has written, and starts an analysis of the tables in which they are many. Call it after
   * each commit.
   */
  recordRows(bucket: string, tenant: string, written: WrittenRows) {
    for (const [table, rows] of written) {
      const key = `${bucket} ${tenant} ${table}`
      const count = this.#counts.get(key) ?? { rows: 0, next: FIRST_ANALYZE_ROWS }
      count.rows += rows
      if (count.rows >= count.next && this.#analyze(bucket, tenant, table, count.rows))
        count.next = count.rows * ANALYZE_GROWTH_FACTOR
      this.#counts.set(key, count)
    }
  }

  /**
   * Starts to analyze a table, unless an analysis is running, or the tenant has many more rows than were written. Returns whether
   * it was started.
   */
  #analyze(bucket: string, tenant: string, table: string, written: number): boolean {
    const name = `${pg.escapeIdentifier(bucket)}.${pg.escapeIdentifier(table)}`
    if (this.#analyzing.has(name)) return false
    this.#analyzing.add(name)
    const onDone = () => this.#analyzing.delete(name)
    this.#analyzeGrown(name, tenant, written).then(onDone, onDone) // after a failure, plans are worse for a while
    return true
  }

  async #analyzeGrown(name: string, tenant: string, written: number) {
    const client = await this.pool.connect()
    try {
      const limit = written * ROWS_PER_NEW_ROW
      const count = new Statement(
        `select count(*) from (select from ${name} where tenant_id = $1 limit ${limit}) as counted`,
      )
      const { results } = await runGroup(client, [
        { statement: SET_TENANT, params: [tenant] },
        { statement: count, params: [tenant] },
      ])
      // If the count fails, the table is analyzed anyway.
      if (Number(results[1]?.rows[0]?.[0] ?? 0) < limit) await client.query(`analyze ${name}`)
    } finally {
      client.release()
    }
  }
}
