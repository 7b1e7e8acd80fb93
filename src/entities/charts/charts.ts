import type { Static } from 'elysia'
import type { PublicCtx } from '../../accounts/context'
import { getModel } from '../../blueprints/blueprints'
import type { Model } from '../../blueprints/model'
import { type RowScope, requireRowScope, rowScopeOf } from '../../blueprints/permissions'
import { Problem } from '../../core/problem'
import { resolveTimeZone } from '../../platform/settings/app-settings'
import type { Db } from '../../storage/port'
import { trackChanges } from '../changes/tracked-changes'
import { estimateRows, thresholds } from '../query/cardinality'
import { readFairly } from '../query/fair-reads'
import { requireResolvedLikes } from '../query/like-filter'
import { countMatching } from '../query/matching-count'
import type { Query } from '../query/query-parser'
import { indexWhere, isIndexCondition } from '../query/sql-conditions'
import type { ResolvedName } from '../query/target'
import type { PreparedRead, ThreadedRead } from '../query/threaded-reads'
import { compareValues } from '../query/value-order'
import { getQueryString, readConsistently, splitPageOptions, withoutPrivilege } from '../request'
import { prepareSearch } from '../search/search-index'
import { aggregate } from './aggregation'
import { type ParameterNames, parseChartQuery, parseCountQuery, type ZoneResolver } from './chart-query'
import { AXES_TYPES, type DataPoint, isAxesType, toAxesOption, toPieOption } from './echarts'
import { type Amount, createGrouping, type Group, type GroupPosition } from './grouping'
import type { Sum } from './shapes'
import { readGroupNames } from './values'

/** Returns how many entities match the query of a list. @throws 400, 401, 403, 404 */
export async function count(originalCtx: PublicCtx, key: string, request: Request) {
  const threaded: ThreadedRead<{ count: number }> = {
    name: 'count',
    args: [key],
    receive: (response) => response.json() as Promise<{ count: number }>,
    prepare: () =>
      prepareCostlyChart(originalCtx, key, request, (ctx, model) =>
        parseCountQuery(model, ctx.actor, splitPageOptions(getQueryString(request)).search, zoneResolver(ctx)),
      ),
  }
  return withChartContext(originalCtx, key, request, threaded, async ({ ctx, db, model, rowScope }) => {
    const parsedQuery = await parseCountQuery(
      model,
      ctx.actor,
      splitPageOptions(getQueryString(request)).search,
      zoneResolver(ctx),
    )
    trackChanges(ctx, model)
    const query = await prepareSearch(ctx, model, parsedQuery)
    return { count: await countMatching(db, model, rowScope, query) }
  })
}

/** How many groups there are, if the caller asked for it, and where the next page of them begins. */
type GroupPage = { total?: number; nextSkip?: number }
export type PagedChart<Chart> = GroupPage & { chart: Chart }

/** Returns the exact sum of a property, in total and by groups. @throws 400 for a property that is not numeric */
export async function sum(ctx: PublicCtx, key: string, request: Request): Promise<PagedChart<Static<typeof Sum>>> {
  const { value, groups, label: _, ...page } = await readGroups(ctx, key, request, { by: 'groupBy', needs: 'sum' })
  const sums = groups?.map(({ name, value }) => ({ group: name, sum: value }))
  return { chart: { ...(sums && { groups: sums }), sum: value }, ...page }
}

/** Returns the ECharts options of a pie chart whose slices are the values of a property. */
export async function pie(ctx: PublicCtx, key: string, request: Request) {
  const { groups = [], label, value: _, ...page } = await readGroups(ctx, key, request, { by: 'x', needs: 'x' })
  return { chart: toPieOption(label, groups), ...page }
}

/** Returns the ECharts options of a chart with the values of a property on its x axis. @throws 404 CHART_NOT_FOUND */
export async function axesChart(ctx: PublicCtx, key: string, type: string, request: Request) {
  if (!isAxesType(type)) {
    return withChartContext(ctx, key, request, undefined, async () => {
      throw new Problem(404, 'CHART_NOT_FOUND', `There is no chart "${type}". Use one of: ${CHART_TYPES.join(', ')}.`)
    })
  }
  const { groups = [], label, value: _, ...page } = await readGroups(ctx, key, request, { by: 'x', needs: 'x' })
  return { chart: toAxesOption(type, label, groups), ...page }
}

const zoneResolver =
  (ctx: PublicCtx): ZoneResolver =>
  (named, parameter) =>
    resolveTimeZone(ctx, named, parameter)

type ChartContext = { ctx: PublicCtx; db: Db; model: Model; rowScope: RowScope }

function withChartContext<T>(
  originalCtx: PublicCtx,
  key: string,
  request: Request,
  threaded: ThreadedRead<T> | undefined,
  read: (of: ChartContext) => Promise<T>,
): Promise<T> {
  const ctx = withoutPrivilege(originalCtx, request)
  return readFairly(
    originalCtx,
    request,
    (db) =>
      readConsistently(ctx, key, (model) =>
        read({ ctx, db, model, rowScope: requireRowScope(model, 'read', ctx.actor) }),
      ),
    threaded,
  )
}

/** Tells whether a condition leads to few entities, so that the main thread tries to answer the chart. */
async function prepareCostlyChart(
  originalCtx: PublicCtx,
  key: string,
  request: Request,
  parse: (ctx: PublicCtx, model: Model) => Promise<Query>,
): Promise<PreparedRead> {
  const ctx = withoutPrivilege(originalCtx, request)
  const model = await getModel(ctx, key)
  // Whoever may not read is refused for that, whatever the query is.
  if (!rowScopeOf(model, 'read', ctx.actor)) return { size: 'large' }
  const { conditions } = await parse(ctx, model)
  for (const condition of conditions.filter(isIndexCondition).slice(0, MAX_ESTIMATED))
    if ((await estimateRows(ctx.db, 'entity_index i', indexWhere(condition))) < thresholds.few)
      return { size: 'unknown' }
  return { size: 'large' }
}

const MAX_ESTIMATED = 3 // conditions of a costly chart

const CHART_TYPES = [...AXES_TYPES, 'pie', 'count', 'sum']
const UNKNOWN_LABEL = 'Unknown'

/** The total and the groups of a chart: sums of a property, or numbers of entities. */
type ChartResult = GroupPage & { value: number | string; label: string; groups?: DataPoint[] }

/** Returns the sorted groups of a page; the last group of all has the entities without a value. */
export function readGroups(
  originalCtx: PublicCtx,
  key: string,
  request: Request,
  names: ParameterNames,
): Promise<ChartResult> {
  const receive = (response: Response) => response.json() as Promise<ChartResult>
  const prepare = () =>
    prepareCostlyChart(originalCtx, key, request, async (ctx, model) => {
      const text = getQueryString(request)
      return (await parseChartQuery(model, ctx.actor, text, names, zoneResolver(ctx))).query
    })
  const threaded = { name: 'groups', args: [key, names.by, names.needs], receive, prepare }
  return withChartContext(originalCtx, key, request, threaded, (of) => computeGroups(of, request, names))
}

async function computeGroups(
  { ctx, db, model, rowScope }: ChartContext,
  request: Request,
  names: ParameterNames,
): Promise<ChartResult> {
  const chartQuery = await parseChartQuery(model, ctx.actor, getQueryString(request), names, zoneResolver(ctx))
  const { by, sum, interval, zone } = chartQuery
  const query = await requireResolvedLikes(db, model, await prepareSearch(ctx, model, chartQuery.query))
  const grouping = by && createGrouping(by, interval, zone)
  const { all, groups, unknown } = await aggregate(db, model, rowScope, { ...chartQuery, query }, grouping)
  const amountOf = ({ count, units }: Amount) => sum?.kind?.exactSum?.format(units) ?? count
  const result = { value: amountOf(all), label: sum ? seriesLabel(sum) : 'count' }
  if (!grouping) return result

  const positions = grouping.fillGaps([...groups.keys()].sort(compareValues))
  const total = positions.length + (unknown.count ? 1 : 0)
  const [start, end] = [query.skip, query.skip + query.limit]
  const page = positions.slice(start, end).map((position) => groups.get(position) ?? emptyGroup(position))
  const labels = await readGroupNames(db, model, by, grouping, page)
  const points: DataPoint[] = page.map((group, at) => ({ name: labels[at]!, value: amountOf(group) }))
  if (unknown.count && start < total && total <= end) points.push({ name: UNKNOWN_LABEL, value: amountOf(unknown) })
  const hasNext = query.limit && end < total
  return { ...result, groups: points, ...(query.count && { total }), ...(hasNext && { nextSkip: end }) }
}

const emptyGroup = (position: GroupPosition): Group => ({ count: 0, units: 0n, position, first: 0, key: '' })
const seriesLabel = ({ target }: ResolvedName) =>
  target.at === 'field' ? (target.field.title ?? target.field.key) : 'sum'
