import { Elysia, t } from 'elysia'
import { guard } from '../../accounts/guard'
import { ProblemShape } from '../../core/problem'
import * as charts from './charts'
import { AxesChart, Count, PieChart, Sum } from './shapes'

const parameter = (name: string, description: string, required = false, more = {}) => ({
  name,
  in: 'query' as const,
  required,
  description,
  schema: { type: 'string' as const, ...more },
})
const filters =
  'Takes the filters of the list of entities. `$limit` and `$skip` page the groups; `$count=true` adds X-Total-Count.'
const interval = parameter('interval', 'where groups are by a date; gaps are filled with 0', false, {
  enum: ['day', 'week', 'month', 'year'],
})
const x = [
  parameter('x', 'the property to group by', true),
  parameter('sum', 'a number to add up, instead of counting entities'),
  interval,
]
const byKey = t.Object({ key: t.String() })
const problems = { 400: ProblemShape, 401: ProblemShape, 403: ProblemShape, 404: ProblemShape }

export const chartRoutes = new Elysia({ prefix: '/blueprints/:key/charts', tags: ['charts'] })
  .use(guard('entities'))
  .get('/count', ({ ctx, params, request }) => charts.count(ctx, params.key, request), {
    anyone: true,
    params: byKey,
    response: { 200: Count, ...problems },
    detail: {
      operationId: 'countEntities',
      summary: 'Count entities',
      description: 'How many entities match the filters of a list.',
    },
  })
  .get('/sum', ({ ctx, params, request, set }) => charts.sum(ctx, params.key, { request, set }), {
    anyone: true,
    params: byKey,
    response: { 200: Sum, ...problems },
    detail: {
      operationId: 'sumEntities',
      summary: 'Add up a number of entities',
      description: filters,
      parameters: [
        parameter('sum', 'the number to add up', true),
        parameter('groupBy', 'the property to group by'),
        interval,
      ],
    },
  })
  .get('/pie', ({ ctx, params, request, set }) => charts.pie(ctx, params.key, { request, set }), {
    anyone: true,
    params: byKey,
    response: { 200: PieChart, ...problems },
    detail: { operationId: 'getPieChart', summary: 'Get a pie chart', description: filters, parameters: x },
  })
  .get('/:type', ({ ctx, params, request, set }) => charts.onAxes(ctx, params.key, params.type, { request, set }), {
    anyone: true,
    params: t.Object({
      key: t.String(),
      type: t.String({ 'x-schema': { type: 'string', enum: ['line', 'bar', 'scatter', 'area'] } }),
    }),
    response: { 200: AxesChart, ...problems },
    detail: {
      operationId: 'getAxesChart',
      summary: 'Get a line, bar, scatter or area chart',
      description: filters,
      parameters: x,
    },
  })
