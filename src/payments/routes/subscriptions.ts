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
    detail: { summary: 'What is in force for the caller, and what its plan allows' },
  })
  .get('/', ({ ctx, query, request, set }) => subscriptions.list(ctx, query, { request, set }), {
    can: 'user',
    query: SubscriptionList,
    response: t.Array(Subscription),
  })
  .get('/workspaces', ({ ctx, query, request, set }) => subscriptions.listOfWorkspaces(ctx, query, { request, set }), {
    can: 'privileged',
    query: WorkspaceSubscriptionList,
    response: t.Array(WorkspaceSubscription),
    detail: { summary: 'Those of workspaces, with their plans' },
  })
  .get('/:id', ({ ctx, params }) => subscriptions.get(ctx, params.id), {
    can: 'user',
    params: one,
    response: { 200: Subscription, 404: ProblemShape },
  })
  .post('/', ({ ctx, body }) => subscriptions.create(ctx, body), {
    can: 'user',
    body: NewSubscription,
    response: { 200: Subscription, 400: ProblemShape, 404: ProblemShape, 409: ProblemShape },
    detail: { summary: 'Make one that waits for its checkout' },
  })
  .put('/:id/dynamic-amount', ({ ctx, params, body }) => setAmount(ctx, params.id, body), {
    can: 'privileged',
    params: one,
    body: DynamicAmount,
    response: changed,
    detail: { summary: 'Say what a dynamic plan costs, from the next cycle on' },
  })
  .put('/:id/coupon', ({ ctx, params, body }) => setCoupon(ctx, params.id, body), {
    can: 'privileged',
    params: one,
    body: CouponAttachment,
    response: changed,
    detail: { summary: 'Attach a coupon, or take it away' },
  })
  .put('/:id/cancel', ({ ctx, params }) => cancel(ctx, params.id), {
    can: 'user',
    params: one,
    response: changed,
    detail: { summary: 'End it now' },
  })
