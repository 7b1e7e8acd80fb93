const COLORS: Record<string, string> = { debug: '\x1b[90m', info: '\x1b[32m', warn: '\x1b[33m', error: '\x1b[31m' }
const [DIM, RESET] = ['\x1b[2m', '\x1b[0m']

/** Returns a line of the log for people: the time of day, the level, what happened, and all other fields. */
export function toPrettyLine(line: string, isColored: boolean): string {
  const { level, time, event, what, message, method, route, status, ms, cause, ...rest } = JSON.parse(line)
  const paint = (color: string, text: string) => (isColored ? `${color}${text}${RESET}` : text)
  const request = method && [method, route ?? '(unknown path)', status].filter(Boolean).join(' ')
  const subject = [event, what, request, message].filter(Boolean).join('  ')
  const fields = Object.entries({ ...(ms !== undefined && { ms }), ...rest }).map(
    ([name, value]) =>
      `${name}=${typeof value === 'string' && /^[\w.:/-]+$/.test(value) ? value : JSON.stringify(value)}`,
  )
  const head = [
    paint(DIM, new Date(time).toTimeString().slice(0, 8)),
    paint(COLORS[level] ?? '', `${level}`.toUpperCase().padEnd(5)),
    toPrintable(subject),
    fields.length && paint(DIM, toPrintable(fields.join(' '))),
  ]
  const reason = cause === undefined ? '' : `\n    ${toPrintable(`${cause}`).replaceAll('\n', '\n    ')}`
  return `${head.filter(Boolean).join(' ')}${reason}\n`
}

/** Control characters would let a caller write to the terminal of the operator. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what it looks for
const toPrintable = (text: string) => text.replace(/[\x00-\x09\x0b-\x1f\x7f-\x9f]/g, '?')
