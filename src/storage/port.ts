import type { SqliteRemoteDatabase } from 'drizzle-orm/sqlite-proxy'
import { Problem } from '../core/problem'
import type { TableSchema } from './schema-catalog'

/** One statement in, rows as arrays out, errors in our own words. */
export type RunQuery = (sql: string, params?: unknown[]) => Promise<unknown[][]>

/** The same statement for many rows of values, which each engine asks in the way that is best for it. It answers nothing. */
export type ExecuteMany = (sql: string, rows: unknown[][]) => Promise<void>

/** What the work of a transaction asks. */
export type Executor = { query: RunQuery; executeMany: ExecuteMany }

/** Writes all that was put off in a transaction: the latest value of each key. */
export type DeferredWrite<Key = unknown, Value = unknown> = (asking: Executor, entries: [Key, Value][]) => Promise<void>

/**
 * Puts a write off to the end of the transaction, which other work may share: for what is dearer one by one, and read by
 * nobody in between but by work that is `alone`.
 */
export type Defer = <Key, Value>(write: DeferredWrite<Key, Value>, key: Key, value: Value) => void

/** `alone`: with no other work before it in its transaction. */
export type WriteOptions = { exclusive?: boolean }

/**
 * Reads: every statement sees the last committed state, never a running write; what another process commits, a turn of
 * the event loop later at most.
 * `ask` takes SQL as text, for statements that are composed at run time or asked at every request; it stays within
 * what the engines share: `?` for values (texts, finite numbers, bytes, null), double quotes for names, NULLS LAST where
 * order meets NULL, comparisons only as conditions, and nothing that folds letters (`like`, `lower`, `upper`).
 */
export type Db = Pick<SqliteRemoteDatabase, 'select' | 'selectDistinct' | '$count'> & {
  query: RunQuery
  vectorSearch: VectorSearch
  /** Lets others have their turn, between two pieces of work that take some ms each. */
  yieldToOthers(): Promise<void>
  /** The database that this one reads, where it only differs in how: what is kept in memory is kept by that. */
  origin?: Db
}

/** By what vectors are compared: by who asks, or by functions of an extension that the database was given. */
export type VectorSearch = 'javascript' | 'sqlite-vec'

/** Reads and writes of one unit of work, good only for as long as the work it was handed to. */
export type Tx = Db &
  Pick<SqliteRemoteDatabase, 'insert' | 'update' | 'delete'> & {
    executeMany: ExecuteMany
    defer: Defer
    afterCommit: AfterCommit
  }

/** Has something done once this work is kept, and never when it isn't, by who reads the same database. It must not throw. */
export type AfterCommit = (act: (db: Db) => void) => void

/** What features see of a database. Work is all or nothing, alone in its tenant, and awaits nothing but `tx`. */
export interface Store {
  db: Db
  /** Another number than before: another process has changed something that is kept in memory. */
  remoteVersion(): number
  write<T>(work: (tx: Tx) => Promise<T>, manner?: WriteOptions): Promise<T>
}

/** Where a database lives: each engine reads the part it understands. */
export type DatabaseLocation = {
  tenant: string
  file: string
  /** Tells a tenant's data from that of an earlier tenant of the same name. */
  identity?: string
  /** Whether its data was made before: nothing is made in the place of what is missing then. */
  exists?: boolean
  /** Whether it stays open, beside those that may be open at once. */
  pinned?: boolean
  /** Where engines that keep many tenants together have it: on which servers, and the schema whose tables it shares. */
  cluster?: string
  bucket?: string
}

/** In order, forever: a database's version is how many of these it has run. */
export type Migrations = { sqlite: string[]; postgres: string[] }

/** All that a new engine has to bring; leases, queues, savepoints and deadlines are the same for every one. */
export interface Engine {
  open(place: DatabaseLocation, migrations: Migrations): Promise<Database>
  /** A tenant's data as a whole, whether it is served there or not; with empty tables where there is none yet. */
  openTenantCopy(place: DatabaseLocation, migrations: Migrations): Promise<TenantCopyConnection>
  /** How often another process told of a change there, for engines that hear of it. */
  remoteVersion?(place: DatabaseLocation): number
  /** Serves a tenant's data no more. It is kept. For engines whose data is not a file that can be moved away. */
  retire?(place: DatabaseLocation, migrations: Migrations): Promise<void>
  /** By what vectors can be compared there; by who asks, unless told. */
  vectorSearch?(place: DatabaseLocation): VectorSearch
  close(): Promise<void>
}

export interface Database {
  /** Reads only. What must agree among several statements is one statement. */
  query: RunQuery
  /**
   * Runs the work as the only writer of the tenant, then commits; or rolls back and throws. Where the engine is
   * interrupted it runs the work again from its beginning. The next transaction may
   * begin at once, but nobody is told of this one until it is `kept`: before that, only memory may have it.
   */
  transaction(work: (asking: Executor) => Promise<void>): Promise<{ kept?: Promise<void> }>
  /** Whether it can't be relied on any more, and has to be opened anew. */
  isBroken?(): boolean
  /** Gives back memory that only serves those who ask again soon; when nobody asks anything. */
  releaseMemory?(): void
  close(): Promise<void>
}

/** A tenant's data on a connection of its own, for those who copy all of it. */
export interface TenantCopyConnection {
  tables: TableSchema[]
  /**
   * From now on and for a minute, the keys of all rows that others write or remove are noted, in the order of their
   * commits, in the table `changed_rows (number, name, key)`: a key is a list as JSON, its integers as texts. To be
   * asked again within that minute, and until `close`.
   * @throws 503 when that was too late, as does `alone` then: some changes may be noted nowhere
   */
  captureChanges(): Promise<void>
  /** Work on one state of it while others write. */
  readSnapshot<T>(work: (state: { query: RunQuery }) => Promise<T>): Promise<T>
  /**
   * Work while nobody else writes: who waits for longer than a write may run is told to come back. All of it or nothing
   * is kept.
   */
  runExclusive<T>(work: (state: ExclusiveAccess) => Promise<T>): Promise<T>
  /** Sees to what is not in the rows: that new ones get numbers which none has yet, and what is derived is made anew. */
  finish(): Promise<void>
  close(): Promise<void>
}

export type ExclusiveAccess = Executor & {
  /** With the end of this, nobody is served from here any more, but sent to the new home, where it is known. */
  markMoved(home?: string): Promise<void>
  /** With the end of this, it may be served from here. */
  markServing(): Promise<void>
}

/** A name that nobody else can claim until this is disposed of, or this process ends. `require` throws once it is lost. */
export type NameClaim = AsyncDisposable & { assertHeld(): Promise<void> }

/** The migrations that a database of this version has not run. */
export function listPendingMigrations(version: number, migrations: string[]): string[] {
  if (version > migrations.length)
    throw new Problem(
      500,
      'DATABASE_TOO_NEW',
      `Database schema ${version} is newer than this release supports (${migrations.length}). Upgrade Atoll.`,
    )
  return migrations.slice(version)
}
