import type { SelectedFields, SQLiteSelectBuilder } from 'drizzle-orm/sqlite-core'
import { drizzle, type SqliteRemoteResult } from 'drizzle-orm/sqlite-proxy'
import type { Awaitable } from '../core/awaitable'
import { yieldToEventLoop } from '../core/event-loop'
import { Problem } from '../core/problem'
import type { AfterCommit, Db, Defer, Executor, OnVisible, RunQuery, Tx } from './port'

type SelectBuilder<Fields extends SelectedFields | undefined> = SQLiteSelectBuilder<Fields, 'async', SqliteRemoteResult>
type WriteAccess = Pick<Executor, 'executeMany'> & { defer: Defer; afterCommit: AfterCommit; onVisible: OnVisible }

function throwReadOnly(): never {
  throw new Error('Writes need a transaction.')
}
const READ_ONLY: WriteAccess = {
  executeMany: async () => throwReadOnly(),
  defer: throwReadOnly,
  afterCommit: throwReadOnly,
  onVisible: throwReadOnly,
}

/**
 * Returns reads and writes over `query`. Drizzle is created on first use: the most frequent statements need only
 * `query`.
 */
export function createDb(query: RunQuery, { executeMany, defer, afterCommit, onVisible }: WriteAccess = READ_ONLY): Tx {
  let instance: ReturnType<typeof createOrm> | undefined
  const getOrm = () => {
    instance ??= createOrm(query)
    return instance
  }
  function select(): SelectBuilder<undefined>
  function select<Fields extends SelectedFields>(fields: Fields): SelectBuilder<Fields>
  function select(fields?: SelectedFields) {
    return fields ? getOrm().select(fields) : getOrm().select()
  }
  function selectDistinct(): SelectBuilder<undefined>
  function selectDistinct<Fields extends SelectedFields>(fields: Fields): SelectBuilder<Fields>
  function selectDistinct(fields?: SelectedFields) {
    return fields ? getOrm().selectDistinct(fields) : getOrm().selectDistinct()
  }
  return {
    query: (sql, params) => (params?.some(hasNul) ? Promise.reject(nulProblem()) : query(sql, params)),
    executeMany: (sql, rows) =>
      rows.some((row) => row.some(hasNul)) ? Promise.reject(nulProblem()) : executeMany(sql, rows),
    defer,
    afterCommit,
    onVisible,
    vectorSearch: 'javascript',
    wordIndex: 'gin',
    yieldToOthers: yieldToEventLoop,
    select,
    selectDistinct,
    $count: (...of) => getOrm().$count(...of),
    insert: (table) => getOrm().insert(table),
    update: (table) => getOrm().update(table),
    delete: (table) => getOrm().delete(table),
  }
}

/** Reads the rows of a statement, without a promise where the engine can. */
export const queryAtOnce = (db: Db, sql: string, params: unknown[]): Awaitable<unknown[][]> =>
  db.queryAtOnce?.(sql, params) ?? db.query(sql, params)

/** Builds statements without running them. */
export const statementBuilder: Tx = createDb(() =>
  Promise.reject(new Error('The statement builder cannot run statements.')),
)

const createOrm = (query: RunQuery) =>
  drizzle(async (sql, params, method) => {
    if (params.some(hasNul)) throw nulProblem()
    const rows = await query(sql, params)
    return { rows: method === 'get' ? rows[0]! : rows }
  })

// PostgreSQL cannot store U+0000, so no engine accepts it.
export const hasNul = (value: unknown) => typeof value === 'string' && value.includes('\0')
const nulProblem = () => {
  const message = 'Text must not contain the character U+0000.'
  return new Problem(400, 'INVALID_INPUT', message, { details: [{ path: '', message }] })
}
