import { Elysia, t } from 'elysia'
import { guard } from '../../accounts/guard'
import { UsageList, Used, UsedBy } from '../shapes'
import { list } from '../usage'

export const usageRoutes = new Elysia({ prefix: '/ai/usage', tags: ['ai'] })
  .use(guard('ai'))
  .get('/', ({ ctx, query, request, set }) => list(ctx, query, { request, set }), {
    can: 'privileged',
    query: UsageList,
    response: t.Array(t.Union([Used, UsedBy])),
    detail: { summary: 'What completions took, or by `groupBy` what those took together that are alike' },
  })
