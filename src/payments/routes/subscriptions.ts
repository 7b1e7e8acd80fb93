import { Elysia, t } from 'elysia'
import { guard } from '../../accounts/guard'
import { ProblemShape } from '../../core/problem'
import { one, orNull } from '../../core/shapes'
import {
  CouponAttachment,
  DynamicAmount,
  NewSubscription,
  OwnSubscription,
  Subscription,
  SubscriptionList,
  WorkspaceSubscription,
  WorkspaceSubscriptionList,
} from '../shapes'
import { cancel } from '../subscriptions/ending'
import { setAmount, setCoupon } from '../subscriptions/pricing'
import * as subscriptions from '../subscriptions/subscriptions'

const changed = { 200: Subscription, 400: ProblemShape, 404: ProblemShape, 409: ProblemShape, 502: ProblemShape }

export const subscriptionRoutes = new Elysia({ prefix: '/subscriptions', tags: ['payments'] })
  .use(guard('payments'))
  .get('/me', async ({ ctx }) => orNull(await subscriptions.mine(ctx)), {
    can: 'user',
    response: OwnSubscription,
    detail: {
      operationId: 'getMySubscription',
      summary: 'Get your current subscription',
      description: 'The subscription in force with the limits of its plan, or `null`.',
    },
  })
  .get('/', ({ ctx, query, request, set }) => subscriptions.list(ctx, query, { request, set }), {
    can: 'user',
    query: SubscriptionList,
    response: t.Array(Subscription),
    detail: { operationId: 'listSubscriptions', summary: 'List subscriptions' },
  })
  .get('/workspaces', ({ ctx, query, request, set }) => subscriptions.listOfWorkspaces(ctx, query, { request, set }), {
    can: 'privileged',
    query: WorkspaceSubscriptionList,
    response: t.Array(WorkspaceSubscription),
    detail: { operationId: 'listWorkspaceSubscriptions', summary: 'List the subscriptions of workspaces' },
  })
  .get('/:id', ({ ctx, params }) => subscriptions.get(ctx, params.id), {
    can: 'user',
    params: one,
    response: { 200: Subscription, 404: ProblemShape },
    detail: { operationId: 'getSubscription', summary: 'Get a subscription' },
  })
  .post('/', ({ ctx, body }) => subscriptions.create(ctx, body), {
    can: 'user',
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
    params: one,
    body: DynamicAmount,
    response: changed,
    detail: {
      operationId: 'setDynamicAmount',
      summary: 'Set the price of a dynamic plan',
      description: 'The price counts from the next billing cycle.',
    },
  })
  .put('/:id/coupon', ({ ctx, params, body }) => setCoupon(ctx, params.id, body), {
    can: 'privileged',
    params: one,
    body: CouponAttachment,
    response: changed,
    detail: {
      operationId: 'setSubscriptionCoupon',
      summary: 'Attach or remove a coupon',
      description: '`null` removes the coupon.',
    },
  })
  .put('/:id/cancel', ({ ctx, params }) => cancel(ctx, params.id), {
    can: 'user',
    params: one,
    response: changed,
    detail: { operationId: 'cancelSubscription', summary: 'Cancel a subscription' },
  })
