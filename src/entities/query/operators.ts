import { isNeverIndexed } from '../../blueprints/field-indexes'
import { fieldTypes } from '../../blueprints/fields'
import type { FieldType } from '../../blueprints/fields/field-type'
import { isTruncated, MAX_FULL_TEXT_CHARACTERS, textKey } from '../../blueprints/fields/index-key-codec'
import { isIsoDate, toIsoString } from '../../core/clock'
import { isInexact } from '../../core/exact-numbers'
import { readList } from '../../core/list-text'
import { malformedListMessage } from '../../core/query-lists'
import { isFlag, isTrue } from '../../core/shapes'
import type { TimeZone } from '../../core/time-zone'
import { parsePattern } from './like-pattern'
import { toPartKeys } from './object-paths'
import {
  type Condition,
  hasLongBound,
  isLongText,
  type LikeCondition,
  type ResolvedName,
  type Target,
  targetKey,
} from './target'

export const OPERATORS = ['$lt', '$gt', '$lte', '$gte', '$ne', '$in', '$nin', '$exists', '$like']

const MAX_LIST_VALUES = 500
const MAX_PATTERN_LENGTH = 100 // characters
const TIME_COLUMNS = ['created', 'updated']

const isTimeTarget = (target: Target) => target.at === 'column' && TIME_COLUMNS.includes(target.column.slice(2))

/** Returns a pattern condition, or an error message. */
export function parseLike({ target, kind }: ResolvedName, name: string, text: string): LikeCondition | string {
  if (isTimeTarget(target) || (kind && !kind.supportsPatterns))
    return `"${name}" is not a text field, so $like is not supported.`
  if (target.at === 'field' && isNeverIndexed(target.field))
    return `"${name}" is not indexed, so $like is not supported.`
  if (text.length > MAX_PATTERN_LENGTH) return `A pattern has at most ${MAX_PATTERN_LENGTH} characters.`
  return { target, pattern: parsePattern(text) }
}

/** Returns a condition, or an error message. A bare day begins at midnight of the zone. */
export function parseCondition(
  { target, kind, part }: ResolvedName,
  operator: string | undefined,
  text: string,
  name: string,
  zone: TimeZone,
): Condition | string {
  const read = (one: string): (string | number)[] => {
    if (!kind) return toPartKeys(one, part)
    const value = kind.parse?.(kind.isMoment && isIsoDate(one) ? startOfDay(one, zone) : one)
    if (value === undefined) return []
    if (target.at === 'column') return [isTimeTarget(target) ? Date.parse(value as string) : (value as string)]
    return [kind.toIndexKey!(value)]
  }
  if (operator === '$exists') {
    if (!isFlag(text)) return '$exists must be true or false.'
    return { target, is: isTrue(text) ? 'present' : 'absent' }
  }
  const list = operator === '$in' || operator === '$nin' ? readValues(text) : [text]
  if (!list) return malformedListMessage(`${name}[${operator}]`)
  if (list.length > MAX_LIST_VALUES) return `A list has at most ${MAX_LIST_VALUES} values.`
  const values: (string | number)[] = []
  for (const one of list) {
    const keys = read(one)
    if (!keys.length) return `"${one.slice(0, 100)}" ${describeFault(one, kind ?? (part && fieldTypes[part]))}.`
    values.push(...keys)
  }
  if (operator === undefined || operator === '$in') return { target, is: 'in', values }
  if (operator === '$ne' || operator === '$nin') return { target, is: 'not in', values }
  const open = operator === '$lt' || operator === '$gt'
  if (isLongText(target, text)) {
    const bound = { value: values[0]!, open, text }
    const exact = { ...target, indexed: false } as Target
    return { target: exact, is: 'between', ...(operator.startsWith('$l') ? { to: bound } : { from: bound }) }
  }
  if (target.at === 'field' && isTruncated(text) && (!kind || kind.toIndexKey === textKey))
    return `The text for "${name}" is too long: a range over a list or an object compares at most ${MAX_FULL_TEXT_CHARACTERS} characters.`
  const bound = { value: kind ? values[0]! : values.at(-1)!, open }
  const range = operator.startsWith('$l') ? { to: bound } : { from: bound }
  return { target, is: 'between', ...(!kind && typeBounds(bound.value as string)), ...range }
}

const describeFault = (text: string, kind: FieldType | undefined) =>
  kind && NUMBER_KINDS.includes(kind) && isInexact(text)
    ? 'cannot be compared exactly, because a number holds 15 to 17 digits. A field of the type decimal holds more'
    : (kind?.check(undefined) ?? 'is not a valid value')
const NUMBER_KINDS: FieldType[] = [fieldTypes.number, fieldTypes.integer]

/** Blanks around the values between commas belong to them. */
const readValues = (text: string) => (text.startsWith('[') ? readList(text) : text.split(',').filter(Boolean))

const startOfDay = (day: string, zone: TimeZone) => toIsoString(zone.toMoment(Date.parse(day)))

/** The keys of values in an object begin with their type, and a range must not extend into the next type. */
const typeBounds = ([type = '']: string) => ({
  from: { value: type, open: false },
  to: { value: String.fromCharCode(type.charCodeAt(0) + 1), open: true },
})

/** Merges the lower and the upper bound of a single value into one condition, which is more selective than either. */
export function mergeRanges(conditions: Condition[]): Condition[] {
  const merged: Condition[] = []
  for (const one of conditions) {
    const at = merged.findIndex((other) => one.is === 'between' && other.is === 'between' && isCounterpart(one, other))
    if (at < 0) merged.push(one)
    else merged[at] = { ...merged[at], ...one } as Condition
  }
  return merged
}

type RangeCondition = Extract<Condition, { is: 'between' }>

const isCounterpart = (one: RangeCondition, other: RangeCondition) =>
  targetKey(one.target) === targetKey(other.target) &&
  !hasLongBound(one) &&
  !hasLongBound(other) &&
  (one.target.at === 'column' || one.target.single) &&
  (one.from ? !one.to && !other.from : !other.to)
