import { Elysia, t } from 'elysia'
import { aiGuard } from '../../accounts/guard'
import { ProblemShape } from '../../core/problem'
import { draftBlueprints } from '../builders/blueprints'
import { build, plain } from '../builders/builders'
import { Blueprints, Building, Wish } from '../builders/shapes'
import { Asked } from '../shapes'
import { responses } from './completions'

const params = t.Object({ sourceId: t.String() })
const drafts = 'The end of its answer has what was drafted in `drafts`: `{kind, draft, created?}`.'

/** One for each route: Elysia changes what it gets. */
const asked = (operationId: string, summary: string) =>
  ({ can: 'user', params, body: Building, detail: { operationId, summary, description: drafts, responses } }) as const

/** Sources that are asked directly, without an integration: by anybody who is signed in, unless they name roles. */
export const sourceRoutes = new Elysia({ prefix: '/ai/sources/:sourceId', tags: ['ai'] })
  .use(aiGuard('ai'))
  .post(
    '/chat-completion',
    ({ ctx, params, body, request }) => build(ctx, params.sourceId, 'all', body, request),
    asked('draftWithSource', 'Draft blueprints, blocks and integrations'),
  )
  .post('/chat-completion/plain', ({ ctx, params, body, request }) => plain(ctx, params.sourceId, body, request), {
    can: 'user',
    params,
    body: Asked,
    detail: {
      operationId: 'createSourceCompletion',
      summary: 'Create a chat completion with a source',
      description: 'Asks the source directly, without an integration.',
      responses,
    },
  })
  .post(
    '/chat-completion/pages',
    ({ ctx, params, body, request }) => build(ctx, params.sourceId, 'pages', body, request),
    asked('draftPages', 'Draft the blocks of pages'),
  )
  .post(
    '/chat-completion/integrations',
    ({ ctx, params, body, request }) => build(ctx, params.sourceId, 'integrations', body, request),
    asked('draftIntegrations', 'Draft integrations'),
  )
  .post('/blueprints', ({ ctx, params, body, request }) => draftBlueprints(ctx, params.sourceId, body, request), {
    can: 'user',
    params,
    body: Wish,
    response: {
      200: Blueprints,
      404: ProblemShape,
      409: ProblemShape,
      429: ProblemShape,
      502: ProblemShape,
      503: ProblemShape,
      504: ProblemShape,
    },
    detail: {
      operationId: 'draftBlueprints',
      summary: 'Draft blueprints',
      description: 'Each draft can be sent to `POST /api/blueprints` as it is.',
    },
  })
