import { Elysia, t } from 'elysia'
import { guard } from '../../accounts/guard'
import { ProblemShape } from '../../core/problem'
import { sendPage } from '../../core/response-headers'
import { IdParams, optionalBody, toJsonOrNull } from '../../core/shapes'
import {
  Cancellation,
  CouponAttachment,
  DynamicAmount,
  NewSubscription,
  OwnSubscription,
  PricePreview,
  Subscription,
  SubscriptionList,
  WorkspaceSubscription,
  WorkspaceSubscriptionList,
} from '../shapes'
import { cancel } from './cancellation'
import { previewSubscription } from './price-preview'
import { setAmount, setCoupon } from './pricing'
import { SubscriptionStatistics } from './shapes'
import { summarize } from './statistics'
import * as subscriptions from './subscriptions'

const changeResponses = {
  200: Subscription,
  400: ProblemShape,
  404: ProblemShape,
  409: ProblemShape,
  502: ProblemShape,
  503: ProblemShape,
}

export const subscriptionRoutes = new Elysia({ prefix: '/subscriptions', tags: ['payments'] })
  .use(guard('payments'))
  .get('/me', async ({ ctx }) => toJsonOrNull(await subscriptions.getCurrent(ctx)), {
    can: 'user',
    response: OwnSubscription,
    detail: {
      operationId: 'getMySubscription',
      summary: 'Get your current subscription',
      description: 'Returns the active or trialing subscription with the limits of its plan, or `null`.',
    },
  })
  .get('/', ({ ctx, query, request, set }) => sendPage({ request, set }, subscriptions.list(ctx, query)), {
    can: 'user',
    query: SubscriptionList,
    response: t.Array(Subscription),
    detail: { operationId: 'listSubscriptions', summary: 'List subscriptions' },
  })
  .get(
    '/workspaces',
    ({ ctx, query, request, set }) => sendPage({ request, set }, subscriptions.listOfWorkspaces(ctx, query)),
    {
      can: 'privileged',
      query: WorkspaceSubscriptionList,
      response: t.Array(WorkspaceSubscription),
      detail: { operationId: 'listWorkspaceSubscriptions', summary: 'List the subscriptions of workspaces' },
    },
  )
  .get('/statistics', ({ ctx, request }) => summarize(ctx, request), {
    can: 'privileged',
    response: SubscriptionStatistics,
    detail: {
      operationId: 'getSubscriptionStatistics',
      summary: 'Get the numbers of subscriptions and the monthly revenue',
    },
  })
  .get('/:id', ({ ctx, params }) => subscriptions.get(ctx, params.id), {
    can: 'user',
    params: IdParams,
    response: { 200: Subscription, 404: ProblemShape },
    detail: { operationId: 'getSubscription', summary: 'Get a subscription' },
  })
  .get('/:id/price-preview', ({ ctx, params }) => previewSubscription(ctx, params.id), {
    can: 'user',
    params: IdParams,
    response: { 200: PricePreview, 404: ProblemShape },
    detail: {
      operationId: 'previewSubscriptionPrices',
      summary: 'Preview the next payments of a subscription',
      description: 'Returns up to 12, and none when the subscription ends before.',
    },
  })
  .post('/', ({ ctx, body }) => subscriptions.create(ctx, body), {
    can: 'user',
    addsData: true,
    body: NewSubscription,
    response: { 200: Subscription, 400: ProblemShape, 404: ProblemShape, 409: ProblemShape },
    detail: {
      operationId: 'createSubscription',
      summary: 'Create a pending subscription',
      description: 'It is pending until its checkout is completed.',
    },
  })
  .put('/:id/dynamic-amount', ({ ctx, params, body }) => setAmount(ctx, params.id, body), {
    can: 'privileged',
    params: IdParams,
    body: DynamicAmount,
    response: changeResponses,
    detail: {
      operationId: 'setDynamicAmount',
      summary: 'Set the price of a dynamic plan',
      description: 'The price applies from the next billing cycle.',
    },
  })
  .put('/:id/coupon', ({ ctx, params, body }) => setCoupon(ctx, params.id, body), {
    can: 'privileged',
    params: IdParams,
    body: CouponAttachment,
    response: changeResponses,
    detail: {
      operationId: 'setSubscriptionCoupon',
      summary: 'Attach or remove a coupon',
      description: '`null` removes the coupon.',
    },
  })
  .put('/:id/cancel', ({ ctx, params, body }) => cancel(ctx, params.id, body ?? undefined), {
    can: 'user',
    params: IdParams,
    body: optionalBody(Cancellation),
    response: changeResponses,
    detail: { operationId: 'cancelSubscription', summary: 'Cancel a subscription' },
  })
