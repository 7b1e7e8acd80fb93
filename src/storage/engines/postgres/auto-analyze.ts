import pg from 'pg'
import { BoundedMap } from '../../../core/bounded-map'

const FIRST_ANALYZE_ROWS = 1_000 // rows written
const ANALYZE_GROWTH_FACTOR = 2
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

/**
 * Analyzes a table of a bucket whenever a tenant's part of it has grown much. PostgreSQL's autovacuum does so once a
 * minute at most, and by the growth of the whole table; until then the planner expects almost no rows with new values,
 * and joins of a few thousand rows take seconds. A role that does not own the tables leaves them to autovacuum.
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
      if (count.rows >= count.next && this.#analyze(bucket, table)) count.next = count.rows * ANALYZE_GROWTH_FACTOR
      this.#counts.set(key, count)
    }
  }

  /** Starts to analyze a table, unless that is under way already. Returns whether it was started. */
  #analyze(bucket: string, table: string): boolean {
    const name = `${pg.escapeIdentifier(bucket)}.${pg.escapeIdentifier(table)}`
    if (this.#analyzing.has(name)) return false
    this.#analyzing.add(name)
    const onDone = () => this.#analyzing.delete(name)
    this.pool.query(`analyze ${name}`).then(onDone, onDone) // when it fails, plans are worse for a while
    return true
  }
}
