import type { SqliteRemoteDatabase } from 'drizzle-orm/sqlite-proxy'
import { Problem } from '../core/problem'
import type { TableSchema } from './schema-catalog'

/** Runs one statement and returns its rows as arrays. @throws one of the errors of errors.ts */
export type RunQuery = (sql: string, params?: unknown[]) => Promise<unknown[][]>

/**
 * Runs one statement at once and returns its rows, or undefined where only `RunQuery` can: when the database is not open,
 * a trace records its statements, or the statement fails.
 */
export type RunQueryAtOnce = (sql: string, params: unknown[]) => unknown[][] | undefined

/** Runs one statement for many rows of values, in the way that is best for the engine, and returns its rows in any order. */
export type ExecuteMany = (sql: string, rows: unknown[][]) => Promise<unknown[][]>

/**
 * What the work of a transaction may run. Where it `isRemote`, statements that begin before earlier ones are answered save
 * round trips, and none of them runs once one has failed.
 */
export type Executor = { query: RunQuery; executeMany: ExecuteMany; isRemote?: boolean }

/** Writes all deferred values of a transaction: the latest value of each key. It may run beside those of other kinds. */
export type DeferredWrite<Key = unknown, Value = unknown> = (
  executor: Executor,
  entries: [Key, Value][],
) => Promise<unknown>

/**
 * Defers a write to the end of the transaction, which other work may share. It is for writes that are expensive one by
 * one, and that are read meanwhile only by `exclusive` work.
 */
export type Defer = <Key, Value>(write: DeferredWrite<Key, Value>, key: Key, value: Value) => void

/**
 * `exclusive`: no other work runs before it in its transaction. `background`: a piece of long work, which has a
 * transaction of its own and leaves most of the time to others as long as they write. `onWritten` is called with how long
 * (ms) that transaction held the writer, and `onThreadHeld` with how long it kept the thread from everything else.
 */
export type WriteOptions = {
  exclusive?: boolean
  background?: boolean
  onWritten?: (ms: number) => void
  onThreadHeld?: (ms: number) => void
  joint?: JointWork
}

/**
 * How work is done together with other work of its kind that waits at the same time, in fewer statements. `run` gets the
 * inputs of all and returns their results in order. When it fails, or returns undefined, each is done on its own.
 */
export type JointWork<Input = unknown, Writer = Tx> = {
  kind: string
  input: Input
  run(writer: Writer, inputs: Input[]): Promise<unknown[] | undefined>
}

/**
 * Reads. Every statement sees the last committed state, never a running write; commits of other processes are seen
 * after one turn of the event loop at the latest. `query` takes SQL, for statements that are composed at run time or
 * run at every request. It must stay within what the engines share: `?` for values (texts, finite numbers, bytes,
 * null), double quotes for names, NULLS LAST where order meets NULL, comparisons only as conditions, and nothing that
 * folds letters (`like`, `lower`, `upper`).
 */
export type Db = Pick<SqliteRemoteDatabase, 'select' | 'selectDistinct' | '$count'> & {
  query: RunQuery
  /** For statements of one row that run at every request, where the engine can. */
  queryAtOnce?: RunQueryAtOnce
  /** Returns a number that stays the same as long as `queryAtOnce` reads the same state; undefined where it cannot. */
  getSnapshot?: () => number | undefined
  vectorSearch: VectorSearch
  wordIndex: WordIndex
  /** Lets other requests run between two pieces of work that take a few ms each. */
  yieldToOthers(): Promise<void>
  /** Does a piece of costly work of a few ms in this thread, when it is its turn. */
  runInTurn?: <T>(work: () => T) => Promise<T>
  /** The database of a view that reads it in another way. Caches belong to the origin. */
  origin?: Db
  /** Whether nothing of what is read by this view is cached. */
  isUncached?: boolean
  /** Returns a number that changes with every commit; only threads that write nothing know it. */
  commitVersion?: () => number
}

/** How vectors are compared: in JavaScript, or by functions of an extension of the database. */
export type VectorSearch = 'javascript' | 'sqlite-vec'

/**
 * How words are found: by FTS5, which has the entities of a word in their order, and whose words `search_vocabulary` lists;
 * or by a GIN index, which has neither.
 */
export type WordIndex = 'fts5' | 'gin'

/** Reads and writes of one unit of work. It is valid only during that work. */
export type Tx = Db &
  Pick<SqliteRemoteDatabase, 'insert' | 'update' | 'delete'> & {
    executeMany: ExecuteMany
    defer: Defer
    afterCommit: AfterCommit
    onVisible: OnVisible
  }

/**
 * Registers an action that runs with the reads of the database after this work is committed, and never when it fails.
 * It must not throw.
 */
export type AfterCommit = (act: (db: Db) => void) => void

/**
 * Registers an action that runs as soon as readers see this work, and never when it fails. That is before the commit is
 * durable and acknowledged. It must not throw.
 */
export type OnVisible = AfterCommit

/** What areas see of a database. Work is atomic, the only writer of its tenant, and awaits nothing but `tx`. */
export interface Store {
  db: Db
  /**
   * Returns a number that differs from an earlier one when another process may have changed the data, so that caches
   * are outdated.
   */
  remoteVersion(): number
  write<T>(work: (tx: Tx) => Promise<T>, manner?: WriteOptions): Promise<T>
}

/** Where a database is stored. Each engine reads the fields that it understands. */
export type DatabaseLocation = {
  tenant: string
  file: string
  /** Distinguishes a tenant's data from that of an earlier tenant of the same name. */
  identity?: string
  /** Whether its data must exist already: then nothing is created in place of missing data. */
  exists?: boolean
  /** Whether it stays open, and does not count towards the limit of open databases. */
  pinned?: boolean
  /** For engines that store many tenants together: the cluster, and the schema whose tables the tenant shares. */
  cluster?: string
  bucket?: string
}

/**
 * All migrations in order, which never change: a database's version is how many of them it has run. `rewriting` has the
 * numbers of those that rewrite data, before which a file is copied. `withoutAlterColumn` has what an SQLite that cannot
 * alter a column, such as that of macOS, runs in the place of a migration.
 */
export type Migrations = {
  sqlite: string[]
  postgres: string[]
  rewriting?: number[]
  withoutAlterColumn?: ReadonlyMap<string, string>
}

/** What a new engine must implement. Write queues, savepoints and deadlines are common to all engines. */
export interface Engine {
  open(place: DatabaseLocation, migrations: Migrations): Promise<Database>
  /** Opens all data of a tenant, whether it is served there or not; with empty tables when there is none yet. */
  openTenantCopy(place: DatabaseLocation, migrations: Migrations): Promise<TenantCopyConnection>
  /** Counts the changes by other processes, for engines that are notified of them. */
  remoteVersion?(place: DatabaseLocation): number
  /** Stops serving a tenant's data, which is kept. For engines whose data is not a file that can be moved away. */
  retire?(place: DatabaseLocation, migrations: Migrations): Promise<void>
  /** Returns the schema version of existing data, without bringing them up to date. */
  readSchemaVersion(place: DatabaseLocation): Promise<number>
  /** How vectors can be compared there (default: `javascript`). */
  vectorSearch?(place: DatabaseLocation): VectorSearch
  /** How words are found there (default: `gin`). */
  wordIndex?(place: DatabaseLocation): WordIndex
  close(): Promise<void>
}

export interface Database {
  /** Reads only. Values that must be consistent have to be read by one statement. */
  query: RunQuery
  /** The same without a promise, for engines that read in the process itself. @throws one of the errors of errors.ts */
  queryAtOnce?: (sql: string, params: unknown[]) => unknown[][]
  /** Returns the number of the snapshot that `queryAtOnce` reads now. */
  getSnapshot?: () => number
  /**
   * Runs the work as the only writer of the tenant, then commits; or rolls back and throws. An engine that is
   * interrupted runs the work again from its beginning. The next transaction may begin at once, but this one must not
   * be acknowledged before `kept` resolves: until then it may be in memory only. `onVisible` is called when `query`
   * sees the commit.
   */
  transaction(work: (executor: Executor) => Promise<void>, onVisible?: () => void): Promise<{ kept?: Promise<void> }>
  /** Tells whether the database can no longer be trusted, and has to be reopened. */
  isBroken?(): boolean
  /** Releases memory that only speeds up further requests. Called when the database is idle. */
  releaseMemory?(): void
  close(): Promise<void>
}

/** A tenant's data on a connection of its own, for copying all of it. */
export interface TenantCopyConnection {
  tables: TableSchema[]
  /**
   * Captures changes for a minute: the keys of all rows that others write or delete are noted, in the order of their
   * commits, in the table `changed_rows (number, name, key)`. A key is a JSON list, its integers as texts. Call it
   * again within that minute, until `close`.
   * @throws 503 BUSY when that was too late, as `runExclusive` does then: some changes may not have been noted
   */
  captureChanges(): Promise<void>
  /** Runs work on one consistent state, while others write. */
  readSnapshot<T>(work: (state: { query: RunQuery }) => Promise<T>): Promise<T>
  /** Runs atomic work while no other writer does: a writer that waits longer than a write may take gets 503 BUSY. */
  runExclusive<T>(work: (state: ExclusiveAccess) => Promise<T>): Promise<T>
  /** Completes a copy with what is not in its rows: new rows get unused numbers, and derived data is built again. */
  finish(): Promise<void>
  close(): Promise<void>
}

export type ExclusiveAccess = Executor & {
  /** From the end of the work on, the tenant is not served from here. Its new home is noted, where it is known. */
  markMoved(home?: string): Promise<void>
  /** From the end of the work on, the tenant may be served from here. */
  markServing(): Promise<void>
}

/**
 * A name that no other process can claim until this is disposed of, or this process ends. `assertHeld` throws once the
 * claim is lost.
 */
export type NameClaim = AsyncDisposable & { assertHeld(): Promise<void> }

/**
 * Returns the migrations that a database of this version has not run.
 * @throws 500 DATABASE_TOO_NEW for a newer version
 */
export function listPendingMigrations(version: number, migrations: string[]): string[] {
  if (version > migrations.length)
    throw new Problem(
      500,
      'DATABASE_TOO_NEW',
      `Database schema ${version} is newer than this release supports (${migrations.length}). Upgrade Atoll.`,
    )
  return migrations.slice(version)
}
