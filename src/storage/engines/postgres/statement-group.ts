import pg from 'pg'

import { BoundedMap } from '../../../core/bounded-map'
import { toPostgres } from './dialect'

// Lists of values and counts have plans that depend on the values, but not arrays, whose length is unknown to a plan.
const VALUE_DEPENDENT = /\bin \(|\bany \((?!\(select \$)|\bcount\(|\bjson|^\s*explain/i

/** A statement of a bucket, which a connection prepares when it is used for the second time. */
export class Statement {
  uses = 0
  /** Whether it reads rows by an index in the same way, whatever the values are. */
  readonly isPlain: boolean
  /** Whether it finds words by their index. */
  readonly isSearch: boolean

  /** @param listSizes how many of the parameters are each of its own, where some of its own are arrays */
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

  /** Returns the parameters of PostgreSQL's statement. */
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

/** The statements of a bucket. Those of another one have other plans, because they are about other tables. */
export class Statements {
  #bySql = new BoundedMap<string, Statement>(MAX_STATEMENTS)
  #byText = new BoundedMap<string, Statement>(MAX_STATEMENTS)

  /** Returns a statement of the engines' common dialect. */
  translate(sql: string): Statement {
    const existing = this.#bySql.get(sql)
    if (existing) return existing
    const statement = Statement.translate(sql)
    this.#bySql.set(sql, statement)
    return statement
  }

  /** Returns a statement of PostgreSQL. */
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
/** A statement that a connection knows by a name, and how the texts of its columns are parsed, once that is known. */
type Prepared = { name: string; parsers?: ParseText[] }
type PreparedStatements = {
  byStatement: Map<Statement, Prepared>
  /** Names of which nobody knows whether they are in use, after an error. */
  doubtful: string[]
  count: number
}
type FieldsMessage = { fields: { dataTypeID: number }[] }
type RowMessage = { fields: (string | null)[] }

const MAX_PREPARED_STATEMENTS = 200 // of a connection
const preparedByClient = new WeakMap<object, PreparedStatements>()

/**
 * Lets a connection prepare statements, if it has a session of its own. Behind a pooler, each transaction may get another
 * session, and none is the one that was announced.
 */
export async function allowPreparedStatements(client: pg.ClientBase) {
  const { rows } = await client.query('select pg_backend_pid() as pid')
  const { processID } = client as unknown as { processID: number | null }
  if (rows[0]?.pid === processID) preparedByClient.set(client, { byStatement: new Map(), doubtful: [], count: 0 })
}

// A GIN index is only read by a bitmap scan, and the view has the words of all tenants of the bucket.
const SET_FOR_SEARCH = new Statement(
  "select set_config('enable_bitmapscan', $1, true), set_config('enable_seqscan', $2, true)",
)
const BEFORE_SEARCH: GroupedStatement = { statement: SET_FOR_SEARCH, params: ['on', 'off'] }
const AFTER_SEARCH: GroupedStatement = { statement: SET_FOR_SEARCH, params: ['off', 'on'] }

/**
 * Runs statements that are sent in one piece. Outside of a transaction, they are one. After one that fails, no other runs:
 * `results` has those before it.
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

/** Several statements before one Sync, which PostgreSQL answers in one piece. */
class StatementGroup extends pg.Query {
  results: StatementResult[] = []
  #rows: unknown[][] = []
  #parsers: ParseText[] = []
  /** What the connection knows each statement by. */
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
/** The types of a connection want a second parameter, which it does not have. */
const send = (connection: pg.Connection, message: Message, config: object) =>
  (connection[message] as (config: object) => void).call(connection, config)

/** Returns different texts or numbers as PostgreSQL writes an array. */
const toArray = (values: unknown[]) =>
  `{${[...new Set(values)].map((value) => `"${`${value}`.replaceAll(/["\\]/g, '\\$&')}"`)}}`

/** Returns the number at the end of what a command did, such as `INSERT 0 5`. */
const readCount = (text: string) => Number(text.slice(text.lastIndexOf(' ') + 1)) || 0

function toWireValue(value: unknown): unknown {
  if (typeof value === 'string' || value === null || value === undefined) return value
  return value instanceof Uint8Array ? Buffer.from(value.buffer, value.byteOffset, value.byteLength) : `${value}`
}
