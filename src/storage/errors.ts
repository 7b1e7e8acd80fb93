import { Busy } from '../core/busy'
import { ConfigError } from '../core/config-error'
import { Problem } from '../core/problem'

/** 409 CONFLICT: the key exists already. Operations replace it with the code of their resource. */
export class Conflict extends Problem {
  constructor(cause?: unknown) {
    super(409, 'CONFLICT', 'Something with the same key already exists.', { cause })
  }
}

export class BrokenReference extends Problem {
  constructor(cause?: unknown) {
    super(409, 'BROKEN_REFERENCE', 'A referenced resource does not exist, or this resource is still referenced.', {
      cause,
    })
  }
}

export { Busy }

/** 503 BUSY: the tenant was moved. The next request is served by its new home. */
export class TenantMoved extends Busy {
  constructor(readonly home: string) {
    super('The tenant was moved.')
  }
}

/** 503 BUSY: the database aborted a valid transaction, or the connection was lost. A repetition may succeed. */
export class TransactionAborted extends Busy {}

/** 507 STORAGE_FULL: the disk has no space for a write. Reads still work. */
export class StorageFull extends Problem {
  constructor(cause?: unknown) {
    const headers = { 'retry-after': '30' }
    super(507, 'STORAGE_FULL', 'The server has no storage space left. Try again later.', { cause, headers })
  }
}

/** A statement failed because of a bug of ours or a broken disk (500). */
export class StorageFault extends Error {
  constructor(cause: unknown, message = 'The database rejected a statement.') {
    super(message, { cause })
  }
}

/** Reading or writing a file failed. The database is reopened, because its pages in memory cannot be trusted. */
export class DiskFailure extends StorageFault {
  constructor(cause: unknown) {
    super(cause, 'The disk failed.')
  }
}

/** The data of a tenant is missing, malformed or another tenant's. The message says which. */
export class DatabaseDamaged extends StorageFault {
  constructor(cause: unknown, message = 'The database file is malformed.') {
    super(cause, message)
  }
}

const ERROR_BY_CODE: Record<string, new (cause: unknown) => Error> = {
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
  EIO: DiskFailure,
  SQLITE_NOTADB: DatabaseDamaged,
  SQLITE_READONLY_DBMOVED: DatabaseDamaged,
  '23505': Conflict, // unique_violation
  '23503': BrokenReference, // foreign_key_violation
  '40001': TransactionAborted, // serialization_failure
  '40P01': TransactionAborted, // deadlock_detected
  '53100': StorageFull, // disk_full
  XX001: DatabaseDamaged, // data_corrupted
  XX002: DatabaseDamaged, // index_corrupted
  '53300': Busy, // too_many_connections
  '55P03': Busy, // lock_not_available
  '57014': Busy, // query_canceled, by statement_timeout
  '25P03': TransactionAborted, // idle_in_transaction_session_timeout
  '57P01': TransactionAborted, // admin_shutdown
  '57P02': TransactionAborted, // crash_shutdown
  '57P03': TransactionAborted, // cannot_connect_now
  '26000': TransactionAborted, // invalid_sql_statement_name: the session is another one than it was
  '08P01': TransactionAborted, // protocol_violation, as poolers call a server that went away
  ECONNRESET: TransactionAborted,
  EPIPE: TransactionAborted,
}

// The errors of `pg` about a lost connection have no code.
const CONNECTION_LOST_MESSAGE = /^(Connection terminated|Client has encountered a connection error|Query read timeout)/
// A table was altered since the statement was prepared: another connection does not know it yet.
const OUTDATED_PLAN_MESSAGE = 'cached plan must not change result type'
// Also a protocol violation, but caused by our own statement.
const PARAMETER_COUNT_MESSAGE = /^bind message supplies \d+ parameters/

/** Returns an engine's error as one of the errors above; any other error is a StorageFault. */
export function toStorageError(error: unknown): Error {
  if (error instanceof Problem || error instanceof ConfigError || error instanceof StorageFault) return error
  const { code = '', message = '' } = error as { code?: string; message?: string }
  if (PARAMETER_COUNT_MESSAGE.test(message)) return new StorageFault(error)
  if (message === OUTDATED_PLAN_MESSAGE) return new TransactionAborted(error)
  if (code.startsWith('SQLITE_CORRUPT')) return new DatabaseDamaged(error)
  if (code.startsWith('SQLITE_IOERR')) return new DiskFailure(error)
  return new (ERROR_BY_CODE[code] ?? (CONNECTION_LOST_MESSAGE.test(message) ? TransactionAborted : StorageFault))(error)
}

const MAX_BUSY_ATTEMPTS = 5
const BUSY_RETRY_DELAY_MS = 100

/**
 * Runs work up to five times while the database is busy. The work must be safe to repeat.
 * @throws 503 BUSY after that
 */
export async function retryWhenBusy<T>(work: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++)
    try {
      return await work()
    } catch (error) {
      if (!(error instanceof Busy) || error instanceof TenantMoved || attempt === MAX_BUSY_ATTEMPTS) throw error
      await Bun.sleep(attempt * BUSY_RETRY_DELAY_MS)
    }
}
