import { Elysia, t } from 'elysia'
import { guard } from '../../accounts/guard'
import { ProblemShape } from '../../core/problem'
import { type HttpContext, sendPage } from '../../core/response-headers'
import { INTERVALS } from '../../core/time-zone'
import { blueprintParams, toParameter, toRequiredParameter } from '../parameters'
import * as charts from './charts'
import { AxesChart, Count, PieChart, Sum } from './shapes'

const filterDescription =
  'Takes the filters of `listEntities`. `$limit` and `$skip` page through groups; `$count=true` adds X-Total-Count.'
const intervalParameter = toParameter([
  'interval',
  'string',
  'interval for grouping by a date; gaps are filled with 0. Use `$interval` if a field is named interval',
  { enum: [...INTERVALS] },
])
const timezoneParameter = toParameter([
  'timezone',
  'string',
  'IANA time zone for groups and for days in filters, such as Europe/Lisbon; defaults to that of the app-configuration, else UTC. Use `$timezone` if a field is named timezone',
])
const groupParameters = [
  toRequiredParameter(['x', 'string', 'property to group by']),
  toParameter(['sum', 'string', 'numeric property to sum instead of counting entities']),
  intervalParameter,
  timezoneParameter,
]
const problemResponses = { 400: ProblemShape, 401: ProblemShape, 403: ProblemShape, 404: ProblemShape }

/** Sends `X-Total-Count` and `Link` of a page of groups, and returns its chart. */
async function sendChart<Chart>(http: HttpContext, paged: Promise<charts.PagedChart<Chart>>): Promise<Chart> {
  const { chart, total, nextSkip } = await paged
  const next = nextSkip === undefined ? undefined : { $skip: `${nextSkip}`, $page: undefined }
  await sendPage(http, { items: [], total, next })
  return chart
}

export const chartRoutes = new Elysia({ prefix: '/blueprints/:key/charts', tags: ['charts'] })
  .use(guard('entities'))
  .get('/count', ({ ctx, params, request }) => charts.count(ctx, params.key, request), {
    anyone: true,
    costly: true,
    params: blueprintParams,
    response: { 200: Count, ...problemResponses },
    detail: {
      operationId: 'countEntities',
      summary: 'Count entities',
      description: 'Returns the number of entities that match the filters.',
      parameters: [timezoneParameter],
    },
  })
  .get('/sum', ({ ctx, params, request, set }) => sendChart({ request, set }, charts.sum(ctx, params.key, request)), {
    anyone: true,
    costly: true,
    params: blueprintParams,
    response: { 200: Sum, ...problemResponses },
    detail: {
      operationId: 'sumEntities',
      summary: 'Sum a numeric property',
      description: filterDescription,
      parameters: [
        toRequiredParameter(['sum', 'string', 'the numeric property to sum']),
        toParameter(['groupBy', 'string', 'property to group by']),
        intervalParameter,
        timezoneParameter,
      ],
    },
  })
  .get('/pie', ({ ctx, params, request, set }) => sendChart({ request, set }, charts.pie(ctx, params.key, request)), {
    anyone: true,
    costly: true,
    params: blueprintParams,
    response: { 200: PieChart, ...problemResponses },
    detail: {
      operationId: 'getPieChart',
      summary: 'Get a pie chart',
      description: filterDescription,
      parameters: groupParameters,
    },
  })
  .get(
    '/:type',
    ({ ctx, params, request, set }) =>
      sendChart({ request, set }, charts.axesChart(ctx, params.key, params.type, request)),
    {
      anyone: true,
      costly: true,
      params: t.Object({
        key: t.String(),
        type: t.String({ 'x-schema': { type: 'string', enum: ['line', 'bar', 'scatter', 'area'] } }),
      }),
      response: { 200: AxesChart, ...problemResponses },
      detail: {
        operationId: 'getAxesChart',
        summary: 'Get a line, bar, scatter or area chart',
        description: filterDescription,
        parameters: groupParameters,
      },
    },
  )
