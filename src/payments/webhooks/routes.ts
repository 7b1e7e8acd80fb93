import { Elysia, t } from 'elysia'
import { guard, streamGuard } from '../../accounts/guard'
import { ProblemShape } from '../../core/problem'
import { sendPage } from '../../core/response-headers'
import { IdParams } from '../../core/shapes'
import * as inbox from './provider-events'
import { ProviderEvent, ProviderEventDetails, ProviderEventList, ProviderEventReceipt } from './shapes'
import { receiveWebhook } from './webhook-receiver'

const providerEventRoutes = new Elysia({ prefix: '/payments/events', tags: ['payments'] })
  .use(guard('payments'))
  .get('/', ({ ctx, query, request, set }) => sendPage({ request, set }, inbox.list(ctx, query)), {
    can: 'privileged',
    query: ProviderEventList,
    response: t.Array(ProviderEvent),
    detail: {
      operationId: 'listProviderEvents',
      summary: 'List events of payment providers',
      description: 'What payment providers sent, and what came of it.',
    },
  })
  .get('/:id', ({ ctx, params }) => inbox.get(ctx, params.id), {
    can: 'privileged',
    params: IdParams,
    response: { 200: ProviderEventDetails, 404: ProblemShape },
    detail: { operationId: 'getProviderEvent', summary: 'Get an event of a payment provider' },
  })
  .post('/:id/replay', ({ ctx, params }) => inbox.replay(ctx, params.id), {
    can: 'privileged',
    params: IdParams,
    response: { 200: ProviderEvent, 404: ProblemShape },
    detail: {
      operationId: 'replayProviderEvent',
      summary: 'Apply an event of a payment provider again',
      description: 'Does only what has not been done yet.',
    },
  })

const webhookReceiverRoutes = new Elysia({ prefix: '/payments/webhooks', tags: ['payments'] })
  .use(streamGuard('payments'))
  .post('/:providerKind', ({ ctx, params, request }) => receiveWebhook(ctx, params.providerKind, request), {
    openAtAddress: true,
    params: t.Object({ providerKind: t.String() }),
    response: {
      200: ProviderEventReceipt,
      400: ProblemShape,
      401: ProblemShape,
      413: ProblemShape,
      502: ProblemShape,
      503: ProblemShape,
    },
    detail: {
      operationId: 'receiveProviderEvent',
      summary: 'Receive an event of a payment provider',
      description: 'Verified by the signature of the provider. `?tenant=` may name the tenant.',
    },
  })

/** The webhooks of payment providers, and the events that they sent. */
export const webhookRoutes = [providerEventRoutes, webhookReceiverRoutes]
