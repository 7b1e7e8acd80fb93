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

/** A bug of ours or a broken disk. */
export class StorageFault extends Error {
  constructor(cause: unknown) {
    super('The database refused a statement.', { cause })
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
}

/** The engines' errors in our own words. */
export function storageError(error: unknown): Error {
  if (error instanceof Problem || error instanceof StorageFault) return error
  return new (kinds[(error as { code?: string }).code ?? ''] ?? StorageFault)(error)
}
