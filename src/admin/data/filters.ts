import type { Field } from '../api/schema'
import { OPERATOR_WORDS, type Operator, operators, TIME_OPERATOR_WORDS, VALUES_OPERATOR_WORDS } from './operators'

/** One condition of a list: the field, the operator, and the value as the query language writes it. */
export type Filter = { name: string; operator: Operator; value: string }

const FILTER_KEY = /^([^[\]$][^[\]]*)(?:\[(\$\w+)\])?$/

/** Returns the conditions of an address; its options, such as `$sort`, are left out. */
export const readFilters = (search: Record<string, string>): Filter[] =>
  Object.entries(search).flatMap(([key, value]) => {
    const [, name, operator = 'eq'] = FILTER_KEY.exec(key) ?? []
    return name && name !== 'bypassAdmin' && (operators as readonly string[]).includes(operator)
      ? [{ name, operator: operator as Operator, value }]
      : []
  })

/** Returns the name of a condition in an address. */
export const toFilterKey = ({ name, operator }: Omit<Filter, 'value'>) =>
  operator === 'eq' ? name : `${name}[${operator}]`

/** Returns the address with one condition more; one with the same field and operator is replaced. */
export const addFilter = (search: Record<string, string>, filter: Filter) => ({
  ...search,
  [toFilterKey(filter)]: filter.operator === '$like' ? toPattern(filter.value) : filter.value,
})

/** Returns the address without a condition. */
export function removeFilter(search: Record<string, string>, filter: Filter): Record<string, string> {
  const { [toFilterKey(filter)]: _, ...rest } = search
  return rest
}

/** Returns the address with a condition in the place of another one. */
export const replaceFilter = (search: Record<string, string>, before: Filter, filter: Filter) =>
  Object.fromEntries(
    Object.entries(search).flatMap(([key, value]) =>
      key === toFilterKey(before) ? Object.entries(addFilter({}, filter)) : [[key, value]],
    ),
  ) as Record<string, string>

/** A text without wildcards is looked for anywhere in the value. */
const toPattern = (text: string) => (/[%_]/.test(text) ? text : `%${text}%`)

/** Returns what a person typed for a pattern. */
export const fromPattern = (pattern: string) => /^%([^%_]+)%$/.exec(pattern)?.[1] ?? pattern

const TIME_TYPES: Field['type'][] = ['date', 'datetime', 'time']

/** Returns the words between a field and a value. */
export function describeOperator(operator: Operator, field?: Field): string {
  if (field?.multi && VALUES_OPERATOR_WORDS[operator]) return VALUES_OPERATOR_WORDS[operator]
  const isTime = !!field && TIME_TYPES.includes(field.type)
  return (isTime && TIME_OPERATOR_WORDS[operator]) || OPERATOR_WORDS[operator]
}

const LIST_OPERATORS: Operator[] = ['$in', '$nin']

/** Returns whether a condition takes several values. */
export const hasSeveralValues = (operator: Operator) => LIST_OPERATORS.includes(operator)

/** Options of an address that decide what a list shows; any other would break its pages. */
const LIST_OPTIONS = ['$sort', '$q', '$qProps', 'bypassAdmin']

/** Returns the part of an address that the server gets: the conditions, and the options of lists. */
export const toListQuery = (search: Record<string, string>): Record<string, string> =>
  Object.fromEntries(Object.entries(search).filter(([key]) => !key.startsWith('$') || LIST_OPTIONS.includes(key)))

/** Returns an address as a text that people can read and change. */
export const writeQuery = (search: Record<string, string>) =>
  Object.entries(toListQuery(search))
    .map(([key, value]) => `${key}=${value.replaceAll('%', '%25').replaceAll('&', '%26').replaceAll('+', '%2B')}`)
    .join('&')

/** Returns the address that such a text means. */
export const readQuery = (text: string): Record<string, string> =>
  Object.fromEntries(new URLSearchParams(text.trim().replace(/^\?/, '')))
