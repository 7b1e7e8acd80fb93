import { Elysia, status, t } from 'elysia'
import { guard, streamGuard } from '../accounts/guard'
import { ProblemShape } from '../core/problem'
import { ifMatchOf, sendPage, sendSecret, sendVersioned } from '../core/response-headers'
import { IdParams, SuccessShape } from '../core/shapes'
import * as integrations from './integrations'
import * as runs from './runs'
import {
  DueTimes,
  DueTimesQuery,
  Integration,
  IntegrationChange,
  IntegrationList,
  NewIntegration,
  Run,
  RunList,
} from './shapes'
import { listDueTimes } from './triggers/schedule'
import { callWebhook } from './webhooks'

const changeResponses = { 200: Integration, 404: ProblemShape, 412: ProblemShape }

const adminRoutes = new Elysia({ prefix: '/integrations', tags: ['integrations'] })
  .use(guard('integrations'))
  .get('/', ({ ctx, query, request, set }) => sendPage({ request, set }, integrations.list(ctx, query)), {
    can: 'privileged',
    query: IntegrationList,
    response: t.Array(Integration),
    detail: {
      operationId: 'listIntegrations',
      summary: 'List integrations',
      description: 'A page ends at 4 MiB, also before its limit. Follow its `Link` header.',
    },
  })
  .get('/due-times', ({ query }) => ({ times: listDueTimes(query) }), {
    can: 'privileged',
    query: DueTimesQuery,
    response: DueTimes,
    detail: { operationId: 'listDueTimes', summary: 'List the next times of a schedule' },
  })
  .get('/:id', ({ ctx, params, set }) => sendVersioned(set, integrations.get(ctx, params.id)), {
    can: 'privileged',
    params: IdParams,
    response: { 200: Integration, 404: ProblemShape },
    detail: { operationId: 'getIntegration', summary: 'Get an integration' },
  })
  .post('/', async ({ ctx, body, set }) => status(201, await sendVersioned(set, integrations.create(ctx, body))), {
    can: 'privileged',
    addsData: true,
    body: NewIntegration,
    response: { 201: Integration, 409: ProblemShape },
    detail: { operationId: 'createIntegration', summary: 'Create an integration' },
  })
  .put(
    '/:id',
    ({ ctx, params, body, request, set }) =>
      sendVersioned(set, integrations.change(ctx, params.id, body, ifMatchOf(request))),
    {
      can: 'privileged',
      changesData: true,
      params: IdParams,
      body: IntegrationChange,
      response: changeResponses,
      detail: { operationId: 'updateIntegration', summary: 'Update an integration' },
    },
  )
  .patch(
    '/:id',
    ({ ctx, params, body, request, set }) =>
      sendVersioned(set, integrations.change(ctx, params.id, body, ifMatchOf(request))),
    {
      can: 'privileged',
      changesData: true,
      params: IdParams,
      body: IntegrationChange,
      response: changeResponses,
      detail: { operationId: 'patchIntegration', summary: 'Update an integration' },
    },
  )
  .delete('/:id', ({ ctx, params, request }) => integrations.remove(ctx, params.id, ifMatchOf(request)), {
    can: 'privileged',
    params: IdParams,
    response: { 200: SuccessShape, 404: ProblemShape, 409: ProblemShape, 412: ProblemShape },
    detail: { operationId: 'deleteIntegration', summary: 'Delete an integration' },
  })
  .get(
    '/:id/runs',
    ({ ctx, params, query, request, set }) =>
      sendSecret(set, sendPage({ request, set }, runs.list(ctx, params.id, query))),
    {
      can: 'privileged',
      params: IdParams,
      query: RunList,
      response: { 200: t.Array(Run), 404: ProblemShape },
      detail: {
        operationId: 'listIntegrationRuns',
        summary: 'List pending and failed runs',
        description: 'Runs that wait, are retried, or have failed for good.',
      },
    },
  )
  .post('/:id/runs/:runId/replay', ({ ctx, params }) => runs.replay(ctx, params.id, params.runId), {
    can: 'privileged',
    params: t.Object({ id: t.String(), runId: t.String() }),
    response: { 200: Run, 404: ProblemShape },
    detail: { operationId: 'replayIntegrationRun', summary: 'Retry a run' },
  })

/** Returns a new object for each route, because Elysia mutates it. */
const webhookOptions = (operationId: string) =>
  ({
    openThrottled: true,
    params: t.Object({ integrationId: t.String() }),
    detail: {
      operationId,
      summary: 'Call a webhook',
      description: 'Runs the integration and passes on any body.',
      responses: {
        200: { description: 'The answer of the target, with its own status' },
        202: { description: 'Accepted: the integration runs in the background' },
        404: { description: 'There is no such webhook' },
      },
    },
  }) as const

const webhookRoutes = new Elysia({ prefix: '/webhooks', tags: ['integrations'] })
  .use(streamGuard('webhooks'))
  .get(
    '/:integrationId',
    ({ ctx, params, request }) => callWebhook(ctx, params.integrationId, request),
    webhookOptions('callWebhook'),
  )
  .post(
    '/:integrationId',
    ({ ctx, params, request }) => callWebhook(ctx, params.integrationId, request),
    webhookOptions('postToWebhook'),
  )
  .put(
    '/:integrationId',
    ({ ctx, params, request }) => callWebhook(ctx, params.integrationId, request),
    webhookOptions('putToWebhook'),
  )
  .delete(
    '/:integrationId',
    ({ ctx, params, request }) => callWebhook(ctx, params.integrationId, request),
    webhookOptions('deleteByWebhook'),
  )

/** The routes of integrations and of their webhooks. */
export const integrationRoutes = [adminRoutes, webhookRoutes]
