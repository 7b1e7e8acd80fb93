import type { FieldType } from '../fields/field-kind'

const LONG_TEXT_CHARACTERS = 200

/** The types that can be told by how their values are written, the narrowest first. */
const PATTERNS: readonly [FieldType, RegExp][] = [
  ['boolean', /^(true|false|yes|no)$/i],
  // A number that begins with 0 names something, such as a postal code.
  ['integer', /^-?(0|[1-9]\d{0,14})$/],
  ['number', /^-?(0|[1-9]\d{0,14})(\.\d+)?$/],
  ['date', /^\d{4}-\d\d-\d\d$/],
  ['datetime', /^\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)?$/],
  ['time', /^\d\d:\d\d(:\d\d)?$/],
  ['email', /^[^\s@]+@[^\s@]+\.[^\s@]+$/],
  ['url', /^https?:\/\/\S+$/],
]

function guessByJson(values: unknown[]): FieldType | undefined {
  const isEach = (type: string) => values.every((value) => typeof value === type)
  if (isEach('boolean')) return 'boolean'
  if (isEach('number')) return values.every(Number.isInteger) ? 'integer' : 'number'
  return isEach('object') && !values.some(Array.isArray) ? 'object' : undefined
}

/** Returns the type that all values of a column have. */
export function guessType(all: readonly unknown[]): FieldType {
  const values = all.filter((value) => value !== '' && value !== undefined && value !== null)
  const texts = values.map((value) => String(value).trim())
  if (!values.length) return 'string'
  const json = guessByJson(values)
  if (json) return json
  const match = PATTERNS.find(([, pattern]) => texts.every((text) => pattern.test(text)))
  if (match) return match[0]
  return texts.some((text) => text.length > LONG_TEXT_CHARACTERS || text.includes('\n')) ? 'text' : 'string'
}
