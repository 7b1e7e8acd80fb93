import { types } from '../blueprints/fields/types'
import { readPattern } from './like'
import { partKeys } from './parts'
import type { Condition, Like, Resolved, Target } from './query'

export const OPERATORS = ['$lt', '$gt', '$lte', '$gte', '$ne', '$in', '$nin', '$exists', '$like']

const VALUES = 500
const PATTERN = 100 // characters
const TIMES = ['created', 'updated']

const isTime = (target: Target) => target.at === 'column' && TIMES.includes(target.column.slice(2))

/** A pattern that texts are to fit, or what is wrong with it. */
export function likeOf({ target, kind }: Resolved, name: string, text: string): Like | string {
  if (isTime(target) || (kind && !kind.patterned)) return `"${name}" is no text, so $like cannot be asked of it.`
  if (target.at === 'field' && !target.indexed) return `"${name}" is not indexed, so $like cannot be asked of it.`
  if (text.length > PATTERN) return `A pattern has at most ${PATTERN} characters.`
  return { target, pattern: readPattern(text) }
}

/** A condition, or what is wrong with it. */
export function conditionOf(
  { target, kind, part }: Resolved,
  operator: string | undefined,
  text: string,
): Condition | string {
  const read = (one: string): (string | number)[] => {
    if (!kind) return partKeys(one, part)
    const value = kind.parse?.(one)
    if (value === undefined) return []
    if (target.at === 'column') return [isTime(target) ? Date.parse(value as string) : (value as string)]
    return [kind.key!(value)]
  }
  if (operator === '$exists') {
    if (!/^(true|false|0|1)$/.test(text)) return '$exists must be true or false.'
    return { target, is: text === 'true' || text === '1' ? 'present' : 'absent' }
  }
  const list = operator === '$in' || operator === '$nin' ? text.split(',').filter(Boolean) : [text]
  if (list.length > VALUES) return `A list has at most ${VALUES} values.`
  const values: (string | number)[] = []
  for (const one of list) {
    const keys = read(one)
    if (!keys.length)
      return `"${one.slice(0, 100)}" ${(kind ?? (part && types[part]))?.check(undefined) ?? 'does not fit'}.`
    values.push(...keys)
  }
  if (operator === undefined || operator === '$in') return { target, is: 'in', values }
  if (operator === '$ne' || operator === '$nin') return { target, is: 'not in', values }
  const bound = { value: kind ? values[0]! : values.at(-1)!, open: operator === '$lt' || operator === '$gt' }
  const range = operator.startsWith('$l') ? { to: bound } : { from: bound }
  return { target, is: 'between', ...(!kind && ofOneType(bound.value as string)), ...range }
}

/** The texts of an object's parts begin with their type: a range must not run into the next one. */
const ofOneType = ([type = '']: string) => ({
  from: { value: type, open: false },
  to: { value: String.fromCharCode(type.charCodeAt(0) + 1), open: true },
})

/** Of what has one value, where it begins and where it ends are one condition, which fewer meet than either. */
export function together(conditions: Condition[]): Condition[] {
  const found: Condition[] = []
  for (const one of conditions) {
    const at = found.findIndex((other) => one.is === 'between' && other.is === 'between' && isCounterpart(one, other))
    if (at < 0) found.push(one)
    else found[at] = { ...found[at], ...one } as Condition
  }
  return found
}

type Range = Extract<Condition, { is: 'between' }>

const isCounterpart = (one: Range, other: Range) =>
  nameOf(one.target) === nameOf(other.target) &&
  (one.target.at === 'column' || one.target.single) &&
  (one.from ? !one.to && !other.from : !other.to)

const nameOf = (target: Target) => (target.at === 'column' ? target.column : target.label)
