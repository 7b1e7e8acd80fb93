import { parseSize } from '../../core/byte-size'
import type { Field } from '../api/schema'
import { formatBytes } from '../ui/format-bytes'
import { matchesPattern } from './pattern'

const EMAIL = /^[^\s@<>,;:"()[\]\\]+@[^\s@<>,;:"()[\]\\]+\.[^\s@<>,;:"()[\]\\.]+$/
const DECIMAL = /^[+-]?\d+(\.\d+)?$/

const isHttpUrl = (text: string) => /^https?:\/\//i.test(text) && URL.canParse(text)
const isText = (value: unknown): value is string => typeof value === 'string'

/** What is wrong with a value of each type, as the end of the sentence "price …". The server checks more. */
const typeFlaws: Partial<Record<Field['type'], (value: unknown) => string | false>> = {
  email: (value) => !(isText(value) && value.length <= 254 && EMAIL.test(value)) && 'must be an e-mail address',
  url: (value) => !(isText(value) && isHttpUrl(value)) && 'must be a URL that starts with http:// or https://',
  file: (value) =>
    !(isText(value) && (isHttpUrl(value) || /^\/(?![/\\])\S*$/.test(value))) &&
    'must be the URL of a file: https://… or /…',
  number: (value) => !Number.isFinite(value) && 'must be a number',
  integer: (value) => !Number.isSafeInteger(value) && 'must be a whole number between ±(2^53 - 1)',
  decimal: (value) => !DECIMAL.test(String(value)) && 'must be a decimal number as text, such as "19.90"',
}

const NUMBER_TYPES: Field['type'][] = ['number', 'integer', 'decimal']
const LENGTH_TYPES: Field['type'][] = ['string', 'text', 'email', 'url', 'file']

function findBoundFlaw({ type, min, max, multi }: Field, value: unknown): string | undefined {
  if (multi || LENGTH_TYPES.includes(type)) {
    const length = multi ? (value as unknown[]).length : [...String(value)].length
    const things = multi ? 'values' : 'characters'
    if (min !== undefined && length < Number(min)) return `must have at least ${min} ${things}`
    if (max !== undefined && length > Number(max)) return `must have at most ${max} ${things}`
    return
  }
  const toComparable = (one: unknown) =>
    NUMBER_TYPES.includes(type) ? Number(one) : type === 'datetime' ? Date.parse(String(one)) : String(one)
  if (min !== undefined && toComparable(value) < toComparable(min)) return `must be at least ${min}`
  if (max !== undefined && toComparable(value) > toComparable(max)) return `must be at most ${max}`
}

function findValueFlaw(field: Field, value: unknown): string | undefined {
  const typeFlaw = typeFlaws[field.type]?.(value)
  if (typeFlaw) return typeFlaw
  if (field.enum && !field.enum.some((choice) => choice === value)) return `must be one of ${field.enum.join(', ')}`
  const isMismatch = field.pattern && matchesPattern(field.pattern, String(value)) === false
  return isMismatch ? `must match the pattern ${field.pattern}` : undefined
}

const isEmpty = (value: unknown) => value === undefined || value === null || value === ''

/** Returns what is wrong with the value of a field, in the words of the server, as far as the page can know it. */
export function findFieldFlaw(field: Field, value: unknown): string | undefined {
  if (isEmpty(value)) return field.required ? `${field.key} is required.` : undefined
  const values = field.multi && Array.isArray(value) ? value : [value]
  const flaw = values.map((each) => findValueFlaw(field, each)).find(Boolean) ?? findBoundFlaw(field, value)
  return flaw && `${field.key} ${flaw}.`
}

const grouped = (bound: number | string) => (typeof bound === 'number' ? bound.toLocaleString() : bound)

/** Returns what a value has to be, in one line, for the help beneath an input; empty without rules. */
export function describeRules({ type, min, max, pattern, unique, multi, accept, maxSize }: Field): string {
  const isLength = multi || LENGTH_TYPES.includes(type)
  const unit = isLength ? (multi ? ' values' : ' characters') : ''
  const bounds =
    min !== undefined && max !== undefined
      ? `${grouped(min)} to ${grouped(max)}${unit}`
      : min !== undefined
        ? `At least ${grouped(min)}${unit}`
        : max !== undefined
          ? `At most ${grouped(max)}${unit}`
          : ''
  const files = accept && `takes ${accept.join(', ')}`
  const size = maxSize !== undefined && `files up to ${formatBytes(parseSize(`${maxSize}`) ?? 0)}`
  const rules = [bounds, files, size, pattern && `matches ${pattern}`, unique && 'no two have the same']
    .filter(Boolean)
    .join(', ')
  return rules && `${rules[0]!.toUpperCase()}${rules.slice(1)}.`
}
