import { compareBytes, compareValues, toDecimalUnits } from '../../blueprints/seeded-random'
import type { Entity } from '../fixtures'

/** The expected answer of a list, computed the slow way: scan all entities, filter, sort and slice. */

export type Comparable = string | number | bigint | boolean

export type Filter = { name: string; operator: string; text: string }
export type Sort = { name: string; descending: boolean }

/** Returns filters without the later lists of the same name and operator, because lists sent twice are one list. */
export const withoutRepeatedLists = (filters: Filter[]) =>
  filters.filter(
    ({ name, operator }, at) =>
      !/in\]$/.test(operator) || filters.findIndex((one) => one.name === name && one.operator === operator) === at,
  )

export const COLUMNS = ['identifier', '_id', 'user', 'created', 'updated', 'workspace']
export const OPERATORS = ['', '[$ne]', '[$lt]', '[$lte]', '[$gt]', '[$gte]', '[$in]', '[$nin]', '[$exists]', '[$like]']

/** Parses a stored or queried value into what is compared, by field type. Other types compare as text. */
export const parsers: Record<string, (text: string) => Comparable> = {
  number: Number,
  integer: Number,
  decimal: toDecimalUnits,
  boolean: (text) => /^(true|1)$/.test(text),
  datetime: (text) => Date.parse(text),
  time: (text) => text.padEnd(8, ':00'),
}

/** Returns all scalars at a dotted path, through lists. */
function scalarsAt(value: unknown, path: string[]): Comparable[] {
  if (Array.isArray(value)) return value.flatMap((one) => scalarsAt(one, path))
  if (value === null || value === undefined) return []
  if (typeof value === 'object') {
    const [key = '', ...rest] = path
    return key && Object.hasOwn(value, key) ? scalarsAt((value as Record<string, unknown>)[key], rest) : []
  }
  return path.length ? [] : [value as Comparable]
}

export const compareScalars = (one: Comparable, other: Comparable) =>
  typeof one === 'string' && typeof other === 'string' ? compareBytes(one, other) : compareValues(one, other)

const isNumber = (text: string) => /^[+-]?[\d.]+(e[+-]?\d+)?$/i.test(text) && Number.isFinite(Number(text))

/** Returns a text in lower case, as far as characters correspond one to one. */
const foldCase = (text: string) =>
  [...text]
    .map((one) => {
      const [upper, lower] = [one.toUpperCase(), one.toUpperCase().toLowerCase()]
      return one === 'ı' || [...upper].length > 1 || [...lower].length > 1 ? one : lower
    })
    .join('')

/** Returns a function that matches texts against a pattern of `$like`, by a regular expression. */
export function likeMatcher(pattern: string) {
  const source = foldCase(pattern).replace(/\\[%_\\]|[%_]|[\\^$.*+?()[\]{}|/-]/g, (part) =>
    part === '%' ? '.*' : part === '_' ? '.' : `\\x${part.at(-1)!.charCodeAt(0).toString(16)}`,
  )
  const expression = new RegExp(`^${source}$`, 'su')
  return (text: string) => expression.test(foldCase(text))
}

/** The types of fields that `$like` accepts. */
export const PATTERNED = ['string', 'text', 'email', 'url', 'file', 'relation']
export const isPatterned = (name: string, type?: string) =>
  name.includes('.') || ['identifier', '_id', 'user', 'workspace'].includes(name) || PATTERNED.includes(type ?? '')

/** Returns the reference model of a blueprint with fields of these types, by their keys. */
export function referenceModel(types: Record<string, string>) {
  /** Returns the values of a field in an entity, whether it has the field at all, and what a queried text may mean. */
  function readField(
    name: string,
    entity: Entity,
  ): { has: boolean; values: Comparable[]; meant(text: string): Comparable[] } {
    if (name === 'created' || name === 'updated')
      return { has: true, values: [Date.parse(entity[name])], meant: (text) => [Date.parse(text)] }
    if (COLUMNS.includes(name)) {
      const value = entity[name] as string | null
      return { has: value !== null, values: value === null ? [] : [value], meant: (text) => [text] }
    }
    const [key = '', ...path] = name.split('.')
    const value = entity.metadata[key]
    if (path.length) {
      const values = scalarsAt(value, path)
      const meant = (text: string) => [
        text,
        ...(/^(true|false)$/.test(text) ? [text === 'true'] : []),
        ...(isNumber(text) ? [Number(text)] : []),
      ]
      return { has: values.length > 0, values, meant }
    }
    const meaning = parsers[types[key]!] ?? ((text) => text)
    const values = value === undefined ? [] : [value].flat().map((one) => meaning(`${one}`))
    return { has: value !== undefined, values, meant: (text) => [meaning(text)] }
  }

  function holds({ name, operator, text }: Filter, entity: Entity): boolean {
    const { has, values, meant } = readField(name, entity)
    if (operator === '[$exists]') return has === /^(true|1)$/.test(text)
    if (operator === '[$like]') {
      const fitting = likeMatcher(text)
      return values.some((value) => typeof value === 'string' && fitting(value))
    }
    const wanted = (/in\]$/.test(operator) ? text.split(',').filter(Boolean) : [text]).flatMap(meant)
    const isIn = values.some((value) => wanted.includes(value))
    if (operator === '' || operator === '[$in]') return isIn
    if (operator === '[$ne]' || operator === '[$nin]') return !isIn
    // A part of an object has no type here, so the text has the most specific one that it can be parsed as.
    const bound = wanted.at(-1)!
    return values.some((value) => {
      if (typeof value !== typeof bound) return false
      const comparison = compareScalars(value, bound)
      return (
        (comparison === 0 && operator.includes('e')) || (operator.startsWith('[$l') ? comparison < 0 : comparison > 0)
      )
    })
  }

  /** `entities` are in the order of their creation, which also decides between equal values. */
  function sort(entities: Entity[], by: readonly Sort[]): Entity[] {
    const indexOf = new Map(entities.map((entity, index) => [entity, index]))
    const [first = { name: 'created', descending: true }] = by
    return [...entities].sort((one, other) => {
      for (const { name, descending } of by) {
        const [left, right] = [readField(name, one), readField(name, other)]
        if (left.has !== right.has) return left.has ? -1 : 1
        const comparison = left.has ? compareScalars(left.values[0]!, right.values[0]!) : 0
        if (comparison) return descending ? -comparison : comparison
      }
      return (indexOf.get(one)! - indexOf.get(other)!) * (first.descending ? -1 : 1)
    })
  }

  return { holds, sort }
}

/** Returns the query string of filters, sorting and options. */
export const toQueryString = (filters: Filter[], by: readonly Sort[], options: Record<string, unknown>) =>
  [
    ...filters.map(({ name, operator, text }) => [name + operator, text]),
    ...(by.length ? [['$sort', by.map(({ name, descending }) => (descending ? '-' : '') + name).join(',')]] : []),
    ...Object.entries(options).map(([name, value]) => [name, `${value}`]),
  ]
    .map(([name, value]) => `${encodeURIComponent(name!)}=${encodeURIComponent(value!)}`)
    .join('&')
