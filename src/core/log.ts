/**
 * One line of JSON for a person who looks for what went wrong. Never pass secrets, bodies or values of queries; a `cause` is
 * told by its innermost one.
 */
export function report(what: string, { cause, ...more }: Record<string, unknown> = {}) {
  const told = { time: new Date().toISOString(), what, ...more, ...(cause !== undefined && { cause: origin(cause) }) }
  console.error(JSON.stringify(told))
}

/** What somebody who watches for attacks looks for, by a name of its own. */
export function logSecurity(event: SecurityEvent, about: Record<string, unknown>) {
  console.error(JSON.stringify({ time: new Date().toISOString(), event, ...about }))
}
export type SecurityEvent = 'host-claimed' | 'host-released'

/** What is wrapped around the innermost cause of an error, or attached to it, may quote the values of a query. */
function origin(error: unknown) {
  const cause = causes(error).at(-1)
  return cause instanceof Error ? cause.stack : String(cause)
}

/** An error, with all that caused it. */
export function causes(error: unknown): unknown[] {
  return error instanceof Error && error.cause ? [error, ...causes(error.cause)] : [error]
}
