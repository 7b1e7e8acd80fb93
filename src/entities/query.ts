import type { Actor } from '../accounts/actors'
import type { FieldType } from '../blueprints/fields/type'
import { types } from '../blueprints/fields/types'
import type { Model, ModelField } from '../blueprints/model'
import { type Caller, mayRead } from '../blueprints/rules'
import { type Flaw, invalid } from '../core/problem'
import { suggestionOf } from '../core/unknown-keys'
import { isIndexed, isSingle, labelOf, PATH } from './keys'
import type { Pattern } from './like'
import { conditionOf, likeOf, OPERATORS, together } from './operators'
import { type PartType, partTypeOf } from './parts'
import { type Related, readRelated } from './related'
import { matchOf, wordsIn } from './words'

/** Where a value is kept: a column of the entity, or the texts of a field. */
export type Target =
  | { at: 'column'; column: 'e._id' | 'e.identifier' | 'e."user"' | 'e.workspace' | 'e.created' | 'e.updated' }
  | { at: 'field'; field: ModelField; path: string; label: string; single: boolean; indexed: boolean }

/** One thing that is asked of every entity. */
export type Condition = { target: Target } & (Test | { is: 'present' } | { is: 'absent' })
/** What can be asked of a value. */
export type Test = { is: 'in' | 'not in'; values: (string | number)[] } | { is: 'between'; from?: Bound; to?: Bound }
type Bound = { value: string | number; open: boolean }

/** What no engine can judge: which texts fit is found out by `fitting.ts`, so that letters are told apart alike. */
export type Like = { target: Target; pattern: Pattern }

export type Order = { target: Target; descending: boolean }

/** Never changed once it was read, for it is shared. */
export type Query = {
  readonly conditions: Condition[]
  readonly likes: Like[]
  order: Order[]
  /** The words that are searched for; empty where no field can have them. */
  search?: string
  /** Whether those come first that fit the words best. */
  ranked: boolean
  limit: number
  /** Whether more were asked for than a page may have. */
  clamped: boolean
  skip: number
  count: boolean
  select?: string[]
  flat: boolean
  related?: Related
  /** The text of the query but for where its page begins; empty, or with an ampersand at its end. */
  others: string
}

const LIMIT = 100
export const MAX_LIMIT = 1_000
const FILTERS = 20
const ORDERS = 10
const WORDS = 20
const SEARCH = 1_000 // characters

const column = (name: Extract<Target, { at: 'column' }>['column']): Target => ({ at: 'column', column: name })
const COLUMNS: Record<string, { target: Target; kind: FieldType }> = {
  _id: { target: column('e._id'), kind: types.string },
  identifier: { target: column('e.identifier'), kind: types.string },
  user: { target: column('e."user"'), kind: types.string },
  workspace: { target: column('e.workspace'), kind: types.string },
  created: { target: column('e.created'), kind: types.datetime },
  updated: { target: column('e.updated'), kind: types.datetime },
}

/** The parameters which begin with a dollar sign. */
const OPTIONS = [
  '$limit',
  '$skip',
  '$page',
  '$sort',
  '$select',
  '$flat',
  '$count',
  '$q',
  '$qProps',
  '$populate',
  '$outerPopulate',
]

const known = new WeakMap<Model, Map<string, Query>>()
const KNOWN = 2_000 // queries of a blueprint

/**
 * Reads the query of a list. Hidden fields are as good as unknown. What was asked before is not read again: as long as a
 * blueprint doesn't change, the same text gives the same object. @throws 400 with everything that makes no sense.
 */
export function readQuery(model: Model, actor: Actor | undefined, search: string): Query {
  const queries = known.get(model) ?? new Map<string, Query>()
  known.set(model, queries)
  const key = model.guarded ? `${search} ${actor?.privileged} ${JSON.stringify(actor?.roles)}` : search
  const found = queries.get(key)
  if (found) return found
  const query = read(model, actor, search)
  if (queries.size >= KNOWN) queries.clear()
  if (key.length < 500) queries.set(key, query)
  return query
}

function read(model: Model, actor: Actor | undefined, search: string): Query {
  const flaws: Flaw[] = []
  const options = new Map<string, string>()
  const conditions: Condition[] = []
  const likes: Like[] = []
  const refuse = (path: string, message: string) => void flaws.push({ path, message })

  for (const [name, value] of new URLSearchParams(search)) {
    if (value === '' || value === 'undefined' || name === 'bypassAdmin') continue
    if (value.includes('\0')) refuse(name, 'Text must not contain the character U+0000.')
    if (name.startsWith('$')) {
      if (OPTIONS.includes(name)) options.set(name, value)
      else refuse(name, `There is no option "${name}".${suggestionOf(name, OPTIONS)}`)
      continue
    }
    const [, property = '', operator] = name.match(/^([^[\]]+)(?:\[([^[\]]*)\])?$/) ?? []
    const found = resolve(model, actor, property)
    if (!found) refuse(name, unknownField(model, actor, property || name))
    else if (operator !== undefined && !OPERATORS.includes(operator))
      refuse(name, `There is no operator "${operator}". Use one of: ${OPERATORS.join(', ')}.`)
    else if (typeof found === 'string') refuse(name, found)
    else {
      const condition = operator === '$like' ? likeOf(found, property, value) : conditionOf(found, operator, value)
      if (typeof condition === 'string') refuse(name, condition)
      else if ('pattern' in condition) likes.push(condition)
      else conditions.push(condition)
    }
  }
  if (conditions.length + likes.length > FILTERS) refuse('', `A query has at most ${FILTERS} filters.`)

  const parts = (options.get('$sort') ?? '-created').split(',').map((part) => part.trim())
  const order = [...new Set(parts.filter(Boolean))]
  if (order.length > ORDERS) refuse('$sort', `Sort by at most ${ORDERS} fields.`)
  const limit = number('$limit', LIMIT)
  const query: Query & { skip: number; select?: string[]; search?: string } = {
    conditions: together(conditions),
    likes,
    order: order.flatMap((part) => {
      const descending = part.startsWith('-')
      const found = resolve(model, actor, part.replace(/^[+-]/, ''))
      if (found && typeof found !== 'string' && (found.target.at === 'column' || found.target.single))
        return [{ target: found.target, descending }]
      refuse('$sort', unsortable(model, part))
      return []
    }),
    ranked: false,
    limit: Math.min(limit, MAX_LIMIT),
    clamped: limit > MAX_LIMIT,
    skip: number('$skip', 0),
    count: flag('$count', false),
    flat: flag('$flat', true),
    related: readRelated(model, actor, options, refuse),
    others: withoutStart(search),
  }
  if (options.has('$page')) query.skip += (Math.max(1, number('$page', 1)) - 1) * query.limit
  const words = wanted()
  if (words.length) {
    query.search = matchOf(words, searched())
    query.ranked = !!query.search && !options.has('$sort')
  }
  if (options.has('$select')) query.select = selection(options.get('$select')!)
  if (flaws.length) invalid(...flaws.slice(0, 100))
  return query

  function number(name: string, standard: number) {
    const text = options.get(name)
    if (text === undefined) return standard
    if (/^\d{1,15}$/.test(text)) return Number(text)
    refuse(name, `${name} must be a whole number, not less than 0.`)
    return standard
  }
  function flag(name: string, standard: boolean) {
    const text = options.get(name)
    if (text === undefined) return standard
    if (/^(true|false|0|1)$/.test(text)) return text === 'true' || text === '1'
    refuse(name, `${name} must be true or false.`)
    return standard
  }
  function wanted() {
    const text = options.get('$q') ?? ''
    if (text.length > SEARCH) refuse('$q', `$q has at most ${SEARCH} characters.`)
    const words = [...new Set(wordsIn(text.slice(0, SEARCH)))]
    if (words.length > WORDS) refuse('$q', `$q has at most ${WORDS} words.`)
    return words
  }
  function searched() {
    const named = options
      .get('$qProps')
      ?.split(',')
      .map((key) => key.trim())
    const able = model.fields.filter((field) => field.kind.searched && mayRead(field, actor))
    for (const key of named?.filter(Boolean) ?? [])
      if (!able.some((field) => field.key === key)) refuse('$qProps', `"${key}" is no text of "${model.key}".`)
    return able.filter(({ key }) => !named || named.includes(key)).map(({ number }) => number)
  }
  function selection(text: string) {
    const keys = text
      .split(',')
      .map((key) => key.trim())
      .filter(Boolean)
    for (const key of keys) {
      const field = model.field.get(key)
      if (!(field ? mayRead(field, actor) : Object.hasOwn(COLUMNS, key) || key === 'metadata'))
        refuse('$select', unknownField(model, actor, key))
    }
    return [...new Set(keys)]
  }
}

/** What is said of a name that no field has: the option or the field that was probably meant, of those the caller may see. */
export function unknownField(model: Model, actor: Caller | undefined, name: string): string {
  const option = OPTIONS.find((one) => one.slice(1).toLowerCase() === name.toLowerCase())
  const meant = option ? ` Did you mean \`${option}\`?` : suggestionOf(name, fieldNames(model, actor))
  return `The blueprint "${model.key}" has no field "${name}".${meant}`
}

const fieldNames = (model: Model, actor: Caller | undefined) => [
  ...model.fields.filter((field) => mayRead(field, actor)).map(({ key }) => key),
  ...Object.keys(COLUMNS),
]

function unsortable({ key }: Model, part: string): string {
  const [, name, direction] = part.match(/^[+-]?(.+?)[: ](asc|desc)$/i) ?? []
  const meant = name && ` Write ${/^d/i.test(direction ?? '') ? '-' : ''}${name}.`
  return `Entities of "${key}" cannot be sorted by "${part}".${meant ?? ''}`
}

function withoutStart(search: string) {
  const others = new URLSearchParams(search)
  others.delete('$page')
  others.delete('$skip')
  return others.size ? `${others}&` : ''
}

/** What a name in a query means; a text when it names something that can't be asked for. */
export function resolve(model: Model, actor: Actor | undefined, name: string): Resolved | string | undefined {
  if (Object.hasOwn(COLUMNS, name)) return COLUMNS[name]!
  const [key = '', ...rest] = name.split('.')
  const [field, path] = [model.field.get(key), rest.join('.')]
  if (!field || !mayRead(field, actor)) return
  const object = !field.kind.key
  if (path && !object) return
  if (path.length > PATH) return `A path into an object has at most ${PATH} characters.`
  if (!path && object) return `"${key}" is an object: name a part of it, such as "${key}.name".`
  const [single, indexed] = [isSingle(field), isIndexed(field)]
  if (!single && !indexed) return `"${key}" is not indexed, so it cannot be asked for.`
  const target: Target = { at: 'field', field, path, label: labelOf(field, path), single, indexed }
  return object ? { target, kind: undefined, part: partTypeOf(field.schema, path) } : { target, kind: field.kind }
}

/** A name of a query: where its values are, and of which kind; parts of objects are of the type that a schema says, or of any. */
export type Resolved = { target: Target; kind: FieldType | undefined; part?: PartType }

/** Which target it is: two of the same name are the same. */
export const nameOf = (target: Target) => (target.at === 'column' ? target.column : target.label)
