/** One line of JSON for a person who looks for what went wrong. Never pass secrets, bodies or values of queries. */
export function report(what: string, more: Record<string, unknown> = {}) {
  console.error(JSON.stringify({ time: new Date().toISOString(), what, ...more }))
}
