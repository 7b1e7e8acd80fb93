import { CommanderError } from 'commander'
import { ConfigError } from '../core/config-error'
import { getErrorChain } from '../core/log'
import { type FieldError, Problem } from '../core/problem'

/** Why a command failed. The exit code is 1 for a refusal or failure, 2 for wrong usage or settings. */
export type Failure = { code: string; message: string; details?: FieldError[]; exitCode: 1 | 2 }

type SystemError = { code?: string; path?: string; syscall?: string }

const WRITE_SYSCALLS = ['mkdir', 'open', 'rename', 'link', 'write', 'chmod', 'fsync']

/** Reasons why the system refuses to write a file, by error code. */
export const WRITE_FAILURE_REASONS: Record<string, string> = {
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  EROFS: 'the file system is read-only',
  ENOSPC: 'the disk is full',
  EISDIR: 'it is a folder',
  ENOTDIR: 'part of the path is not a folder',
  EEXIST: 'a file with that name already exists',
  ENOENT: 'it cannot be created there',
}

const DATABASE_UNAVAILABLE_MESSAGES: Record<string, string> = {
  '28P01': 'PostgreSQL rejected the password. Check ATOLL_DATABASE_URL.',
  '28000': 'PostgreSQL rejected the user. Check ATOLL_DATABASE_URL.',
  '3D000': 'The PostgreSQL database does not exist. Create it, or check ATOLL_DATABASE_URL.',
  '53300': 'PostgreSQL has no connections left. Raise max_connections, or lower ATOLL_DATABASE_CONNECTIONS.',
  ECONNREFUSED: 'PostgreSQL is not responding. Start it, or check ATOLL_DATABASE_URL.',
  ENOTFOUND: 'The host in ATOLL_DATABASE_URL does not exist. Check its name.',
  EAI_AGAIN: 'The host in ATOLL_DATABASE_URL cannot be resolved. Check its name and your DNS servers.',
  ETIMEDOUT: 'PostgreSQL is not responding. Check the host and port in ATOLL_DATABASE_URL.',
  SQLITE_CANTOPEN: 'A database file cannot be opened. Check the permissions of the ATOLL_TENANTS folder.',
  SQLITE_READONLY: 'A database file cannot be written. Check the permissions of the ATOLL_TENANTS folder.',
}

const DATABASE_DAMAGED_MESSAGES: Record<string, string> = {
  SQLITE_NOTADB: 'registry.db is not a SQLite database. Restore it from a copy, or choose another ATOLL_TENANTS.',
  SQLITE_CORRUPT: 'registry.db is damaged. Restore it from a copy, or choose another ATOLL_TENANTS.',
}

const DISK_FULL_MESSAGES: Record<string, string> = { SQLITE_FULL: 'The disk is full. Free up space and try again.' }

/**
 * Explains an error that a person can fix. Returns undefined for any other error, which is a bug and needs its stack.
 */
export function explainFailure(error: unknown): Failure | undefined {
  const chain = getErrorChain(error)
  const setting = chain.find((cause) => cause instanceof ConfigError)
  if (setting) return { code: 'BAD_SETTING', message: setting.message, exitCode: 2 }
  if (error instanceof CommanderError) return { code: 'USAGE', message: usageMessage(error), exitCode: 2 }
  const problem = chain.find((cause) => cause instanceof Problem)
  // A busy database may mean that its server is not running, so the innermost cause explains more.
  const cause = !problem || problem.code === 'BUSY' ? explainCause((chain.at(-1) ?? {}) as SystemError) : undefined
  return cause ?? (problem && explainProblem(problem))
}

function explainProblem({ code, message, more }: Problem): Failure {
  const details = Array.isArray(more.details) ? (more.details as FieldError[]) : []
  return { code, message, details, exitCode: 1 }
}

function explainCause({ code = '', path, syscall = '' }: SystemError): Failure | undefined {
  const refused = DATABASE_UNAVAILABLE_MESSAGES[code]
  if (refused) return { code: 'DATABASE_UNAVAILABLE', message: refused, exitCode: 2 }
  const damage = DATABASE_DAMAGED_MESSAGES[code]
  if (damage) return { code: 'DATABASE_DAMAGED', message: damage, exitCode: 1 }
  const shortage = DISK_FULL_MESSAGES[code]
  if (shortage) return { code: 'STORAGE_FULL', message: shortage, exitCode: 1 }
  const reason = path && WRITE_SYSCALLS.includes(syscall) && WRITE_FAILURE_REASONS[code]
  if (reason) return { code: 'FOLDER_NOT_WRITABLE', message: `"${path}" cannot be written: ${reason}.`, exitCode: 2 }
}

/** Commander writes "error: missing required argument 'id'". */
function usageMessage({ message }: CommanderError) {
  const [first = '', ...rest] = message.replace(/^error: /, '').split('\n')
  const sentence = `${first.slice(0, 1).toUpperCase()}${first.slice(1)}`
  return [/[.!?)]$/.test(sentence) ? sentence : `${sentence}.`, ...rest].join(' ')
}

/** Prints a failure on standard error, as JSON with `--json`, and sets the exit code of the process. */
export function printFailure({ exitCode, code, message, details = [] }: Failure, json: boolean) {
  // The message already contains the first error, and a path into a JSON body means nothing on a command line.
  const errorLines = details
    .filter((fieldError) => !message.includes(fieldError.message))
    .map((fieldError) => `  ${fieldError.message}`)
  console.error(json ? JSON.stringify({ code, message, details }) : [message, ...errorLines].join('\n'))
  process.exitCode = exitCode
}

/** Returns a ConfigError that explains why the server cannot listen; any other error is returned unchanged. */
export function explainListenFailure(
  error: unknown,
  host: string,
  port: number,
  setting: 'ATOLL_PORT' | 'ATOLL_HTTP_PORT' = 'ATOLL_PORT',
): unknown {
  const { code = '' } = error as SystemError
  const because = (message: string) => new ConfigError(message, { cause: error })
  if (code === 'EADDRINUSE')
    return because(`Port ${port} is already in use. Stop the process that uses it, or choose another ${setting}.`)
  if (code === 'EACCES')
    return because(
      `Listening on port ${port} requires elevated privileges. Grant them, or choose an ${setting} above 1023.`,
    )
  if (['EINVAL', 'EADDRNOTAVAIL', 'ENOENT', 'ENXIO', 'ENOTFOUND', 'ERR_INVALID_ARG_TYPE'].includes(code))
    return because(
      `"${host}" is not an address of this machine. Set ATOLL_HOST to 127.0.0.1, 0.0.0.0 or ::1, for example.`,
    )
  return error
}
