import { drizzle } from 'drizzle-orm/sqlite-proxy'
import { yieldToEventLoop } from '../core/event-loop'
import { logError } from '../core/log'
import { Problem } from '../core/problem'
import { DatabaseSlots } from './database-slots'
import { GroupCommitWriter } from './group-commit'
import type {
  AfterCommit,
  Database,
  DatabaseLocation,
  Db,
  Defer,
  Engine,
  Executor,
  Migrations,
  RunQuery,
  Store,
  Tx,
  WriteOptions,
} from './port'

type OpenDatabase = { database: Database; writer: GroupCommitWriter }
type PoolEntry = {
  key: string
  /** It neither counts nor is closed for others. */
  pinned: boolean
  /** Whether it is among those of which only so many may be open. */
  hasSlot: boolean
  ready: Promise<OpenDatabase>
  opened?: OpenDatabase
  users: number
  /** When it was used last, among all uses. */
  lastUse: number
  /** The last use at the last look, and at its rest. */
  useAtCheck?: number
  useAtRelease?: number
  /** To be called when the last user has gone. */
  onIdle?: () => void
}

type TranslateError = (error: unknown) => Promise<unknown>
const keepError: TranslateError = async (error) => error

const IDLE_CHECK_INTERVAL_MS = 10_000 // ms without a use

/**
 * Databases are opened when they are asked something. What nobody asks gives back its memory, and where too many are open,
 * the least recently used are closed.
 */
export class DatabasePool {
  #entries = new Map<string, PoolEntry>()
  #uses = 0
  #closing = new Set<Promise<void>>()
  #slots: DatabaseSlots
  #idleTimer?: ReturnType<typeof setInterval>

  constructor(
    private engine: Engine,
    private limits: { openCount: number; deadline: number },
  ) {
    this.#slots = new DatabaseSlots(limits.openCount, limits.deadline)
  }

  /**
   * Costs nothing until it is asked something, and stays good after its database was closed. What is thrown then passes
   * through `told`, who may know more about it.
   */
  getStore(place: DatabaseLocation, migrations: Migrations, translate: TranslateError = keepError): Store {
    const key = toPoolKey(place)
    const use = <T>(work: (opened: OpenDatabase) => Promise<T>) =>
      this.#use(this.#entries.get(key) ?? this.#addEntry(key, place, migrations), translate, work)
    const query: RunQuery = (sql, params) => use(({ database }) => database.query(sql, params))
    const read: Db = { ...createDb(query), vectorSearch: this.engine.vectorSearch?.(place) ?? 'javascript' }
    return {
      db: read,
      remoteVersion: () => this.engine.remoteVersion?.(place) ?? 0,
      write: (work, manner) => use(({ writer }) => runWrite(writer, read, work, manner)),
    }
  }

  /** How many databases are open now, apart from pinned ones. */
  get openCount() {
    return this.#entries.values().reduce((count, { pinned }) => (pinned ? count : count + 1), 0)
  }

  isOpen(place: DatabaseLocation): boolean {
    return !!this.#entries.get(toPoolKey(place))?.opened
  }

  /** Closes a database as soon as nobody uses it; who asks again opens whatever is at its place then. */
  async release(place: DatabaseLocation) {
    const lease = this.#entries.get(toPoolKey(place))
    if (!lease) return
    const closing = this.#closeEntry(lease)
    if (lease.users) closing.catch(logCloseFailure)
    else await closing
  }

  /** All that is there, for copying it. It is closed by whoever asked for it. */
  openTenantCopy(place: DatabaseLocation, migrations: Migrations) {
    return this.engine.openTenantCopy(place, migrations)
  }

  /** Serves what is there no more; nothing of it is removed. */
  async retire(place: DatabaseLocation, migrations: Migrations) {
    await this.engine.retire?.(place, migrations)
    await this.release(place)
  }

  /** What was not used since the last look gives back its memory, once. */
  releaseIdleMemory() {
    for (const lease of this.#entries.values()) {
      if (lease.users || lease.useAtRelease === lease.lastUse) continue
      if (lease.useAtCheck === lease.lastUse) {
        lease.opened?.database.releaseMemory?.()
        lease.useAtRelease = lease.lastUse
      }
      lease.useAtCheck = lease.lastUse
    }
  }

  /** Closes everything, what is in use as soon as it isn't any more. */
  async close() {
    clearInterval(this.#idleTimer)
    for (const lease of this.#entries.values()) this.#closeEntry(lease).catch(logCloseFailure)
    while (this.#closing.size) {
      await Promise.allSettled(this.#closing)
      await Bun.sleep(1)
    }
    await this.engine.close()
  }

  /** What is in use is never closed. */
  async #use<T>(lease: PoolEntry, translate: TranslateError, work: (opened: OpenDatabase) => Promise<T>) {
    lease.users++
    lease.lastUse = ++this.#uses
    try {
      return await work(lease.opened ?? (await lease.ready))
    } catch (error) {
      if (lease.opened?.database.isBroken?.()) this.#reopen(lease)
      throw await translate(error)
    } finally {
      lease.users--
      if (!lease.users) lease.onIdle?.()
      if (this.#entries.size > this.limits.openCount) this.#closeLeastUsed()
    }
  }

  /** Who asks next opens it anew. */
  #reopen(lease: PoolEntry) {
    if (this.#entries.get(lease.key) === lease) this.#closeEntry(lease).catch(logCloseFailure)
  }

  #addEntry(key: string, place: DatabaseLocation, migrations: Migrations): PoolEntry {
    const { pinned = false } = place
    const lease: PoolEntry = {
      key,
      pinned,
      hasSlot: needsSlot(place),
      ready: this.#openDatabase(place, migrations),
      users: 0,
      lastUse: 0,
    }
    lease.ready.then(
      (opened) => Object.assign(lease, { opened }),
      () => {
        if (this.#entries.get(key) === lease) this.#entries.delete(key)
      },
    )
    this.#entries.set(key, lease)
    if (this.#entries.size > this.limits.openCount) this.#closeLeastUsed()
    this.#idleTimer ??= setInterval(() => this.releaseIdleMemory(), IDLE_CHECK_INTERVAL_MS).unref()
    return lease
  }

  /** Nobody gets this lease any more; whoever has it may end what they do. */
  #closeEntry(lease: PoolEntry): Promise<void> {
    this.#entries.delete(lease.key)
    const retiring = (async () => {
      if (lease.users)
        await new Promise<void>((resolve) => {
          lease.onIdle = resolve
        })
      const { database } = lease.opened ?? (await lease.ready)
      await database.close().finally(() => lease.hasSlot && this.#slots.release())
    })()
    this.#closing.add(retiring)
    return retiring.finally(() => this.#closing.delete(retiring))
  }

  async #openDatabase(place: DatabaseLocation, migrations: Migrations): Promise<OpenDatabase> {
    if (needsSlot(place)) await this.#slots.acquire()
    try {
      const database = await this.engine.open(place, migrations)
      return { database, writer: new GroupCommitWriter(database.transaction, this.limits.deadline) }
    } catch (error) {
      if (needsSlot(place)) this.#slots.release()
      throw error
    }
  }

  #closeLeastUsed() {
    const leases = [...this.#entries.values()].filter(({ pinned }) => !pinned)
    const idle = leases
      .filter(({ users, opened }) => opened && !users)
      .sort((one, other) => one.lastUse - other.lastUse)
    for (const lease of idle.slice(0, Math.max(0, leases.length - this.limits.openCount)))
      this.#closeEntry(lease).catch(logCloseFailure)
  }
}

/** Files are bounded by descriptors; what a PostgreSQL keeps shares its few connections. */
const needsSlot = ({ pinned, cluster }: DatabaseLocation) => !pinned && !cluster

const toPoolKey = ({ file, identity, cluster, bucket }: DatabaseLocation) => `${file} ${identity} ${cluster} ${bucket}`
const logCloseFailure = (error: unknown) => logError('DATABASE_NOT_CLOSED', { cause: error })

async function runWrite<T>(
  writer: GroupCommitWriter,
  read: Db,
  work: (tx: Tx) => Promise<T>,
  options?: WriteOptions,
): Promise<T> {
  let actions: ((db: Db) => void)[] = []
  const result = await writer.write((executor) => {
    // The engine may begin anew, and then so does this.
    actions = []
    return work(createDb(executor.query, { ...executor, afterCommit: (act) => void actions.push(act) }))
  }, options)
  for (const act of actions) act(read)
  return result
}

type WriteAccess = Pick<Executor, 'executeMany'> & { defer: Defer; afterCommit: AfterCommit }

function throwReadOnly(): never {
  throw new Error('Writes need a transaction.')
}
const READ_ONLY: WriteAccess = {
  executeMany: async () => throwReadOnly(),
  defer: throwReadOnly,
  afterCommit: throwReadOnly,
}

/** Drizzle over `query`, made when it is first needed: most frequent statements only need `query`. */
function createDb(query: RunQuery, { executeMany, defer, afterCommit }: WriteAccess = READ_ONLY): Tx {
  let instance: ReturnType<typeof createOrm> | undefined
  const getOrm = () => {
    instance ??= createOrm(query)
    return instance
  }
  return {
    query: (sql, params) => (params?.some(hasNul) ? Promise.reject(nulProblem()) : query(sql, params)),
    executeMany: (sql, rows) =>
      rows.some((row) => row.some(hasNul)) ? Promise.reject(nulProblem()) : executeMany(sql, rows),
    defer,
    afterCommit,
    vectorSearch: 'javascript',
    yieldToOthers: yieldToEventLoop,
    select: ((fields: never) => getOrm().select(fields)) as unknown as Tx['select'],
    selectDistinct: ((fields: never) => getOrm().selectDistinct(fields)) as unknown as Tx['selectDistinct'],
    $count: (...of) => getOrm().$count(...of),
    insert: (table) => getOrm().insert(table),
    update: (table) => getOrm().update(table),
    delete: (table) => getOrm().delete(table),
  }
}

/** Builds statements, and asks none. */
export const statementBuilder: Tx = createDb(() =>
  Promise.reject(new Error('The statement builder cannot run statements.')),
)

const createOrm = (query: RunQuery) =>
  drizzle(async (sql, params, method) => {
    if (params.some(hasNul)) throw nulProblem()
    const rows = await query(sql, params)
    return { rows: method === 'get' ? rows[0]! : rows }
  })

// PostgreSQL cannot keep it, so no engine does.
const hasNul = (value: unknown) => typeof value === 'string' && value.includes('\0')
const nulProblem = () => {
  const message = 'Text must not contain the character U+0000.'
  return new Problem(400, 'INVALID_INPUT', message, { details: [{ path: '', message }] })
}

/** Statements that are asked often are built once for each store. */
export function prepareOncePerDb<Statements>(prepare: (db: Db) => Statements) {
  const statementsByDb = new WeakMap<Db, Statements>()
  return (reader: Db): Statements => {
    const db = reader.origin ?? reader
    const statements = statementsByDb.get(db) ?? prepare(db)
    statementsByDb.set(db, statements)
    return statements
  }
}
