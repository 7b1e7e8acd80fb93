import pg from 'pg'

import { BoundedMap } from '../../../core/bounded-map'
import { toPostgres } from './dialect'

// Plans of value lists and counts depend on the values. Plans of arrays do not, because the length is unknown to the planner.
const VALUE_DEPENDENT = /\bin \(|\bany \((?!\(select \$)|\bcount\(|\bjson|^\s*explain/i

/** A statement of a bucket, which a connection prepares at its second use. */
export class Statement {
  uses = 0
  /** Whether its plan is an index scan that does not depend on the values. */
  readonly isPlain: boolean
  /** Whether it uses the full-text index. */
  readonly isSearch: boolean

  /** @param listSizes the number of original parameters in each of its parameters, if some are arrays */
  constructor(
    readonly text: string,
    private listSizes?: number[],
  ) {
    this.isSearch = text.includes('searched_words')
    this.isPlain = this.isSearch || !VALUE_DEPENDENT.test(text)
  }

  static translate(sql: string): Statement {
    const { text, listSizes } = toPostgres(sql)
    return new Statement(text, listSizes)
  }

  /** Packs lists of parameters into arrays. */
  toParams(params: unknown[]): unknown[] {
    if (!this.listSizes) return params
    let end = 0
    return this.listSizes.map((size) => {
      const start = end
      end += size
      return size === 1 ? params[start] : toArray(params.slice(start, end))
    })
  }
}

const MAX_STATEMENTS = 2_000 // of a bucket; there is no limit to statements that are composed at run time

/** The statements of a bucket. Each bucket has its own plans, because it has its own tables. */
export class Statements {
  #bySql = new BoundedMap<string, Statement>(MAX_STATEMENTS)
  #byText = new BoundedMap<string, Statement>(MAX_STATEMENTS)

  /** Returns the statement for SQL in the common dialect of the engines. */
  translate(sql: string): Statement {
    const existing = this.#bySql.get(sql)
    if (existing) return existing
    const statement = Statement.translate(sql)
    this.#bySql.set(sql, statement)
    return statement
  }

  /** Returns the statement for SQL of PostgreSQL. */
  of(text: string): Statement {
    const existing = this.#byText.get(text)
    if (existing) return existing
    const statement = new Statement(text)
    this.#byText.set(text, statement)
    return statement
  }
}

export type GroupedStatement = { statement: Statement; params: unknown[] | undefined }
/** The rows of a statement, and how many rows it wrote. */
export type StatementResult = { rows: unknown[][]; written: number }

type ParseText = (text: string) => unknown
/** A prepared statement of a connection, and the parsers of its columns, once known. */
type Prepared = { name: string; parsers?: ParseText[] }
type PreparedStatements = {
  byStatement: Map<Statement, Prepared>
  /** Names that may still be in use after an error. */
  doubtful: string[]
  count: number
}
type FieldsMessage = { fields: { dataTypeID: number }[] }
type RowMessage = { fields: (string | null)[] }

const MAX_PREPARED_STATEMENTS = 200 // of a connection
const preparedByClient = new WeakMap<object, PreparedStatements>()

/**
 * Allows a connection with its own session to prepare statements. Behind a pooler, each transaction may get another session,
 * whose process ID differs from the announced one.
 */
export async function allowPreparedStatements(client: pg.ClientBase) {
  const { rows } = await client.query('select pg_backend_pid() as pid')
  const { processID } = client as unknown as { processID: number | null }
  if (rows[0]?.pid === processID) preparedByClient.set(client, { byStatement: new Map(), doubtful: [], count: 0 })
}

// PostgreSQL reads a GIN index only by bitmap scans, and a sequential scan would read the words of all tenants.
const SET_FOR_SEARCH = new Statement(
  "select set_config('enable_bitmapscan', $1, true), set_config('enable_seqscan', $2, true)",
)
const BEFORE_SEARCH: GroupedStatement = { statement: SET_FOR_SEARCH, params: ['on', 'off'] }
const AFTER_SEARCH: GroupedStatement = { statement: SET_FOR_SEARCH, params: ['off', 'on'] }

/**
 * Runs statements in one message. Outside of a transaction, they form one. The first error ends the group, and `results` has the
 * results before it.
 */
export async function runGroup(
  client: pg.ClientBase,
  statements: GroupedStatement[],
): Promise<{ results: StatementResult[]; error?: unknown }> {
  if (!statements.some(({ statement }) => statement.isSearch)) return sendGroup(client, statements)
  const sent = statements.flatMap((one) => (one.statement.isSearch ? [BEFORE_SEARCH, one, AFTER_SEARCH] : one))
  const { results, error } = await sendGroup(client, sent)
  return { results: results.filter((_, n) => sent[n]!.statement !== SET_FOR_SEARCH), error }
}

function sendGroup(client: pg.ClientBase, statements: GroupedStatement[]): ReturnType<typeof runGroup> {
  return new Promise((resolve) => {
    const group: StatementGroup = new StatementGroup(preparedByClient.get(client), statements, (error) =>
      resolve(error ? { results: group.results, error } : { results: group.results }),
    )
    client.query(group)
  })
}

/** Several statements before one Sync. */
class StatementGroup extends pg.Query {
  results: StatementResult[] = []
  #rows: unknown[][] = []
  #parsers: ParseText[] = []
  /** The prepared statement of each statement, if any. */
  #names: (Prepared | undefined)[] = []
  /** The statements that this group prepares. */
  #fresh = new Map<Statement, Prepared>()

  constructor(
    private known: PreparedStatements | undefined,
    private statements: GroupedStatement[],
    onEnd: (error?: Error) => void,
  ) {
    super({ text: '' }, onEnd)
  }

  override submit = (connection: pg.Connection) => {
    const { stream } = connection
    stream.cork()
    for (const name of this.known?.doubtful.splice(0) ?? []) send(connection, 'close', { type: 'S', name })
    for (const { statement, params = [] } of this.statements) {
      const prepared = this.known && this.#prepare(connection, this.known, statement)
      this.#names.push(prepared)
      if (!prepared) send(connection, 'parse', { text: statement.text })
      send(connection, 'bind', {
        statement: prepared?.name,
        values: statement.toParams(params),
        valueMapper: toWireValue,
      })
      if (!prepared?.parsers) send(connection, 'describe', { type: 'P' })
      send(connection, 'execute', {})
    }
    connection.sync()
    stream.uncork()
    return null
  }

  #prepare(connection: pg.Connection, known: PreparedStatements, statement: Statement): Prepared | undefined {
    const existing = known.byStatement.get(statement) ?? this.#fresh.get(statement)
    if (existing) return existing
    if (statement.uses++ === 0) return
    if (known.byStatement.size >= MAX_PREPARED_STATEMENTS) {
      const [oldest, { name }] = known.byStatement.entries().next().value!
      known.byStatement.delete(oldest)
      known.doubtful.push(name)
    }
    const prepared = { name: `s${++known.count}` }
    this.#fresh.set(statement, prepared)
    send(connection, 'parse', { text: statement.text, name: prepared.name })
    return prepared
  }

  handleRowDescription({ fields }: FieldsMessage) {
    this.#parsers = fields.map(({ dataTypeID }) => pg.types.getTypeParser(dataTypeID, 'text'))
  }

  handleDataRow({ fields }: RowMessage) {
    const parsers = this.#names[this.results.length]?.parsers ?? this.#parsers
    this.#rows.push(fields.map((text, n) => (text === null ? null : parsers[n]!(text))))
  }

  handleCommandComplete({ text }: { text: string }) {
    const prepared = this.#names[this.results.length]
    if (prepared) prepared.parsers ??= this.#parsers
    this.results.push({ rows: this.#rows, written: text.startsWith('SELECT') ? 0 : readCount(text) })
    this.#rows = []
    this.#parsers = []
  }

  handleReadyForQuery() {
    for (const [statement, prepared] of this.#fresh) this.#remember(this.known!, statement, prepared)
    ;(this as unknown as { callback(): void }).callback()
  }

  /** Another group may have prepared the same statement since this one was sent. */
  #remember({ byStatement, doubtful }: PreparedStatements, statement: Statement, prepared: Prepared) {
    if (byStatement.has(statement)) doubtful.push(prepared.name)
    else byStatement.set(statement, prepared)
  }

  handleError(error: Error) {
    for (const { name } of this.#fresh.values()) this.known!.doubtful.push(name)
    ;(this as unknown as { callback(error: Error): void }).callback(error)
  }
}

type Message = 'parse' | 'bind' | 'describe' | 'execute' | 'close'
/** The types of `pg` require a second parameter, which the methods lack. */
const send = (connection: pg.Connection, message: Message, config: object) =>
  (connection[message] as (config: object) => void).call(connection, config)

/** Returns the distinct values as an array literal of PostgreSQL. */
const toArray = (values: unknown[]) =>
  `{${[...new Set(values)].map((value) => `"${`${value}`.replaceAll(/["\\]/g, '\\$&')}"`)}}`

/** Returns the row count of a command tag, such as `INSERT 0 5`. */
const readCount = (text: string) => Number(text.slice(text.lastIndexOf(' ') + 1)) || 0

function toWireValue(value: unknown): unknown {
  if (typeof value === 'string' || value === null || value === undefined) return value
  return value instanceof Uint8Array ? Buffer.from(value.buffer, value.byteOffset, value.byteLength) : `${value}`
}
