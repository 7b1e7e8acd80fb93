import pg from 'pg'

const FIRST_ANALYZE_ROWS = 1_000 // rows written
const ANALYZE_GROWTH_FACTOR = 2

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

/**
 * Analyzes a bucket's tables whenever a tenant has grown much. PostgreSQL's autovacuum does so once a minute at most,
 * and by the growth of the whole table; until then the planner expects almost no rows of the tenant, and joins of a few
 * thousand rows take seconds. A role that does not own the tables leaves them to autovacuum.
 */
export class AutoAnalyze {
  #tenants = new Map<string, { rows: number; next: number }>()
  #analyzing = new Set<string>()

  constructor(private pool: pg.Pool) {}

  /**
   * Counts the rows that a commit has written, and starts an analysis when they are many. Call it after each commit.
   */
  recordRows(bucket: string, tenant: string, rows: number) {
    const key = `${bucket} ${tenant}`
    const state = this.#tenants.get(key) ?? { rows: 0, next: FIRST_ANALYZE_ROWS }
    this.#tenants.set(key, state)
    state.rows += rows
    if (state.rows < state.next || this.#analyzing.has(bucket)) return
    state.next = state.rows * ANALYZE_GROWTH_FACTOR
    this.#analyzing.add(bucket)
    // One message is a transaction of its own, and leaves none open on its connection when it fails.
    const statements = `set local search_path to ${pg.escapeIdentifier(bucket)}; ${ANALYZE_BUCKET_SQL}`
    const onDone = () => this.#analyzing.delete(bucket)
    this.pool.query(statements).then(onDone, onDone) // when it fails, plans are worse for a while
  }
}
