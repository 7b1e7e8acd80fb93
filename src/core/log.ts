import pino from 'pino'
import { flush, waitUntilWritten, writeLine } from './stderr'

export type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'silent'

/** Where all lines go, already formatted: standard output belongs to what commands print. Each ends with a line break. */
export const logOutput = {
  write(line: string) {
    writeLine(line)
  },
}

/** Lines of JSON with a level and a time. Never pass secrets, bodies or values of queries. */
export const log = pino(
  {
    base: null,
    messageKey: 'message',
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (level) => ({ level }) },
  },
  logOutput,
)

/** What is less than this is not logged. */
export function setLogLevel(level: LogLevel) {
  log.level = level
}

/** Resolves when all lines so far are written. */
export const flushLog = waitUntilWritten

/**
 * An error line for a person who looks for what went wrong. Never pass secrets, bodies or values of queries; a `cause` is
 * told by its innermost one.
 */
export function logError(code: string, { cause, ...more }: Record<string, unknown> = {}) {
  log.error({ what: code, ...more, ...(cause !== undefined && { cause: describeRootCause(cause) }) })
  flush()
}

export type SecurityEvent =
  | 'signin-failed'
  | 'unauthenticated'
  | 'forbidden'
  | 'rate-limited'
  | 'host-claimed'
  | 'host-released'

/** What somebody who watches for attacks looks for, by a name of its own. */
export const logSecurity = (event: SecurityEvent, about: Record<string, unknown>) => log.warn({ event, ...about })

/** What is wrapped around the innermost cause of an error, or attached to it, may quote the values of a query. */
function describeRootCause(error: unknown) {
  const cause = getErrorChain(error).at(-1)
  return cause instanceof Error ? cause.stack : String(cause)
}

/** An error, with all that caused it. */
export function getErrorChain(error: unknown): unknown[] {
  return error instanceof Error && error.cause ? [error, ...getErrorChain(error.cause)] : [error]
}
