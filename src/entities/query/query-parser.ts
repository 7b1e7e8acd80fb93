import type { Actor } from '../../accounts/actors'
import { isNeverIndexed } from '../../blueprints/field-indexes'
import { fieldTypes } from '../../blueprints/fields'
import type { FieldType } from '../../blueprints/fields/field-type'
import type { Model } from '../../blueprints/model'
import { type Caller, mayReadField } from '../../blueprints/permissions'
import { readList } from '../../core/list-text'
import { badRequest, type FieldError } from '../../core/problem'
import { malformedListMessage, mergeLists } from '../../core/query-lists'
import { isFlag, isTrue } from '../../core/shapes'
import { findTimeZone, type TimeZone, UTC, unknownTimeZoneMessage } from '../../core/time-zone'
import { suggestName } from '../../core/unknown-keys'
import { isLastWordComplete, tokenize, toMatchQuery } from '../search/tokenizer'
import { isSingleValued, MAX_PATH_LENGTH } from '../store/index-keys'
import { parseNames } from './name-list'
import { getTypeAtPath } from './object-paths'
import { mergeRanges, OPERATORS, parseCondition, parseLike } from './operators'
import { byCreated } from './order'
import { type PopulateOptions, parsePopulate } from './populate-options'
import { type Condition, type LikeCondition, type Order, type ResolvedName, type Target, toFieldTarget } from './target'

/** A parsed query. It is cached and shared, so it must not be changed. */
export type Query = {
  readonly conditions: Condition[]
  readonly likes: LikeCondition[]
  /** What entities are sorted by, at least one term. */
  order: Order[]
  /** The words to search for, as a full-text expression; empty when no field can contain them. */
  search?: string
  /** These words instead of those of `search`, as long as no index has them: they are looked for in the documents. */
  words?: string
  /** Whether the best matches of the words come first. */
  ranked: boolean
  limit: number
  /** Whether the requested limit exceeds the maximum. */
  clamped: boolean
  skip: number
  /** Whether the matching entities are counted, exactly or by an estimate. */
  count: boolean | 'estimate'
  select?: string[]
  flat: boolean
  related?: PopulateOptions
  /** The query string without the options that set the start of the page; empty, or with an ampersand at its end. */
  listQueryString: string
}

const DEFAULT_LIMIT = 100
export const MAX_LIMIT = 1_000
const MAX_FILTERS = 20
const MAX_SORT_FIELDS = 10
const MAX_SEARCH_WORDS = 20
const MAX_SEARCH_LENGTH = 1_000 // characters

const columnTarget = (name: Extract<Target, { at: 'column' }>['column']): Target => ({ at: 'column', column: name })
const COLUMN_FIELDS: Record<string, { target: Target; kind: FieldType }> = {
  _id: { target: columnTarget('e._id'), kind: fieldTypes.string },
  identifier: { target: columnTarget('e.identifier'), kind: fieldTypes.string },
  user: { target: columnTarget('e."user"'), kind: fieldTypes.string },
  workspace: { target: columnTarget('e.workspace'), kind: fieldTypes.string },
  created: { target: columnTarget('e.created'), kind: fieldTypes.datetime },
  updated: { target: columnTarget('e.updated'), kind: fieldTypes.datetime },
}

/** The parameters that begin with a dollar sign. */
const QUERY_OPTIONS = [
  '$limit',
  '$skip',
  '$page',
  '$sort',
  '$select',
  '$flat',
  '$count',
  '$q',
  '$qProps',
  '$timezone',
  '$populate',
  '$outerPopulate',
]

/** Those that take several values. */
const LIST_OPTIONS = ['$sort', '$select', '$qProps', '$populate', '$outerPopulate']
const isListName = (name: string) => LIST_OPTIONS.includes(name) || /\[\$n?in\]$/.test(name)

const queryCache = new WeakMap<Model, Map<string, Query>>()
const MAX_CACHED_QUERIES = 2_000 // queries per blueprint

/**
 * Parses the query of a list. Hidden fields are treated as unknown. The result is cached: as long as a blueprint does
 * not change, the same text gives the same object. Bare days begin at midnight of `$timezone`, else of the given zone.
 * @throws 400 with all errors of the query
 */
export function parseQuery(model: Model, actor: Actor | undefined, search: string, zone = UTC): Query {
  const queries = queryCache.get(model) ?? new Map<string, Query>()
  queryCache.set(model, queries)
  const zoned = zone === UTC ? search : `${search} ${zone.name}`
  const key = model.guarded ? `${zoned} ${actor?.privileged} ${JSON.stringify(actor?.roles)}` : zoned
  const cached = queries.get(key)
  if (cached) return cached
  const query = parseUncached(model, actor, search, zone)
  if (queries.size >= MAX_CACHED_QUERIES) queries.clear()
  if (key.length < 500) queries.set(key, query)
  return query
}

function parseUncached(model: Model, actor: Actor | undefined, search: string, defaultZone: TimeZone): Query {
  const flaws: FieldError[] = []
  const options = new Map<string, string>()
  const conditions: Condition[] = []
  const likes: LikeCondition[] = []
  const addError = (path: string, message: string) => void flaws.push({ path, message })

  const parameters = new URLSearchParams(search)
  const zone = readZone(parameters.get('$timezone'))
  for (const [name, value] of mergeLists(parameters, isListName)) {
    if (value === '' || value === 'undefined' || name === 'bypassAdmin') continue
    if (value.includes('\0')) addError(name, 'Text must not contain the character U+0000.')
    if (name.startsWith('$')) {
      if (LIST_OPTIONS.includes(name) && !readList(value)) addError(name, malformedListMessage(name))
      else if (QUERY_OPTIONS.includes(name)) options.set(name, value)
      else addError(name, `Unknown option "${name}".${suggestName(name, QUERY_OPTIONS)}`)
      continue
    }
    const [, property = '', operator] = name.match(/^([^[\]]+)(?:\[([^[\]]*)\])?$/) ?? []
    const resolved = resolveName(model, actor, property)
    if (!resolved) addError(name, unknownFieldMessage(model, actor, property || name))
    else if (operator !== undefined && !OPERATORS.includes(operator))
      addError(name, `Unknown operator "${operator}". Use one of: ${OPERATORS.join(', ')}.`)
    else if (typeof resolved === 'string') addError(name, resolved)
    else {
      const condition =
        operator === '$like'
          ? parseLike(resolved, property, value)
          : parseCondition(resolved, operator, value, property, zone)
      if (typeof condition === 'string') addError(name, condition)
      else if ('pattern' in condition) likes.push(condition)
      else conditions.push(condition)
    }
  }
  if (conditions.length + likes.length > MAX_FILTERS) addError('', `A query has at most ${MAX_FILTERS} filters.`)

  const sortNames = [...new Set(parseNames(options.get('$sort') ?? ''))]
  if (sortNames.length > MAX_SORT_FIELDS) addError('$sort', `Sort by at most ${MAX_SORT_FIELDS} fields.`)
  const order = sortNames.flatMap((part) => {
    const descending = part.startsWith('-')
    const resolved = resolveName(model, actor, part.replace(/^[+-]/, ''))
    if (resolved && typeof resolved !== 'string' && (resolved.target.at === 'column' || resolved.target.single))
      return [{ target: resolved.target, descending }]
    addError('$sort', unsortableMessage(model, part))
    return []
  })
  const limit = number('$limit', DEFAULT_LIMIT)
  const query: Query & { skip: number; select?: string[]; search?: string } = {
    conditions: mergeRanges(conditions),
    likes,
    order: order.length ? order : [byCreated(true)],
    ranked: false,
    limit: Math.min(limit, MAX_LIMIT),
    clamped: limit > MAX_LIMIT,
    skip: number('$skip', 0),
    count: options.get('$count') === 'estimate' ? 'estimate' : flag('$count', false),
    flat: flag('$flat', true),
    related: parsePopulate(model, actor, options, addError),
    listQueryString: withoutPageOptions(search),
  }
  if (options.has('$page')) query.skip += (Math.max(1, number('$page', 1)) - 1) * query.limit
  const searchText = options.get('$q') ?? ''
  if (searchText.trim()) {
    query.search = toMatchQuery(parseWords(searchText), searchedFields(), isLastWordComplete(searchText))
    query.ranked = !!query.search && !order.length
  }
  if (options.has('$select')) query.select = parseSelect(options.get('$select')!)
  if (flaws.length) badRequest(...flaws.slice(0, 100))
  return query

  function readZone(name: string | null) {
    if (!name || name === 'undefined') return defaultZone
    const named = findTimeZone(name)
    if (!named) addError('$timezone', unknownTimeZoneMessage(name))
    return named ?? defaultZone
  }
  function number(name: string, standard: number) {
    const text = options.get(name)
    if (text === undefined) return standard
    if (/^\d{1,15}$/.test(text)) return Number(text)
    addError(name, `${name} must be a non-negative integer.`)
    return standard
  }
  function flag(name: string, standard: boolean) {
    const text = options.get(name)
    if (text === undefined) return standard
    if (isFlag(text)) return isTrue(text)
    addError(name, name === '$count' ? '$count must be true, false or estimate.' : `${name} must be true or false.`)
    return standard
  }
  function parseWords(text: string) {
    if (text.length > MAX_SEARCH_LENGTH) addError('$q', `$q has at most ${MAX_SEARCH_LENGTH} characters.`)
    const words = [...new Set(tokenize(text.slice(0, MAX_SEARCH_LENGTH)))]
    if (words.length > MAX_SEARCH_WORDS) addError('$q', `$q has at most ${MAX_SEARCH_WORDS} words.`)
    return words
  }
  function searchedFields() {
    const named = options.has('$qProps') ? parseNames(options.get('$qProps')!) : undefined
    const able = model.fields.filter((field) => field.kind.isSearchable && mayReadField(field, actor))
    for (const key of named ?? [])
      if (!able.some((field) => field.key === key))
        addError('$qProps', `"${key}" is not a searchable text field of "${model.key}".`)
    return able.filter(({ key }) => !named || named.includes(key)).map(({ number }) => number)
  }
  function parseSelect(text: string) {
    const keys = parseNames(text)
    for (const key of keys) {
      const field = model.field.get(key)
      if (!(field ? mayReadField(field, actor) : Object.hasOwn(COLUMN_FIELDS, key) || key === 'metadata'))
        addError('$select', unknownFieldMessage(model, actor, key))
    }
    return [...new Set(keys)]
  }
}

/** Returns the message for an unknown field name. It suggests a similar option or field that the caller may see. */
export function unknownFieldMessage(model: Model, actor: Caller | undefined, name: string): string {
  const option = QUERY_OPTIONS.find((one) => one.slice(1).toLowerCase() === name.toLowerCase())
  const suggestion = option ? ` Did you mean \`${option}\`?` : suggestName(name, visibleFieldNames(model, actor))
  return `The blueprint "${model.key}" has no field "${name}".${suggestion}`
}

const visibleFieldNames = (model: Model, actor: Caller | undefined) => [
  ...model.fields.filter((field) => mayReadField(field, actor)).map(({ key }) => key),
  ...Object.keys(COLUMN_FIELDS),
]

function unsortableMessage({ key }: Model, part: string): string {
  const [, name, direction] = part.match(/^[+-]?(.+?)[: ](asc|desc)$/i) ?? []
  const suggestion = name && ` Use ${/^d/i.test(direction ?? '') ? '-' : ''}${name}.`
  return `Entities of "${key}" cannot be sorted by "${part}".${suggestion ?? ''}`
}

function withoutPageOptions(search: string) {
  const others = new URLSearchParams(search)
  others.delete('$page')
  others.delete('$skip')
  return others.size ? `${others}&` : ''
}

/**
 * Resolves a name in a query. Returns an error message for a field that cannot be filtered, and undefined when unknown.
 */
export function resolveName(model: Model, actor: Actor | undefined, name: string): ResolvedName | string | undefined {
  if (Object.hasOwn(COLUMN_FIELDS, name)) return COLUMN_FIELDS[name]!
  const [key = '', ...rest] = name.split('.')
  const [field, path] = [model.field.get(key), rest.join('.')]
  if (!field || !mayReadField(field, actor)) return
  const object = !field.kind.toIndexKey
  if (path && !object) return
  if (path.length > MAX_PATH_LENGTH) return `A path into an object has at most ${MAX_PATH_LENGTH} characters.`
  if (!path && object) return `"${key}" is an object: use a path into it, such as "${key}.name".`
  if (!isSingleValued(field) && isNeverIndexed(field)) return `"${key}" is not indexed, so it cannot be filtered.`
  const target = toFieldTarget(model, field, path)
  return object ? { target, kind: undefined, part: getTypeAtPath(field.schema, path) } : { target, kind: field.kind }
}
