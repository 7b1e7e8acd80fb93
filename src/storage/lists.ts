import { asc, desc, type SQL, sql } from 'drizzle-orm'
import type { SQLiteColumn } from 'drizzle-orm/sqlite-core'
import { t } from 'elysia'
import type { Answer } from '../core/etag'
import { type Flaw, invalid } from '../core/problem'
import { given, isOn } from '../core/shapes'
import { conditionAfter, cursorAfter, type OrderKey } from './keyset'

const LIMIT = 100
const MAX_LIMIT = 1_000
const ORDERS = 10

const option = (schema: object, description: string) => t.Optional(t.String({ description, 'x-schema': schema }))

/** What the query of a list may say. A route's own filters stand beside it: `t.Object({ ...listing, kind: … })`. */
export const listing = {
  limit: option(
    { type: 'integer', minimum: 0, default: LIMIT },
    `how many; at most ${MAX_LIMIT} are answered, and the header X-Limit says so`,
  ),
  page: option({ type: 'integer', minimum: 0, default: 1 }, 'which page of that many, from 1'),
  sort: option(
    { type: 'string', pattern: '^ *[+-]?\\w+ *(, *[+-]?\\w+ *)*$' },
    'fields to sort by, comma-separated; "-" before one for descending',
  ),
  count: option({ type: 'boolean' }, 'adds the header X-Total-Count'),
  $count: option({ type: 'boolean' }, 'the same as `count`'),
}
export type Listing = { [option in keyof typeof listing]?: string }

/** The same for lists that grow at their head: they page by a place in the list, so that nothing comes twice. */
export const growingListing = {
  ...listing,
  $after: option(
    { type: 'string' },
    'the place in the list behind which the page begins: take the `Link` of the page before',
  ),
}
export type GrowingListing = { [option in keyof typeof growingListing]?: string }

/** By what a list can be sorted, as the wire calls it. `_id` tells equals apart. */
export type Sortable = { _id: SQLiteColumn; [name: string]: SQLiteColumn }

/** What to read, in which order. */
export type Page = {
  limit: number
  /** Whether more were asked for than a page may have. */
  clamped: boolean
  offset: number
  order: SQL[]
  number: number
  count: boolean
  keys: OrderKey[]
  /** What `$after` asks for, which belongs to the condition of the list, but not of its count. */
  after?: SQL
}

/** Reads the query of a list. @throws 400 with everything that makes no sense. */
export function pageOf(query: GrowingListing, sortable: Sortable, standard = '-created'): Page {
  const flaws: Flaw[] = []
  const asked = whole('limit', LIMIT)
  const limit = Math.min(asked, MAX_LIMIT)
  const number = Math.max(1, whole('page', 1))
  const parts = (given(query.sort) ?? standard).split(',').map((part) => part.trim())
  const keys = [...new Set(parts.filter(Boolean))]
  if (keys.length > ORDERS) refuse('sort', `Sort by at most ${ORDERS} things.`)
  const orderKeys = keys.flatMap((key): OrderKey[] => {
    const name = key.replace(/^[+-]/, '')
    if (Object.hasOwn(sortable, name)) return [{ name, column: sortable[name]!, descending: key.startsWith('-') }]
    refuse('sort', `This list cannot be sorted by "${name}". Use one of: ${Object.keys(sortable).join(', ')}.`)
    return []
  })
  if (!orderKeys.some(({ column }) => column === sortable._id))
    orderKeys.push({ name: '_id', column: sortable._id, descending: !!keys[0]?.startsWith('-') })
  const count = given(query.count) ?? given(query.$count) ?? 'false'
  if (!/^(true|false|0|1)$/.test(count)) refuse('count', 'count must be true or false.')
  if (flaws.length) invalid(...flaws)
  const order = orderKeys.map(({ column, descending }) => ordered(column, descending))
  const page = { limit, clamped: asked > limit, order, number, count: isOn(count), keys: orderKeys }
  const cursor = given(query.$after)
  if (cursor === undefined) return { ...page, offset: (number - 1) * limit }
  return { ...page, offset: 0, after: conditionAfter(orderKeys, cursor) }

  function whole(name: keyof Listing, otherwise: number) {
    const text = given(query[name]) ?? `${otherwise}`
    if (!/^\d{1,15}$/.test(text)) refuse(name, `${name} must be a whole number, not less than 0.`)
    return Number(text)
  }
  function refuse(path: string, message: string) {
    flaws.push({ path, message })
  }
}

/** The rows of a page, and one more if there is one, which tells of a next page. */
export const paged = <Rows>({ order, limit, offset }: Page, query: Unordered<Rows>): Rows =>
  query
    .orderBy(...order)
    .limit(limit + 1)
    .offset(offset)

type Unordered<Rows> = { orderBy(...order: SQL[]): { limit(limit: number): { offset(offset: number): Rows } } }

/** What is missing comes last in both directions; what can't be missing is left to its index. */
const ordered = (column: SQLiteColumn, descending: boolean) => {
  const direction = descending ? desc(column) : asc(column)
  return column.notNull ? direction : sql`${direction} nulls last`
}

/** A page's rows; `X-Limit` tells how many a page has at most, where more were asked for; `Link` tells where the next ones are, and `X-Total-Count` how many there are, if that was asked. */
export async function answerPage<Row>(
  { request: { url }, set }: Answer,
  { limit, clamped, number, count }: Page,
  rows: Row[],
  total: () => Promise<number>,
): Promise<Row[]> {
  const headers = set.headers as Record<string, string>
  if (clamped) headers['x-limit'] = `${limit}`
  if (count) headers['x-total-count'] = `${await total()}`
  if (limit && rows.length > limit) headers.link = linkTo(url, { page: `${number + 1}` })
  return rows.slice(0, limit)
}

/** A page of a list that grows at its head: `Link` names the place where it ends, so the next page begins right there. */
export async function answerGrowingPage<Row extends Record<string, unknown>, Shown>(
  answer: Answer,
  page: Page,
  rows: Row[],
  total: () => Promise<number>,
  show: (row: Row) => Shown,
): Promise<Shown[]> {
  const headers = answer.set.headers as Record<string, string>
  const shown = rows.slice(0, page.limit)
  const last = shown.at(-1)
  if (page.clamped) headers['x-limit'] = `${page.limit}`
  if (page.count) headers['x-total-count'] = `${await total()}`
  if (last && rows.length > page.limit)
    headers.link = linkTo(answer.request.url, { $after: cursorAfter(page.keys, last), page: undefined })
  return shown.map(show)
}

function linkTo(url: string, changes: Record<string, string | undefined>) {
  const [path = '', search] = url.slice(url.indexOf('/', 8)).split('?')
  const next = new URLSearchParams(search)
  for (const [name, value] of Object.entries(changes))
    if (value === undefined) next.delete(name)
    else next.set(name, value)
  return `<${path}?${next}>; rel="next"`
}

const SLICE = 500 // rows that are looked at together

/**
 * The rows of a page, of those that only code can judge: goes through all in their order, slice by slice; to the end only
 * where they are to be counted.
 */
export async function judgedPage<Row>(
  { limit, offset, count }: Page,
  read: (limit: number, offset: number) => Promise<Row[]>,
  fitting: (rows: Row[]) => Row[] | Promise<Row[]>,
): Promise<{ rows: Row[]; total: number }> {
  const rows: Row[] = []
  let total = 0
  for (let at = 0; ; at += SLICE) {
    const slice = await read(SLICE, at)
    for (const row of await fitting(slice)) if (total++ >= offset && rows.length <= limit) rows.push(row)
    if (slice.length < SLICE || (rows.length > limit && !count)) return { rows, total }
  }
}

const NAMES = 1_000

/** Names that a query lists, comma-separated; undefined where it says nothing. @throws 400 for too many */
export function namesOf(value: string | undefined, path: string): string[] | undefined {
  const names = given(value)
    ?.split(',')
    .map((name) => name.trim())
    .filter(Boolean)
  if (names && names.length > NAMES) invalid({ path, message: `Name at most ${NAMES}.` })
  return names
}

/** The fields that a query selects, separated by spaces or commas. @throws 400 for others than there are */
export function selectedOf(select: string | undefined, fields: readonly string[]): Set<string> | undefined {
  const names = given(select)
    ?.split(/[\s,]+/)
    .filter(Boolean)
  const unknown = names?.find((name) => !fields.includes(name))
  if (unknown !== undefined)
    invalid({ path: 'select', message: `There is no field "${unknown}". Use one of: ${fields.join(', ')}.` })
  return names && new Set(names)
}
