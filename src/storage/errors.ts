import { ConfigError } from '../core/config-error'
import { Problem } from '../core/problem'

/** A key exists already (409). Verbs turn it into the code of their thing. */
export class Conflict extends Problem {
  constructor(cause?: unknown) {
    super(409, 'CONFLICT', 'Something with the same key exists already.', { cause })
  }
}

export class BrokenReference extends Problem {
  constructor(cause?: unknown) {
    super(409, 'BROKEN_REFERENCE', 'This refers to something that does not exist, or is still referred to.', { cause })
  }
}

/** Lock trouble, a full queue, or a write that ran too long (503, come again). */
export class Busy extends Problem {
  constructor(cause?: unknown) {
    const headers = { 'retry-after': '1' }
    super(503, 'BUSY', 'Too much is happening at once. Try again in a moment.', { cause, headers })
  }
}

/** The tenant is elsewhere now: who comes again is served there. */
export class Moved extends Busy {
  constructor(readonly home: string) {
    super('The tenant was moved.')
  }
}

/** The database gave up on a transaction that did no wrong, or is gone: done again, it may succeed. */
export class Interrupted extends Busy {}

/** The disk has no room for what was to be written (507). Reads go on. */
export class StorageFull extends Problem {
  constructor(cause?: unknown) {
    const headers = { 'retry-after': '30' }
    super(507, 'STORAGE_FULL', 'The server has no storage space left. Try again later.', { cause, headers })
  }
}

/** A bug of ours or a broken disk. */
export class StorageFault extends Error {
  constructor(cause: unknown, message = 'The database refused a statement.') {
    super(message, { cause })
  }
}

/** Reading or writing a file failed. The database is opened anew, because what it has in memory can't be relied on. */
export class DiskFault extends StorageFault {
  constructor(cause: unknown) {
    super(cause, 'The disk failed.')
  }
}

/** The data at a place is missing, malformed or not this tenant's. The message says which. */
export class Damaged extends StorageFault {
  constructor(cause: unknown, message = 'The database file is malformed.') {
    super(cause, message)
  }
}

const kinds: Record<string, new (cause: unknown) => Error> = {
  SQLITE_CONSTRAINT_UNIQUE: Conflict,
  SQLITE_CONSTRAINT_PRIMARYKEY: Conflict,
  SQLITE_CONSTRAINT_FOREIGNKEY: BrokenReference,
  SQLITE_BUSY: Busy,
  SQLITE_BUSY_RECOVERY: Busy,
  SQLITE_BUSY_SNAPSHOT: Busy,
  SQLITE_BUSY_TIMEOUT: Busy,
  SQLITE_LOCKED: Busy,
  SQLITE_FULL: StorageFull,
  ENOSPC: StorageFull,
  EDQUOT: StorageFull,
  EMFILE: Busy,
  ENFILE: Busy,
  EIO: DiskFault,
  SQLITE_NOTADB: Damaged,
  SQLITE_READONLY_DBMOVED: Damaged,
  '23505': Conflict, // unique_violation
  '23503': BrokenReference, // foreign_key_violation
  '40001': Interrupted, // serialization_failure
  '40P01': Interrupted, // deadlock_detected
  '53100': StorageFull, // disk_full
  XX001: Damaged, // data_corrupted
  XX002: Damaged, // index_corrupted
  '53300': Busy, // too_many_connections
  '55P03': Busy, // lock_not_available
  '57014': Busy, // query_canceled, by statement_timeout
  '25P03': Interrupted, // idle_in_transaction_session_timeout
  '57P01': Interrupted, // admin_shutdown
  '57P02': Interrupted, // crash_shutdown
  '57P03': Interrupted, // cannot_connect_now
  '08P01': Interrupted, // protocol_violation, as poolers call a server that went away
  ECONNRESET: Interrupted,
  EPIPE: Interrupted,
}

// What `pg` says of a connection that ended has no code.
const GONE = /^(Connection terminated|Client has encountered a connection error|Query read timeout)/
// A protocol violation, too, but our own.
const MISCOUNTED = /^bind message supplies \d+ parameters/

/** The engines' errors in our own words. */
export function storageError(error: unknown): Error {
  if (error instanceof Problem || error instanceof ConfigError || error instanceof StorageFault) return error
  const { code = '', message = '' } = error as { code?: string; message?: string }
  if (MISCOUNTED.test(message)) return new StorageFault(error)
  if (code.startsWith('SQLITE_CORRUPT')) return new Damaged(error)
  if (code.startsWith('SQLITE_IOERR')) return new DiskFault(error)
  return new (kinds[code] ?? (GONE.test(message) ? Interrupted : StorageFault))(error)
}

const ATTEMPTS = 5
const PAUSE = 100 // ms

/** Does work that the database was too busy for up to five times. It must do no harm twice. */
export async function again<T>(work: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++)
    try {
      return await work()
    } catch (error) {
      if (!(error instanceof Busy) || error instanceof Moved || attempt === ATTEMPTS) throw error
      await Bun.sleep(attempt * PAUSE)
    }
}
