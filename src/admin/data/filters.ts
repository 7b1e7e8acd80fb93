import { OPERATOR_WORDS, type Operator, operators, TIME_OPERATOR_WORDS } from './operators'

/** One condition of a list: the field, the operator, and the value as the query language writes it. */
export type Filter = { name: string; operator: Operator; value: string }

const FILTER_KEY = /^([^[\]$][^[\]]*)(?:\[(\$\w+)\])?$/

/** Returns the conditions of an address; its options, such as `$sort`, are left out. */
export const readFilters = (search: Record<string, string>): Filter[] =>
  Object.entries(search).flatMap(([key, value]) => {
    const [, name, operator = 'eq'] = FILTER_KEY.exec(key) ?? []
    return name && (operators as readonly string[]).includes(operator)
      ? [{ name, operator: operator as Operator, value }]
      : []
  })

const toKey = ({ name, operator }: Filter) => (operator === 'eq' ? name : `${name}[${operator}]`)

/** Returns the address with one condition more; one with the same field and operator is replaced. */
export const addFilter = (search: Record<string, string>, filter: Filter) => ({
  ...search,
  [toKey(filter)]: filter.operator === '$like' ? toPattern(filter.value) : filter.value,
})

/** Returns the address without a condition. */
export function removeFilter(search: Record<string, string>, filter: Filter): Record<string, string> {
  const { [toKey(filter)]: _, ...rest } = search
  return rest
}

/** A text without wildcards is looked for anywhere in the value. */
const toPattern = (text: string) => (/[%_]/.test(text) ? text : `%${text}%`)
const fromPattern = (pattern: string) => /^%([^%_]+)%$/.exec(pattern)?.[1] ?? pattern

/** Returns the words of a condition: field, operator and value. */
export function describeFilter({ name, operator, value }: Filter, isTime: boolean): string {
  if (operator === '$exists') return value === 'false' ? `${name} is empty` : `${name} has a value`
  const words = (isTime && TIME_OPERATOR_WORDS[operator]) || OPERATOR_WORDS[operator]
  const shown = operator === '$like' ? fromPattern(value) : value.replaceAll(',', ', ')
  return `${name} ${words} ${shown}`
}
