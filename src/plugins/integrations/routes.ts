import { Elysia, status, t } from 'elysia'
import { guard, streamGuard } from '../../accounts/guard'
import { ProblemShape } from '../../core/problem'
import { done, one } from '../../core/shapes'
import * as integrations from './integrations'
import * as runs from './runs'
import { Integration, IntegrationChange, IntegrationList, NewIntegration, Run, RunList } from './shapes'
import { call } from './webhooks'

const changed = { 200: Integration, 404: ProblemShape, 412: ProblemShape }

const administered = new Elysia({ prefix: '/integrations', tags: ['integrations'] })
  .use(guard('integrations'))
  .get('/', ({ ctx, query, request, set }) => integrations.list(ctx, query, { request, set }), {
    can: 'privileged',
    query: IntegrationList,
    response: t.Array(Integration),
  })
  .get('/:id', ({ ctx, params, request, set }) => integrations.get(ctx, params.id, { request, set }), {
    can: 'privileged',
    params: one,
    response: { 200: Integration, 404: ProblemShape },
  })
  .post(
    '/',
    async ({ ctx, body, request, set }) => status(201, await integrations.create(ctx, body, { request, set })),
    { can: 'privileged', body: NewIntegration, response: { 201: Integration, 409: ProblemShape } },
  )
  .put('/:id', ({ ctx, params, body, request, set }) => integrations.change(ctx, params.id, body, { request, set }), {
    can: 'privileged',
    params: one,
    body: IntegrationChange,
    response: changed,
  })
  .patch('/:id', ({ ctx, params, body, request, set }) => integrations.change(ctx, params.id, body, { request, set }), {
    can: 'privileged',
    params: one,
    body: IntegrationChange,
    response: changed,
  })
  .delete('/:id', ({ ctx, params, request, set }) => integrations.remove(ctx, params.id, { request, set }), {
    can: 'privileged',
    params: one,
    response: { 200: done, 404: ProblemShape, 409: ProblemShape, 412: ProblemShape },
  })
  .get('/:id/runs', ({ ctx, params, query, request, set }) => runs.list(ctx, params.id, query, { request, set }), {
    can: 'privileged',
    params: one,
    query: RunList,
    response: { 200: t.Array(Run), 404: ProblemShape },
    detail: { summary: 'What waits to be run, and what was given up' },
  })
  .post('/:id/runs/:runId/replay', ({ ctx, params }) => runs.replay(ctx, params.id, params.runId), {
    can: 'privileged',
    params: t.Object({ id: t.String(), runId: t.String() }),
    response: { 200: Run, 404: ProblemShape },
    detail: { summary: 'Try again what was given up, and what waits now' },
  })

/** One for each route: Elysia changes what it gets. */
const asked = () =>
  ({
    open: true,
    params: t.Object({ integrationId: t.String() }),
    detail: {
      summary: 'Have an integration do what it does; any body is passed on',
      responses: {
        200: { description: 'what its target answers, with the status that it says' },
        202: { description: 'it is done after this' },
        404: { description: 'nobody listens here' },
      },
    },
  }) as const

const webhooks = new Elysia({ prefix: '/webhooks', tags: ['integrations'] })
  .use(streamGuard('webhooks'))
  .get('/:integrationId', ({ ctx, params, request }) => call(ctx, params.integrationId, request), asked())
  .post('/:integrationId', ({ ctx, params, request }) => call(ctx, params.integrationId, request), asked())
  .put('/:integrationId', ({ ctx, params, request }) => call(ctx, params.integrationId, request), asked())
  .delete('/:integrationId', ({ ctx, params, request }) => call(ctx, params.integrationId, request), asked())

/** Integrations, and the addresses by which they are called. */
export const integrationRoutes = new Elysia().use(administered).use(webhooks)
