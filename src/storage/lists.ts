import { asc, desc, type SQL, sql } from 'drizzle-orm'
import type { SQLiteColumn } from 'drizzle-orm/sqlite-core'
import { t } from 'elysia'
import type { Answer } from '../core/etag'
import { type Flaw, invalid } from '../core/problem'
import { given, isOn } from '../core/shapes'

const LIMIT = 100
const MAX_LIMIT = 1_000
const ORDERS = 10

const option = (description: string) => t.Optional(t.String({ description }))

/** What the query of a list may say. A route's own filters stand beside it: `t.Object({ ...listing, kind: … })`. */
export const listing = {
  limit: option('how many; default: 100, at most 1000 (the header X-Limit says so where more were asked for)'),
  page: option('which page of so many, from 1'),
  sort: option('what to sort by, comma-separated; "-" before one for descending'),
  count: option('true: adds the header X-Total-Count'),
  $count: option('the same as `count`, as lists of entities call it'),
}
export type Listing = { [option in keyof typeof listing]?: string }

/** By what a list can be sorted, as the wire calls it. `_id` tells equals apart. */
export type Sortable = { _id: SQLiteColumn; [name: string]: SQLiteColumn }

/** What to read, in which order. */
export type Page = { limit: number; clamped: boolean; offset: number; order: SQL[]; number: number; count: boolean }

/** Reads the query of a list. @throws 400 with everything that makes no sense. */
export function pageOf(query: Listing, sortable: Sortable, standard = '-created'): Page {
  const flaws: Flaw[] = []
  const asked = whole('limit', LIMIT)
  const limit = Math.min(asked, MAX_LIMIT)
  const number = Math.max(1, whole('page', 1))
  const parts = (given(query.sort) ?? standard).split(',').map((part) => part.trim())
  const keys = [...new Set(parts.filter(Boolean))]
  if (keys.length > ORDERS) refuse('sort', `Sort by at most ${ORDERS} things.`)
  const order = keys.flatMap((key) => {
    const name = key.replace(/^[+-]/, '')
    if (Object.hasOwn(sortable, name)) return [ordered(sortable[name]!, key.startsWith('-'))]
    refuse('sort', `This list cannot be sorted by "${name}". Use one of: ${Object.keys(sortable).join(', ')}.`)
    return []
  })
  order.push(ordered(sortable._id, !!keys[0]?.startsWith('-')))
  const count = given(query.count) ?? given(query.$count) ?? 'false'
  if (!/^(true|false|0|1)$/.test(count)) refuse('count', 'count must be true or false.')
  if (flaws.length) invalid(...flaws)
  return { limit, clamped: asked > limit, offset: (number - 1) * limit, order, number, count: isOn(count) }

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

/** A page's rows; `Link` tells where the next ones are, and `X-Total-Count` how many there are, if that was asked. */
export async function answerPage<Row>(
  { request: { url }, set }: Answer,
  { limit, clamped, number, count }: Page,
  rows: Row[],
  total: () => Promise<number>,
): Promise<Row[]> {
  const headers = set.headers as Record<string, string>
  if (clamped) headers['x-limit'] = `${limit}`
  if (count) headers['x-total-count'] = `${await total()}`
  if (limit && rows.length > limit) {
    const [path = '', search] = url.slice(url.indexOf('/', 8)).split('?')
    const next = new URLSearchParams(search)
    next.set('page', `${number + 1}`)
    headers.link = `<${path}?${next}>; rel="next"`
  }
  return rows.slice(0, limit)
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
    invalid({ path: 'select', message: `There is no field "${unknown}". Choose among ${fields.join(', ')}.` })
  return names && new Set(names)
}
