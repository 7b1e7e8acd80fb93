import { Elysia, t } from 'elysia'
import { aiGuard } from '../../accounts/guard'
import { ProblemShape } from '../../core/problem'
import { draftBlueprints } from '../builders/blueprint-drafts'
import { completeWithSource, draftWithBuilder } from '../builders/builders'
import { BlueprintDraftRequest, DraftedBlueprints, DraftRequest } from '../builders/shapes'
import { CompletionRequest } from '../shapes'
import { completionResponses } from './completions'

const sourceParams = t.Object({ sourceId: t.String() })
const DRAFTS_DESCRIPTION = 'The drafts are at the end of the answer, in `drafts`: `{kind, draft, created?}`.'

/** Returns new options for each route, because Elysia modifies them. */
const draftRoute = (operationId: string, summary: string) =>
  ({
    can: 'user',
    costly: true,
    params: sourceParams,
    body: DraftRequest,
    detail: { operationId, summary, description: DRAFTS_DESCRIPTION, responses: completionResponses },
  }) as const

/** Direct calls of sources, without an integration: by every signed-in user, unless the source names roles. */
export const sourceRoutes = new Elysia({ prefix: '/ai/sources/:sourceId', tags: ['ai'] })
  .use(aiGuard('ai'))
  .post(
    '/chat-completion',
    ({ ctx, params, body, request }) => draftWithBuilder(ctx, params.sourceId, 'all', body, request),
    draftRoute('draftWithSource', 'Draft blueprints, blocks and integrations'),
  )
  .post(
    '/chat-completion/plain',
    ({ ctx, params, body, request }) => completeWithSource(ctx, params.sourceId, body, request),
    {
      can: 'user',
      costly: true,
      params: sourceParams,
      body: CompletionRequest,
      detail: {
        operationId: 'createSourceCompletion',
        summary: 'Create a chat completion with a source',
        description: 'Asks the source directly, without an integration.',
        responses: completionResponses,
      },
    },
  )
  .post(
    '/chat-completion/pages',
    ({ ctx, params, body, request }) => draftWithBuilder(ctx, params.sourceId, 'pages', body, request),
    draftRoute('draftPages', 'Draft the blocks of pages'),
  )
  .post(
    '/chat-completion/integrations',
    ({ ctx, params, body, request }) => draftWithBuilder(ctx, params.sourceId, 'integrations', body, request),
    draftRoute('draftIntegrations', 'Draft integrations'),
  )
  .post('/blueprints', ({ ctx, params, body, request }) => draftBlueprints(ctx, params.sourceId, body, request), {
    can: 'user',
    costly: true,
    params: sourceParams,
    body: BlueprintDraftRequest,
    response: {
      200: DraftedBlueprints,
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
