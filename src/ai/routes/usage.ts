import { Elysia, t } from 'elysia'
import { guard } from '../../accounts/guard'
import { sendPage, sendSecret } from '../../core/response-headers'
import { AiUsage, AiUsageTotal, UsageList } from '../usage/shapes'
import * as usage from '../usage/usage'

export const usageRoutes = new Elysia({ prefix: '/ai/usage', tags: ['ai'] })
  .use(guard('ai'))
  .get('/', ({ ctx, query, request, set }) => sendSecret(set, sendPage({ request, set }, usage.list(ctx, query))), {
    can: 'privileged',
    query: UsageList,
    response: t.Array(t.Union([AiUsage, AiUsageTotal])),
    detail: {
      operationId: 'listAiUsage',
      summary: 'List AI usage',
      description: 'One entry for each completion or embedding, or totals with `groupBy`.',
    },
  })
