import { Elysia, status, t } from 'elysia'
import { guard } from '../accounts/guard'
import { ProblemShape } from '../core/problem'
import { done, one, orNothing } from '../core/shapes'
import { listing } from '../storage/lists'
import { token } from './account'
import * as deliveries from './deliveries'
import * as plugins from './plugins'
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

const refusals = { 404: ProblemShape, 409: ProblemShape, 502: ProblemShape }

export const pluginRoutes = new Elysia({ prefix: '/plugins', tags: ['plugins'] })
  .use(guard('plugins'))
  .get('/', ({ ctx, query, request, set }) => plugins.list(ctx, query, { request, set }), {
    can: 'privileged',
    query: t.Object(listing),
    response: t.Array(Plugin),
  })
  .get('/:id', ({ ctx, params }) => plugins.get(ctx, params.id), {
    can: 'privileged',
    params: one,
    response: { 200: Plugin, 404: ProblemShape },
  })
  .post('/', async ({ ctx, body, request, set }) => status(201, await plugins.create(ctx, body, { request, set })), {
    can: 'privileged',
    body: NewPlugin,
    response: { 201: MadePlugin, 409: ProblemShape, 502: ProblemShape },
  })
  .put('/:id', ({ ctx, params, body }) => plugins.change(ctx, params.id, body), {
    can: 'privileged',
    params: one,
    body: PluginChange,
    response: { 200: Plugin, ...refusals },
  })
  .patch('/:id', ({ ctx, params, body }) => plugins.change(ctx, params.id, body), {
    can: 'privileged',
    params: one,
    body: PluginChange,
    response: { 200: Plugin, ...refusals },
  })
  .delete('/:id', ({ ctx, params }) => plugins.remove(ctx, params.id), {
    can: 'privileged',
    params: one,
    response: { 200: done, 404: ProblemShape },
  })
  .post('/:id/reload', ({ ctx, params }) => plugins.reload(ctx, params.id), {
    can: 'privileged',
    params: one,
    response: { 200: Plugin, ...refusals },
    detail: { summary: 'Take over what the manifest says now' },
  })
  .post(
    '/:id/rotate-secret',
    ({ ctx, params, body, request, set }) => plugins.rotateSecret(ctx, params.id, body?.secret, { request, set }),
    {
      can: 'privileged',
      params: one,
      body: orNothing(Rotation),
      response: { 200: NewSecret, 404: ProblemShape },
      detail: { summary: 'Another secret; for a day both sign' },
    },
  )
  .post(
    '/:id/token',
    async ({ ctx, params, request, set }) => status(201, await token(ctx, params.id, { request, set })),
    {
      can: 'privileged',
      params: one,
      response: { 201: NewToken, 404: ProblemShape },
      detail: { summary: 'An API token for the plugin, in the place of those that it had' },
    },
  )
  .get(
    '/:id/deliveries',
    ({ ctx, params, query, request, set }) => deliveries.list(ctx, params.id, query, { request, set }),
    {
      can: 'privileged',
      params: one,
      query: DeliveryList,
      response: { 200: t.Array(Delivery), 404: ProblemShape },
      detail: { summary: 'What the plugin was told, and what it said' },
    },
  )
  .post(
    '/:id/deliveries/:deliveryId/replay',
    ({ ctx, params }) => deliveries.replay(ctx, params.id, params.deliveryId),
    {
      can: 'privileged',
      params: t.Object({ id: t.String(), deliveryId: t.String() }),
      response: { 200: Delivery, 404: ProblemShape, 409: ProblemShape },
      detail: { summary: 'Send it once more' },
    },
  )
