import type { OpenCtx } from '../../accounts/guard'
import type { Model } from '../../blueprints/model'
import { type Reach, reachOrRefuse } from '../../blueprints/rules'
import type { Answer } from '../../core/etag'
import { missing } from '../../core/problem'
import type { Db } from '../../storage/port'
import { narrowed, searchOf, steady } from '../entities'
import { readFairly } from '../fair-reads'
import { countFitting, narrowedBy, narrowedWhole } from '../fitting'
import { ofPage } from '../pages'
import { type Resolved, readQuery } from '../query'
import { searchable } from '../search'
import { groupingOf, type Place } from './grouping'
import { axes, isAxes, pie as pieOf, type Shown } from './options'
import { type Names, readQuestion } from './question'
import { type Amount, type Group, tally } from './tally'
import { namesOf } from './values'

/** How many entities match a list's query. */
export async function count(asked: OpenCtx, key: string, request: Request) {
  return about(asked, key, request, async ({ ctx, db, model, reach }) => {
    const query = readQuery(model, ctx.actor, ofPage(searchOf(request)).search)
    if (query.search) await searchable(ctx, model)
    return { count: await countFitting(db, model, reach, await narrowedBy(db, model, query)) }
  })
}

/** The exact sum of a property, whole and by groups. @throws 400 for what is no number */
export async function sum(asked: OpenCtx, key: string, answer: Answer) {
  const { value, groups } = await grouped(asked, key, answer, { by: 'groupBy', needs: 'sum' })
  return { ...(groups && { groups: groups.map(({ name, value }) => ({ group: name, sum: value })) }), sum: value }
}

/** ECharts options of a pie whose slices are the values of a property. */
export async function pie(asked: OpenCtx, key: string, answer: Answer) {
  const { groups = [], label } = await grouped(asked, key, answer, { by: 'x', needs: 'x' })
  return pieOf(label, groups)
}

/** ECharts options of a chart with the values of a property on its x axis. @throws 404 CHART_NOT_FOUND */
export async function onAxes(asked: OpenCtx, key: string, type: string, answer: Answer) {
  if (!isAxes(type)) {
    return about(asked, key, answer.request, async () => missing('chart'))
  }
  const { groups = [], label } = await grouped(asked, key, answer, { by: 'x', needs: 'x' })
  return axes(type, label, groups)
}

type About = { ctx: OpenCtx; db: Db; model: Model; reach: Reach }

function about<T>(asked: OpenCtx, key: string, request: Request, read: (of: About) => Promise<T>): Promise<T> {
  const ctx = narrowed(asked, request)
  return readFairly(ctx, request, (db) =>
    steady(ctx, key, (model) => read({ ctx, db, model, reach: reachOrRefuse(model, 'read', ctx.actor) })),
  )
}

const UNKNOWN = 'Unknown'

/** What was asked for of all, and by groups: the sum of a property, or else how many there are. */
type Grouped = { value: number | string; label: string; groups: Shown[] | undefined }

/** The groups of a page, sorted; last those that have no value to group them by. */
const grouped = (asked: OpenCtx, key: string, answer: Answer, names: Names): Promise<Grouped> =>
  about(asked, key, answer.request, (of) => groupedOf(of, answer, names))

async function groupedOf({ ctx, db, model, reach }: About, { request, set }: Answer, names: Names): Promise<Grouped> {
  const question = readQuestion(model, ctx.actor, searchOf(request), names)
  const { by, sum, interval } = question
  if (question.query.search) await searchable(ctx, model)
  const query = await narrowedWhole(db, model, question.query)
  const grouping = by && groupingOf(by, interval)
  const { all, groups, unknown } = await tally(db, model, reach, { ...question, query }, grouping)
  const amountOf = ({ count, units }: Amount) => sum?.kind?.addition?.told(units) ?? count
  const result = { value: amountOf(all), label: sum ? labelOf(sum) : 'count' }
  if (!grouping) return { ...result, groups: undefined }

  const places = grouping.filled([...groups.keys()].sort(inOrder))
  const total = places.length + (unknown.count ? 1 : 0)
  const [start, end] = [query.skip, query.skip + query.limit]
  const page = places.slice(start, end).map((place) => groups.get(place) ?? nobody(place))
  const called = await namesOf(db, model, by, grouping, page)
  const shown: Shown[] = page.map((group, at) => ({ name: called[at]!, value: amountOf(group) }))
  if (unknown.count && start < total && total <= end) shown.push({ name: UNKNOWN, value: amountOf(unknown) })
  const headers: Record<string, string> = {}
  if (query.count) headers['x-total-count'] = `${total}`
  if (query.limit && end < total) headers.link = `<${pageAt(request, end)}>; rel="next"`
  Object.assign(set.headers as object, headers)
  return { ...result, groups: shown }
}

/** As lists are sorted: texts by their characters, where JavaScript compares halves of some. */
function inOrder(one: Place, other: Place) {
  if (one === other) return 0
  if (typeof one === 'number' || typeof other === 'number') return one < other ? -1 : 1
  let at = 0
  while (one.charCodeAt(at) === other.charCodeAt(at)) at++
  return (one.codePointAt(at) ?? -1) - (other.codePointAt(at) ?? -1)
}
const nobody = (place: Place): Group => ({ count: 0, units: 0n, place, first: 0, key: '' })
const labelOf = ({ target }: Resolved) => (target.at === 'field' ? (target.field.title ?? target.field.key) : 'sum')

function pageAt(request: Request, skip: number) {
  const search = new URLSearchParams(searchOf(request))
  search.delete('$page')
  search.set('$skip', `${skip}`)
  return `${request.url.slice(request.url.indexOf('/', 8), request.url.indexOf('?'))}?${search}`
}
