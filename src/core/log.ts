import { toIsoString } from './clock'
import { countFault } from './fault-counts'
import { keepLogLine } from './log-tail'
import { toPrettyLine } from './pretty-line'
import { getProcessNumber } from './server-processes'
import { flush, waitUntilWritten, writeLine } from './stderr'
import { isTerminal } from './terminal'
import { currentTrace } from './trace'

export type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'silent'
export type LogFormat = 'json' | 'pretty'

/**
 * Where formatted log lines go, each with its line break: standard error, because commands print to standard output.
 */
export const logOutput = {
  write(line: string, mayTellFault = true) {
    keepLogLine(line)
    if (mayTellFault) countFault(line)
    writeLine(output.format === 'pretty' ? toPrettyLine(line, output.isColored) : line)
  },
}
const output = { format: 'json' as LogFormat, isColored: Bun.enableANSIColors && isTerminal(2) }

/** Lines must not hold secrets. This is for those that slip in with an object. */
const SECRET_FIELDS = new Set([
  ...['token', 'accessToken', 'refreshToken', 'password', 'passphrase', 'secret', 'clientSecret', 'apiKey'],
  ...['authorization', 'cookie', 'x-api-key'],
])

const LEVELS: LogLevel[] = ['debug', 'info', 'warn', 'error', 'silent']

/** Logs lines of JSON with a level and a time. Never pass secrets, bodies or values of queries. */
export const log = {
  level: 'info' as LogLevel,
  isLevelEnabled: (level: LogLevel) => LEVELS.indexOf(level) >= LEVELS.indexOf(log.level),
  info: (about: object) => logLine('info', about),
  warn: (about: object) => logLine('warn', about),
  error: (about: object) => logLine('error', about),
}

function logLine(level: LogLevel, about: object) {
  if (!log.isLevelEnabled(level)) return
  const [trace, worker] = [currentTrace(), getProcessNumber()]
  const origin = { ...(worker && { worker }), ...(trace && { traceId: trace.traceId }) }
  const line = { level, time: toIsoString(Date.now()), ...origin, ...about }
  logOutput.write(`${JSON.stringify(line, toLoggable)}\n`)
}

const toLoggable = (name: string, value: unknown) =>
  SECRET_FIELDS.has(name) && value !== undefined ? '[redacted]' : typeof value === 'bigint' ? `${value}` : value

/** Sets the lowest level that is logged. */
export function setLogLevel(level: LogLevel) {
  log.level = level
}

/** Chooses how lines are written. The operator's page gets JSON either way. */
export function formatLogAs(format: LogFormat) {
  output.format = format
}

/** Resolves when all lines so far are written. */
export const flushLog = waitUntilWritten

/**
 * Logs an error for the operator. Of `cause` only the innermost cause is logged. Never pass secrets, bodies or values
 * of queries.
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

/** Logs an event for operators who watch for attacks. Its line has the field `event`. */
export const logSecurity = (event: SecurityEvent, about: Record<string, unknown>) => log.warn({ event, ...about })

/** Only the innermost cause is described: its wrappers and their fields may quote the values of a query. */
function describeRootCause(error: unknown) {
  const cause = getErrorChain(error).at(-1)
  return cause instanceof Error ? cause.stack : String(cause)
}

/** Returns an error followed by its causes, the innermost last. */
export function getErrorChain(error: unknown): unknown[] {
  return error instanceof Error && error.cause ? [error, ...getErrorChain(error.cause)] : [error]
}
