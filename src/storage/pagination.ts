import { asc, desc, type SQL, sql } from 'drizzle-orm'
import type { SQLiteColumn } from 'drizzle-orm/sqlite-core'
import { t } from 'elysia'
import { badRequest, type FieldError } from '../core/problem'
import { listParameter, parseList } from '../core/query-lists'
import type { ListPage } from '../core/response-headers'
import { isTrue, parseOptional } from '../core/shapes'
import { conditionAfter, type OrderKey, toCursor } from './keyset'

const DEFAULT_LIMIT = 100
const MAX_LIMIT = 1_000
const MAX_SORT_KEYS = 10

const queryOption = (schema: object, description: string) => t.Optional(t.String({ description, 'x-schema': schema }))

/** The query parameters of a list. A route adds its own filters: `t.Object({ ...listQuery, kind: … })`. */
export const listQuery = {
  limit: queryOption(
    { type: 'integer', minimum: 0, default: DEFAULT_LIMIT },
    `page size; at most ${MAX_LIMIT}, in which case the header X-Limit is sent`,
  ),
  page: queryOption({ type: 'integer', minimum: 0, default: 1 }, 'page number, starting at 1'),
  sort: listParameter('fields to sort by; prefix a field with "-" for descending order', {
    ...{ type: 'string', pattern: '^ *[+-]?\\w+ *(, *[+-]?\\w+ *)*$' },
  }),
  count: queryOption({ type: 'boolean' }, 'adds the header X-Total-Count'),
  $count: t.Optional(t.String({ 'x-alias-of': 'count' })),
}
export type ListQuery = { [option in keyof typeof listQuery]?: string }

/**
 * The query parameters of a list whose new rows come first: it can be paged by a cursor, so that no row comes twice.
 */
export const growingListQuery = {
  ...listQuery,
  $after: queryOption({ type: 'string' }, 'cursor of the previous page: follow its `Link` header'),
}
export type GrowingListQuery = { [option in keyof typeof growingListQuery]?: string }

/** The columns by which a list can be sorted, by their names in the API. `_id` breaks ties. */
export type SortableColumns = { _id: SQLiteColumn; [name: string]: SQLiteColumn }

/** The rows to read and their order. */
export type Page = {
  limit: number
  /** Whether the requested limit exceeds the largest page. */
  clamped: boolean
  offset: number
  order: SQL[]
  number: number
  count: boolean
  keys: OrderKey[]
  /** The condition of `$after`. It applies to the list, but not to its count. */
  after?: SQL
}

/** Parses the query of a list. @throws 400 INVALID_INPUT with every invalid parameter */
export function parsePage(query: GrowingListQuery, sortable: SortableColumns, defaultSort = '-created'): Page {
  const errors: FieldError[] = []
  const requested = parseInteger('limit', DEFAULT_LIMIT)
  const limit = Math.min(requested, MAX_LIMIT)
  const number = Math.max(1, parseInteger('page', 1))
  const sortParts = parseList(parseOptional(query.sort) ?? defaultSort, 'sort')
  const keys = [...new Set(sortParts.filter(Boolean))]
  if (keys.length > MAX_SORT_KEYS) addError('sort', `Sort by at most ${MAX_SORT_KEYS} fields.`)
  const orderKeys = keys.flatMap((key): OrderKey[] => {
    const name = key.replace(/^[+-]/, '')
    if (Object.hasOwn(sortable, name)) return [{ name, column: sortable[name]!, descending: key.startsWith('-') }]
    addError('sort', `This list cannot be sorted by "${name}". Use one of: ${Object.keys(sortable).join(', ')}.`)
    return []
  })
  if (!orderKeys.some(({ column }) => column === sortable._id))
    orderKeys.push({ name: '_id', column: sortable._id, descending: !!keys[0]?.startsWith('-') })
  const count = parseOptional(query.count) ?? parseOptional(query.$count) ?? 'false'
  if (!/^(true|false|0|1)$/.test(count)) addError('count', 'count must be true or false.')
  if (errors.length) badRequest(...errors)
  const order = orderKeys.map(({ column, descending }) => toOrderBy(column, descending))
  const page = { limit, clamped: requested > limit, order, number, count: isTrue(count), keys: orderKeys }
  const cursor = parseOptional(query.$after)
  if (cursor === undefined) return { ...page, offset: (number - 1) * limit }
  return { ...page, offset: 0, after: conditionAfter(orderKeys, cursor) }

  function parseInteger(name: keyof ListQuery, otherwise: number) {
    const text = parseOptional(query[name]) ?? `${otherwise}`
    if (!/^\d{1,15}$/.test(text)) addError(name, `${name} must be a whole number, not less than 0.`)
    return Number(text)
  }
  function addError(path: string, message: string) {
    errors.push({ path, message })
  }
}

/** Returns the rows of a page and, if there is one, one more row, which shows that there is a next page. */
export const applyPage = <Rows>({ order, limit, offset }: Page, query: UnorderedQuery<Rows>): Rows =>
  query
    .orderBy(...order)
    .limit(limit + 1)
    .offset(offset)

const MAX_PAGE_LENGTH = 4 << 20 // characters of JSON of a page whose rows may be large
const ROWS_PER_READ = 50

/**
 * Returns the rows of a page of a growing list, and the page that they are: it ends early, after at least one row, when
 * its rows are larger than 4 MiB. Reads no more than it returns, and some rows.
 */
export async function readBoundedPage<Row>(
  page: Page,
  createQuery: () => UnorderedQuery<PromiseLike<Row[]>>,
): Promise<{ page: Page; rows: Row[] }> {
  const rows: Row[] = []
  let length = 0
  while (rows.length <= page.limit) {
    const count = Math.min(ROWS_PER_READ, page.limit + 1 - rows.length)
    const read = await createQuery()
      .orderBy(...page.order)
      .limit(count)
      .offset(page.offset + rows.length)
    for (const row of read) {
      rows.push(row)
      length += JSON.stringify(row).length
      if (length > MAX_PAGE_LENGTH && rows.length > 1) return { page: { ...page, limit: rows.length - 1 }, rows }
    }
    if (read.length < count) break
  }
  return { page, rows }
}

type UnorderedQuery<Rows> = { orderBy(...order: SQL[]): { limit(limit: number): { offset(offset: number): Rows } } }

/** Missing values come last in both directions. A column that cannot be null is left to its index. */
const toOrderBy = (column: SQLiteColumn, descending: boolean) => {
  const direction = descending ? desc(column) : asc(column)
  return column.notNull ? direction : sql`${direction} nulls last`
}

/** Returns a page of the rows that `applyPage` read; `count` returns how many rows the whole list has. */
export const toListPage = async <Row>(
  { limit, clamped, number, count: isCounted }: Page,
  rows: Row[],
  count: () => Promise<number>,
): Promise<ListPage<Row>> => ({
  items: rows.slice(0, limit),
  ...(clamped && { maxLimit: limit }),
  ...(isCounted && { total: await count() }),
  ...(limit && rows.length > limit ? { next: { page: `${number + 1}` } } : {}),
})

/**
 * Returns a page of a list whose new rows come first. The next page begins after the last row of this one, so that no row
 * comes twice.
 */
export async function toGrowingListPage<Row extends Record<string, unknown>, Shown>(
  page: Page,
  rows: Row[],
  count: () => Promise<number>,
  serialize: (row: Row) => Shown,
): Promise<ListPage<Shown>> {
  const { items, next, ...others } = await toListPage(page, rows, count)
  const last = items.at(-1)
  return {
    ...{ ...others, items: items.map(serialize) },
    ...(next && last && { next: { $after: toCursor(page.keys, last), page: undefined } }),
  }
}

/** Returns a page of other items, which `serialize` makes of its items. */
export const mapItems = <Item, Shown>(
  { items, ...others }: ListPage<Item>,
  serialize: (item: Item) => Shown,
): ListPage<Shown> => ({ ...others, items: items.map(serialize) })

const SCAN_CHUNK_ROWS = 500

/**
 * Returns a page of the rows of a query that a filter in code accepts. Reads the rows in order, chunk by chunk; to the end only
 * when they are counted.
 */
export async function readFilteredPage<Row>(
  page: Page,
  createQuery: () => UnorderedQuery<PromiseLike<Row[]>>,
  filter: (rows: Row[]) => Row[] | Promise<Row[]>,
): Promise<ListPage<Row>> {
  const { limit, offset, order, count } = page
  const rows: Row[] = []
  let total = 0
  for (let at = 0; ; at += SCAN_CHUNK_ROWS) {
    const query = createQuery().orderBy(...order)
    const chunk = await query.limit(SCAN_CHUNK_ROWS).offset(at)
    for (const row of await filter(chunk)) if (total++ >= offset && rows.length <= limit) rows.push(row)
    if (chunk.length < SCAN_CHUNK_ROWS || (rows.length > limit && !count))
      return toListPage(page, rows, async () => total)
  }
}

const MAX_NAMES = 1_000

/**
 * Returns the names of a query parameter that takes several, or undefined when there are none.
 * @throws 400 INVALID_INPUT for more than 1,000, and for a malformed list
 */
export function parseNames(value: string | undefined, path: string): string[] | undefined {
  const text = parseOptional(value)
  const names = text === undefined ? undefined : parseList(text, path)
  if (names && names.length > MAX_NAMES) badRequest({ path, message: `At most ${MAX_NAMES} names are allowed.` })
  return names
}

/**
 * Returns the fields that a query selects, separated by spaces or commas.
 * @throws 400 INVALID_INPUT for an unknown field
 */
export function parseSelect(select: string | undefined, fields: readonly string[]): Set<string> | undefined {
  const text = parseOptional(select)
  const names = text?.startsWith('[') ? parseList(text, 'select') : text?.split(/[\s,]+/).filter(Boolean)
  const unknown = names?.find((name) => !fields.includes(name))
  if (unknown !== undefined)
    badRequest({ path: 'select', message: `Unknown field "${unknown}". Use one of: ${fields.join(', ')}.` })
  return names && new Set(names)
}
