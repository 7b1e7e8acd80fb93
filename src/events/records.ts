import { and, asc, desc, eq, gt, gte, inArray, lt, type SQL } from 'drizzle-orm'
import type { SQLiteColumn } from 'drizzle-orm/sqlite-core'
import type { Ctx } from '../accounts/guard'
import { config } from '../config'
import { DAY, now } from '../core/clock'
import type { Answer } from '../core/etag'
import { type Flaw, invalid, missing, Problem } from '../core/problem'
import { given } from '../core/shapes'
import type { Lease } from '../jobs/holding'
import { emit, type Event as Kept, toldEvent as shown } from '../jobs/outbox'
import { removeInSlices } from '../jobs/removal'
import { events } from '../jobs/tables'
import { answerGrowingPage, type GrowingListing, paged, pageOf } from '../storage/lists'
import type { Db } from '../storage/port'
import type { Tenant } from '../tenancy/tenants'
import type { Event, Filters, NewEvent } from './shapes'

const SLICE = 1_000 // rows that are looked through before others get a turn
const PERIODS: Record<string, number> = {
  'last-day': DAY,
  'last-week': 7 * DAY,
  'last-month': 30 * DAY,
  'last-year': 365 * DAY,
  'all-time': Number.POSITIVE_INFINITY,
}

const { _id, source, kind, eventName, user, workspace, created } = events
const sortable = { _id, source, kind, eventName, created }

/** A page of events, newest first. */
export async function list({ db }: Ctx, query: Filters & GrowingListing, answer: Answer): Promise<Event[]> {
  const page = pageOf(query, sortable)
  const search = given(query.search)
  if (search) {
    // What is searched is looked through in the order of the list, until the page is full.
    const found: Kept[] = []
    let [skip, total] = [page.offset, 0]
    for await (const event of matching(db, query, page)) {
      total++
      if (skip > 0) skip--
      else if (found.length <= page.limit) found.push(event)
      else if (!page.count) break
    }
    const counted = page.after && page.count ? (await count({ db }, query)).count : total
    return answerGrowingPage(answer, page, found, async () => counted, shown)
  }
  const where = conditionOf(query)
  const rows = await paged(page, db.select().from(events).where(and(where, page.after)))
  return answerGrowingPage(answer, page, rows, () => db.$count(events, where), shown)
}

export const get = async ({ db }: Ctx, id: string): Promise<Event> =>
  shown((!id.includes('\0') && (await db.select().from(events).where(eq(_id, id)).get())) || missing('event'))

let pluginBehind = async (_tenant: Tenant, _user: string): Promise<string | undefined> => undefined
/** Says as which plugin a user comes, if they do. */
export const sourcesAreNamedBy = (name: typeof pluginBehind) => {
  pluginBehind = name
}

/** What only the system writes, so that whoever listens can rely on it. */
const SYSTEM_SOURCES = ['accounts', 'blueprints', 'entities', 'payments', 'ai', 'plugins', 'content', 'jobs', 'storage']

/**
 * Writes down what the caller tells. What a plugin tells has its source marked as such, by the name that it has here.
 * @throws 400 for an event that says nothing of itself, 403 for a source of the system
 */
export async function create(ctx: Ctx, { source, kind, eventName, ...rest }: NewEvent) {
  if (!source && !kind && !eventName)
    invalid({ path: '/eventName', message: 'An event needs a source, a kind or an eventName.' })
  const { roles, user, workspace } = ctx.actor
  const named = { source: source ?? 'api', kind: kind ?? 'custom', eventName: eventName ?? 'custom' }
  const plugin = await pluginBehind(ctx, user)
  const foreign = !roles.includes('admin') && !roles.includes('editor') && !named.source.startsWith('plugin:')
  const marked = plugin !== undefined ? `plugin:${plugin}` : foreign ? `plugin:${named.source}` : named.source
  if (SYSTEM_SOURCES.includes(marked.normalize('NFKC').trim().toLowerCase()))
    throw new Problem(403, 'FORBIDDEN', `Only the system writes events of the source "${marked}". Name another source.`)
  const told = { ...rest, ...named, source: marked }
  return shown(await ctx.write((tx) => emit(ctx, tx, { ...told, user, workspace: workspace?._id })))
}

export async function count({ db }: Pick<Ctx, 'db'>, query: Filters) {
  if (!given(query.search)) return { count: await db.$count(events, conditionOf(query)) }
  let count = 0
  for await (const _ of matching(db, query)) count++
  return { count }
}

/** What the events differ in, for those who offer filters. */
export async function filterOptions({ db }: Ctx) {
  const distinct = async (column: SQLiteColumn) =>
    (await db.selectDistinct({ value: column }).from(events).orderBy(asc(column))).map(({ value }) => value as string)
  const [kinds, eventNames, sources] = await Promise.all([kind, eventName, source].map(distinct))
  return { kinds: kinds!, eventNames: eventNames!, sources: sources! }
}

/** The events that are meant, in the order of a page, else oldest first; a slice at a time. */
export async function* matching(
  db: Db,
  query: Filters,
  { order, after }: { order: SQL[]; after?: SQL } = { order: [] },
): AsyncGenerator<Kept> {
  const [where, search] = [conditionOf(query), given(query.search)?.toLowerCase()]
  let last = 0
  for (let offset = 0; ; offset += SLICE) {
    const slice = order.length
      ? await db
          .select()
          .from(events)
          .where(and(where, after))
          .orderBy(...order)
          .limit(SLICE)
          .offset(offset)
      : await db
          .select()
          .from(events)
          .where(and(where, gt(events.seq, last)))
          .orderBy(asc(events.seq))
          .limit(SLICE)
    for (const event of slice) {
      const { description, kind, eventName, source } = event
      const texts = [description, kind, eventName, source]
      if (!search || texts.some((text) => text.toLowerCase().includes(search))) yield event
    }
    if (slice.length < SLICE) return
    last = slice.at(-1)!.seq
  }
}

/** Removes events that are older than what is kept; never the newest. */
export async function removeOld(tenant: Tenant & Lease) {
  const newest = await tenant.db.select({ seq: events.seq }).from(events).orderBy(desc(events.seq)).limit(1).get()
  if (!newest) return
  const old = and(lt(created, now() - config.ATOLL_EVENT_RETENTION * DAY), lt(events.seq, newest.seq))
  await removeInSlices(tenant, events, events.seq, old)
}

/** @throws 400 for periods and moments that make no sense */
function conditionOf(query: Filters): SQL | undefined {
  const flaws: Flaw[] = []
  const anyOf = (name: 'kind' | 'eventName' | 'source' | 'user' | 'workspace', column: SQLiteColumn) => {
    const values = given(query[name])?.split(',').filter(Boolean)
    return values && inArray(column, values)
  }
  const moment = (path: 'from' | 'to') => {
    const text = given(query[path])
    const at = text === undefined ? undefined : Date.parse(text)
    if (Number.isNaN(at)) flaws.push({ path, message: `${path} must be a moment such as 2026-01-31T12:00:00Z.` })
    return at
  }
  const period = given(query.period)
  if (period && !Object.hasOwn(PERIODS, period))
    flaws.push({ path: 'period', message: `period must be one of ${Object.keys(PERIODS).join(', ')}.` })
  const [from, to] = [moment('from'), moment('to')]
  if (flaws.length) invalid(...flaws)
  const since = Math.max(from ?? 0, period ? now() - PERIODS[period]! : 0)
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
