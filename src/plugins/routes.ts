import { Elysia, status, t } from 'elysia'
import { guard } from '../accounts/guard'
import { ProblemShape } from '../core/problem'
import { sendPage, sendSecret } from '../core/response-headers'
import { IdParams, optionalBody, SuccessShape } from '../core/shapes'
import { listQuery } from '../storage/pagination'
import * as deliveries from './deliveries'
import * as plugins from './plugins'
import { issueToken } from './service-account'
import {
  Delivery,
  DeliveryList,
  MadePlugin,
  NewPlugin,
  NewSecret,
  NewToken,
  Plugin,
  PluginChange,
  Rotation,
} from './shapes'

const errorResponses = { 404: ProblemShape, 409: ProblemShape, 502: ProblemShape }

export const pluginRoutes = new Elysia({ prefix: '/plugins', tags: ['plugins'] })
  .use(guard('plugins'))
  .get('/', ({ ctx, query, request, set }) => sendPage({ request, set }, plugins.list(ctx, query)), {
    can: 'privileged',
    query: t.Object(listQuery),
    response: t.Array(Plugin),
    detail: { operationId: 'listPlugins', summary: 'List plugins' },
  })
  .get('/:id', ({ ctx, params }) => plugins.get(ctx, params.id), {
    can: 'privileged',
    params: IdParams,
    response: { 200: Plugin, 404: ProblemShape },
    detail: { operationId: 'getPlugin', summary: 'Get a plugin' },
  })
  .post('/', async ({ ctx, body, set }) => status(201, await sendSecret(set, plugins.create(ctx, body))), {
    can: 'privileged',
    addsData: true,
    body: NewPlugin,
    response: { 201: MadePlugin, 409: ProblemShape, 502: ProblemShape },
    detail: {
      operationId: 'createPlugin',
      summary: 'Install a plugin',
      description: 'Loads the manifest, and registers what it declares.',
    },
  })
  .put('/:id', ({ ctx, params, body }) => plugins.change(ctx, params.id, body), {
    can: 'privileged',
    changesData: true,
    params: IdParams,
    body: PluginChange,
    response: { 200: Plugin, ...errorResponses },
    detail: { operationId: 'updatePlugin', summary: 'Update a plugin' },
  })
  .patch('/:id', ({ ctx, params, body }) => plugins.change(ctx, params.id, body), {
    can: 'privileged',
    changesData: true,
    params: IdParams,
    body: PluginChange,
    response: { 200: Plugin, ...errorResponses },
    detail: { operationId: 'patchPlugin', summary: 'Update a plugin' },
  })
  .delete('/:id', ({ ctx, params }) => plugins.remove(ctx, params.id), {
    can: 'privileged',
    params: IdParams,
    response: { 200: SuccessShape, 404: ProblemShape },
    detail: { operationId: 'deletePlugin', summary: 'Remove a plugin' },
  })
  .post('/:id/reload', ({ ctx, params }) => plugins.reload(ctx, params.id), {
    can: 'privileged',
    params: IdParams,
    response: { 200: Plugin, ...errorResponses },
    detail: {
      operationId: 'reloadPlugin',
      summary: 'Reload the manifest of a plugin',
      description: 'Loads the manifest again and applies it.',
    },
  })
  .post(
    '/:id/rotate-secret',
    ({ ctx, params, body, set }) => sendSecret(set, plugins.rotateSecret(ctx, params.id, body?.secret)),
    {
      can: 'privileged',
      params: IdParams,
      body: optionalBody(Rotation),
      response: { 200: NewSecret, 404: ProblemShape },
      detail: {
        operationId: 'rotatePluginSecret',
        summary: 'Rotate the signing secret of a plugin',
        description: 'Both secrets sign for one day.',
      },
    },
  )
  .post('/:id/token', async ({ ctx, params, set }) => status(201, await sendSecret(set, issueToken(ctx, params.id))), {
    can: 'privileged',
    params: IdParams,
    response: { 201: NewToken, 404: ProblemShape },
    detail: {
      operationId: 'createPluginToken',
      summary: 'Replace the API token of a plugin',
      description: 'Replaces the tokens that the plugin had.',
    },
  })
  .get(
    '/:id/deliveries',
    ({ ctx, params, query, request, set }) => sendPage({ request, set }, deliveries.list(ctx, params.id, query)),
    {
      can: 'privileged',
      params: IdParams,
      query: DeliveryList,
      response: { 200: t.Array(Delivery), 404: ProblemShape },
      detail: {
        operationId: 'listPluginDeliveries',
        summary: 'List event deliveries to a plugin',
        description: 'Which events were sent, and what the plugin answered.',
      },
    },
  )
  .post(
    '/:id/deliveries/:deliveryId/replay',
    ({ ctx, params }) => deliveries.replay(ctx, params.id, params.deliveryId),
    {
      can: 'privileged',
      params: t.Object({ id: t.String(), deliveryId: t.String() }),
      response: { 200: Delivery, 404: ProblemShape, 409: ProblemShape },
      detail: { operationId: 'replayPluginDelivery', summary: 'Deliver an event again' },
    },
  )
