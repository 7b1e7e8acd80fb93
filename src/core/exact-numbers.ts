/** A number of a JSON text that JSON.parse would change in silence. */
export class InexactNumber extends Error {
  constructor(
    readonly written: string,
    readonly at: number,
  ) {
    super(`${written} cannot be held exactly.`)
  }
}

const MAY_BE_INEXACT = /[\d.]{16}/
// A text may be cut at its end, where a body is read in slices.
const TOKEN = /"(?:[^"\\]|\\.)*"?|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/gs

/**
 * Throws InexactNumber for the first number whose whole part is beyond 2^53 and would be changed. Fractions have as many
 * digits as a double holds, as everywhere. A number beyond all doubles is infinite, which is refused where it is stored.
 */
export function assertExactNumbers(json: string) {
  if (!MAY_BE_INEXACT.test(json)) return
  for (const { 0: token, index } of json.matchAll(TOKEN))
    if (token[0] !== '"' && Number.isFinite(Number(token)) && !isExact(token)) throw new InexactNumber(token, index)
}

/** Returns whether a double holds a number as it is written, or as JavaScript writes that double. */
export function isExact(written: string): boolean {
  const value = Math.abs(Number(written))
  if (!Number.isFinite(value)) return false
  if (value < Number.MAX_SAFE_INTEGER) return true
  const [, before = '', after = '', exponent = 0] = /^[+-]?(\d*)\.?(\d*)(?:e([+-]?\d+))?$/i.exec(written) ?? []
  const point = before.length + Number(exponent)
  const digits = `${before}${after}`.padEnd(point, '0')
  const whole = digits.slice(0, point).replace(/^0+/, '')
  if (/[1-9]/.test(digits.slice(point))) return false
  return BigInt(whole) === BigInt(value) || whole === toPlainDigits(value)
}

/** Returns whether a text is a number that a double would change. */
export const isInexact = (text: string) => Number.isFinite(Number(text)) && !isExact(text.trim())

/** Returns the shortest digits that are this double, as `JSON.stringify` writes it, without an exponent. */
function toPlainDigits(value: number): string {
  const [digits = '', exponent] = `${value}`.split('e+')
  return exponent === undefined ? digits : digits.replace('.', '').padEnd(Number(exponent) + 1, '0')
}

/** Parses a JSON text. @throws SyntaxError, InexactNumber */
export function parseExactJson(json: string): unknown {
  const value: unknown = JSON.parse(json)
  assertExactNumbers(json)
  return value
}

/** Returns the error about a number, with its place in a JSON text that is whole. */
export const toInexactNumberError = ({ written, at }: InexactNumber, json?: string) => ({
  path: json === undefined ? '' : findPath(json, at),
  message: `The number ${written.slice(0, 40)} cannot be held exactly, and would be changed. Send it as text, for a field of the type decimal.`,
})

const STRUCTURE = /"(?:[^"\\]|\\.)*"|[{}[\],:]/gs

/** Returns the JSON pointer of what stands at a place of a JSON text. */
function findPath(json: string, at: number): string {
  const path: (string | number)[] = []
  let text = ''
  for (const [token] of json.slice(0, at).matchAll(STRUCTURE)) {
    const last = path.length - 1
    if (token === '{') path.push('')
    else if (token === '[') path.push(0)
    else if (token === '}' || token === ']') path.pop()
    else if (token === ':') path[last] = JSON.parse(text)
    else if (token !== ',') text = token
    else if (typeof path[last] === 'number') path[last]++
  }
  return path.map((key) => `/${`${key}`.replaceAll('~', '~0').replaceAll('/', '~1')}`).join('')
}
