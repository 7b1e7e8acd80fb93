import { Elysia, status, t } from 'elysia'
import { guard } from '../accounts/guard'
import { ProblemShape } from '../core/problem'
import { ifMatchOf, sendPage, sendVersioned } from '../core/response-headers'
import { IdParams, SuccessShape } from '../core/shapes'
import * as connections from './connections'
import { Connection, ConnectionChange, ConnectionDraft, ConnectionList, NewConnection, Status } from './shapes'
import * as checking from './status'

const changeResponses = { 200: Connection, 404: ProblemShape, 412: ProblemShape }

/** Connections to other servers, which the API calls integration sources. */
export const connectionRoutes = new Elysia({ prefix: '/integration-sources', tags: ['integrations'] })
  .use(guard('integrations'))
  .get('/', ({ ctx, query, request, set }) => sendPage({ request, set }, connections.list(ctx, query)), {
    can: 'privileged',
    query: ConnectionList,
    response: t.Array(Connection),
    detail: { operationId: 'listIntegrationSources', summary: 'List integration sources' },
  })
  .get('/:id', ({ ctx, params, set }) => sendVersioned(set, connections.get(ctx, params.id)), {
    can: 'privileged',
    params: IdParams,
    response: { 200: Connection, 404: ProblemShape },
    detail: { operationId: 'getIntegrationSource', summary: 'Get an integration source' },
  })
  .post('/', async ({ ctx, body, set }) => status(201, await sendVersioned(set, connections.create(ctx, body))), {
    can: 'privileged',
    addsData: true,
    body: NewConnection,
    response: { 201: Connection, 409: ProblemShape },
    detail: { operationId: 'createIntegrationSource', summary: 'Create an integration source' },
  })
  .put(
    '/:id',
    ({ ctx, params, body, request, set }) =>
      sendVersioned(set, connections.change(ctx, params.id, body, ifMatchOf(request))),
    {
      can: 'privileged',
      changesData: true,
      params: IdParams,
      body: ConnectionChange,
      response: changeResponses,
      detail: { operationId: 'updateIntegrationSource', summary: 'Update an integration source' },
    },
  )
  .patch(
    '/:id',
    ({ ctx, params, body, request, set }) =>
      sendVersioned(set, connections.change(ctx, params.id, body, ifMatchOf(request))),
    {
      can: 'privileged',
      changesData: true,
      params: IdParams,
      body: ConnectionChange,
      response: changeResponses,
      detail: { operationId: 'patchIntegrationSource', summary: 'Update an integration source' },
    },
  )
  .delete('/:id', ({ ctx, params, request }) => connections.remove(ctx, params.id, ifMatchOf(request)), {
    can: 'privileged',
    params: IdParams,
    response: { 200: SuccessShape, 404: ProblemShape, 409: ProblemShape, 412: ProblemShape },
    detail: { operationId: 'deleteIntegrationSource', summary: 'Delete an integration source' },
  })
  .post('/status', ({ ctx, body, request }) => checking.checkDraft(ctx, body, request), {
    can: 'privileged',
    body: ConnectionDraft,
    response: Status,
    detail: {
      operationId: 'testIntegrationSource',
      summary: 'Test an integration source before it is created',
      description: 'Calls the server with these settings. Nothing is stored.',
    },
  })
  .post('/:id/status', ({ ctx, params, request }) => checking.checkConnection(ctx, params.id, request), {
    can: 'privileged',
    params: IdParams,
    response: { 200: Status, 404: ProblemShape },
    detail: { operationId: 'checkIntegrationSource', summary: 'Check the connection of an integration source' },
  })
