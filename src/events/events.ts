import { and, asc, desc, eq, gte, inArray, lt, type SQL } from 'drizzle-orm'
import type { SQLiteColumn } from 'drizzle-orm/sqlite-core'
import type { Ctx } from '../accounts/context'
import { config } from '../config'
import { DAY_MS, isIsoDate, now, parseIsoDateTime, toIsoString } from '../core/clock'
import { slot } from '../core/extension'
import { badRequest, type FieldError, notFound, Problem } from '../core/problem'
import { parseList } from '../core/query-lists'
import type { ListPage } from '../core/response-headers'
import { parseOptional } from '../core/shapes'
import { startOfInterval, type TimeZone } from '../core/time-zone'
import { readFairly } from '../entities/query/fair-reads'
import { deleteInBatches } from '../jobs/batch-delete'
import { type Event as EventRow, emit, toPublicEvent } from '../jobs/outbox'
import { events } from '../jobs/tables'
import type { Lease } from '../jobs/with-lease'
import { resolveTimeZone } from '../platform/settings/app-settings'
import { conditionAfter, toCursor } from '../storage/keyset'
import { applyPage, type GrowingListQuery, type Page, parsePage, toGrowingListPage } from '../storage/pagination'
import type { Db } from '../storage/port'
import type { Tenant } from '../tenancy/tenants'
import { CALLER_EVENT } from './known-events'
import type { Event, Filters, NewEvent } from './shapes'

const MAX_METADATA_LENGTH = 64 << 10 // characters as JSON; a page has up to 1,000 events
const ROWS_PER_BATCH = 500 // rows read before other work gets a turn
const PERIOD_LENGTHS_MS: Record<string, number> = {
  'last-day': DAY_MS,
  'last-week': 7 * DAY_MS,
  'last-month': 30 * DAY_MS,
  'last-year': 365 * DAY_MS,
  'all-time': Number.POSITIVE_INFINITY,
}

const { _id, source, kind, eventName, user, workspace, created } = events
const SORTABLE_COLUMNS = { _id, source, kind, eventName, created }

/** Returns a page of events, newest first. @throws 400, 503 BUSY */
export async function list(ctx: Ctx, query: Filters & GrowingListQuery, request: Request): Promise<ListPage<Event>> {
  const page = parsePage(query, SORTABLE_COLUMNS)
  const zone = await resolveEventZone(ctx, query)
  if (parseOptional(query.search))
    return readFairly(ctx, request, async (db) => {
      const { rows, total } = await searchPage(db, query, page, zone)
      return toGrowingListPage(page, rows, async () => total, toPublicEvent)
    })
  const { db } = ctx
  const where = toCondition(query, zone)
  const rows = await applyPage(page, db.select().from(events).where(and(where, page.after)))
  return toGrowingListPage(page, rows, () => db.$count(events, where), toPublicEvent)
}

/** Returns the zone of the days of a request. @throws 400 for an unknown one */
export const resolveEventZone = (ctx: Ctx, { timezone }: Filters) => resolveTimeZone(ctx, parseOptional(timezone))

/** Scans events in the order of a page until the page is full, or to the end to count all. */
async function searchPage(db: Db, query: Filters, page: Page, zone: TimeZone) {
  const rows: EventRow[] = []
  let [skip, total] = [page.offset, 0]
  for await (const event of findMatching(db, query, zone, page)) {
    total++
    if (skip > 0) skip--
    else if (rows.length <= page.limit) rows.push(event)
    else if (!page.count || page.after) break
  }
  return { rows, total: page.after && page.count ? sumCounts(await countFound(db, query, zone)) : total }
}

export const get = async ({ db }: Ctx, id: string): Promise<Event> =>
  toPublicEvent((!id.includes('\0') && (await db.select().from(events).where(eq(_id, id)).get())) || notFound('event'))

/** Returns the name of the plugin whose service account a user is, if any. */
export const sourcePluginLookup =
  slot<(tenant: Tenant, user: string) => Promise<string | undefined>>('plugin of a service account')

/** Sources that only the system may use, so that subscribers can rely on them. */
const SYSTEM_SOURCES = [
  'accounts',
  'blueprints',
  'entities',
  'payments',
  'ai',
  'plugins',
  'content',
  'jobs',
  'storage',
  'limits',
]

/**
 * Records an event of the caller. The source of a plugin's event is `plugin:<name>`. The source of a caller without the
 * role admin or editor gets the prefix `plugin:`.
 * @throws 400 without a source, kind and eventName, or with too much metadata; 403 for a source of the system
 */
export async function create(ctx: Ctx, { source, kind, eventName, ...rest }: NewEvent) {
  if (!source && !kind && !eventName)
    badRequest({ path: '/eventName', message: 'An event needs a source, a kind or an eventName.' })
  if (JSON.stringify(rest.metadata ?? {}).length > MAX_METADATA_LENGTH)
    badRequest({
      path: '/metadata',
      message: `The metadata must have at most ${MAX_METADATA_LENGTH} characters as JSON.`,
    })
  const { roles, user, workspace } = ctx.actor
  const withDefaults = {
    source: source ?? CALLER_EVENT.source,
    kind: kind ?? CALLER_EVENT.kind,
    eventName: eventName ?? CALLER_EVENT.eventName,
  }
  const plugin = await sourcePluginLookup()(ctx, user)
  const isForeign = !roles.includes('admin') && !roles.includes('editor') && !withDefaults.source.startsWith('plugin:')
  const markedSource =
    plugin !== undefined ? `plugin:${plugin}` : isForeign ? `plugin:${withDefaults.source}` : withDefaults.source
  if (SYSTEM_SOURCES.includes(markedSource.normalize('NFKC').trim().toLowerCase()))
    throw new Problem(
      403,
      'FORBIDDEN',
      `The source "${markedSource}" is reserved for system events. Use another source.`,
    )
  const newEvent = { ...rest, ...withDefaults, source: markedSource }
  return toPublicEvent(await ctx.write((tx) => emit(ctx, tx, { ...newEvent, user, workspace: workspace?._id })))
}

/** Counts matching events, also by day if that is wanted. @throws 400, 503 BUSY */
export async function count(ctx: Ctx, { groupBy, ...query }: Filters & { groupBy?: 'day' | '' }, request: Request) {
  const isSearch = !!parseOptional(query.search)
  const zone = await resolveEventZone(ctx, query)
  if (!groupBy && !isSearch) return { count: await ctx.db.$count(events, toCondition(query, zone)) }
  const days = await readFairly(ctx, request, (db) => (isSearch ? countFound : countByDay)(db, query, zone))
  const groups = [...days]
    .sort(([one], [other]) => one - other)
    .map(([day, count]) => ({ group: toIsoString(day).slice(0, 10), count }))
  return { count: sumCounts(days), ...(groupBy && { groups }) }
}

const sumCounts = (days: Map<number, number>) => days.values().reduce((sum, count) => sum + count, 0)

/** Returns the number of events of each day that has some. Days are their local starts (ms). */
async function countByDay(db: Db, query: Filters, zone: TimeZone): Promise<Map<number, number>> {
  const [where, days] = [toCondition(query, zone), new Map<number, number>()]
  for (let from = 0; ; await db.yieldToOthers()) {
    const next = await db
      .select({ created })
      .from(events)
      .where(and(where, gte(created, from)))
      .orderBy(asc(created))
      .limit(1)
      .get()
    if (!next) return days
    const day = startOfInterval.day(zone.toLocal(next.created))
    const [start, end] = [zone.toMoment(day), zone.toMoment(day + DAY_MS)]
    days.set(day, await db.$count(events, and(where, gte(created, start), lt(created, end))))
    from = end
  }
}

/** Returns the same for events that also match a search. */
async function countFound(db: Db, query: Filters, zone: TimeZone): Promise<Map<number, number>> {
  const days = new Map<number, number>()
  for await (const event of findMatching(db, query, zone)) {
    const day = startOfInterval.day(zone.toLocal(event.created))
    days.set(day, (days.get(day) ?? 0) + 1)
  }
  return days
}

/** Returns the distinct kinds, names and sources of all events, for filters in a user interface. */
export async function listFilterOptions({ db }: Ctx) {
  const distinct = async (column: SQLiteColumn) =>
    (await db.selectDistinct({ value: column }).from(events).orderBy(asc(column))).map(({ value }) => value as string)
  const [kinds, eventNames, sources] = await Promise.all([kind, eventName, source].map(distinct))
  return { kinds: kinds!, eventNames: eventNames!, sources: sources! }
}

const OLDEST_FIRST: Pick<Page, 'keys' | 'order' | 'after'> = {
  keys: [{ name: 'seq', column: events.seq, descending: false }],
  order: [asc(events.seq)],
}

/** Yields matching events in the order of a page, read in batches. Each comes once, also during concurrent writes. */
export async function* findMatching(
  db: Db,
  query: Filters,
  zone: TimeZone,
  { keys, order, after } = OLDEST_FIRST,
): AsyncGenerator<EventRow> {
  const [where, search] = [toCondition(query, zone), parseOptional(query.search)?.toLowerCase()]
  for (let behind = after; ; await db.yieldToOthers()) {
    const slice = await db
      .select()
      .from(events)
      .where(and(where, behind))
      .orderBy(...order)
      .limit(ROWS_PER_BATCH)
    for (const event of slice) {
      const { description, kind, eventName, source, metadata } = event
      // An event about an entity is found by what identifies the entity.
      const about = [metadata._id, metadata.identifier].filter((value) => typeof value === 'string')
      const texts = [description, kind, eventName, source, ...about]
      if (!search || texts.some((text) => text.toLowerCase().includes(search))) yield event
    }
    if (slice.length < ROWS_PER_BATCH) return
    behind = conditionAfter(keys, toCursor(keys, slice.at(-1)!))
  }
}

/** Removes events older than ATOLL_EVENT_RETENTION (days), but never the newest event. */
export async function removeOld(tenant: Tenant & Lease) {
  const newest = await tenant.db.select({ seq: events.seq }).from(events).orderBy(desc(events.seq)).limit(1).get()
  if (!newest) return
  const old = and(lt(created, now() - config.ATOLL_EVENT_RETENTION * DAY_MS), lt(events.seq, newest.seq))
  await deleteInBatches(tenant, events, events.seq, old)
}

/** Returns the condition of a query without its search. @throws 400 for an invalid period or time */
function toCondition(query: Filters, zone: TimeZone): SQL | undefined {
  const errors: FieldError[] = []
  const anyOf = (name: 'kind' | 'eventName' | 'source' | 'user' | 'workspace', column: SQLiteColumn) => {
    const text = parseOptional(query[name])
    return text === undefined ? undefined : inArray(column, parseList(text, name))
  }
  const parseTime = (path: 'from' | 'to') => {
    const text = parseOptional(query[path])
    if (text === undefined) return
    const at = isIsoDate(text) ? zone.toMoment(Date.parse(text)) : parseIsoDateTime(text)
    if (at === undefined)
      errors.push({ path, message: `${path} must be a date and time such as 2026-01-31T12:00:00Z.` })
    return at
  }
  const period = parseOptional(query.period)
  if (period && !Object.hasOwn(PERIOD_LENGTHS_MS, period))
    errors.push({ path: 'period', message: `period must be one of ${Object.keys(PERIOD_LENGTHS_MS).join(', ')}.` })
  const [from, to] = [parseTime('from'), parseTime('to')]
  if (errors.length) badRequest(...errors)
  const since = Math.max(from ?? 0, period ? now() - PERIOD_LENGTHS_MS[period]! : 0)
  return and(
    anyOf('kind', kind),
    anyOf('eventName', eventName),
    anyOf('source', source),
    anyOf('user', user),
    anyOf('workspace', workspace),
    since > 0 ? gte(created, since) : undefined,
    to === undefined ? undefined : lt(created, to),
  )
}
