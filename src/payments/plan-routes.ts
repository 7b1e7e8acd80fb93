import { Elysia, t } from 'elysia'
import { guard } from '../accounts/guard'
import { ProblemShape } from '../core/problem'
import { sendPage } from '../core/response-headers'
import { IdParams } from '../core/shapes'
import * as plans from './plans'
import { NewPlan, Plan, PlanChange, PlanList, PricePreview, PricePreviewRequest } from './shapes'
import { previewPlan } from './subscriptions/price-preview'

const changeResponses = { 200: Plan, 400: ProblemShape, 404: ProblemShape }

export const planRoutes = new Elysia({ prefix: '/plans', tags: ['payments'] })
  .use(guard('payments'))
  .get('/public', ({ ctx, query, request, set }) => sendPage({ request, set }, plans.listPublic(ctx, query, request)), {
    open: true,
    query: PlanList,
    response: t.Array(Plan),
    detail: {
      operationId: 'listPublicPlans',
      summary: 'List public plans',
      description: 'Lists active plans. Admins can list archived plans with `isActive=false`.',
    },
  })
  .get('/', ({ ctx, query, request, set }) => sendPage({ request, set }, plans.list(ctx, query)), {
    can: 'privileged',
    query: PlanList,
    response: t.Array(Plan),
    detail: { operationId: 'listPlans', summary: 'List plans' },
  })
  .get('/:id', ({ ctx, params }) => plans.get(ctx, params.id), {
    can: 'user',
    params: IdParams,
    response: { 200: Plan, 404: ProblemShape },
    detail: { operationId: 'getPlan', summary: 'Get a plan' },
  })
  .post('/', ({ ctx, body }) => plans.create(ctx, body), {
    can: 'privileged',
    addsData: true,
    body: NewPlan,
    response: { 200: Plan, 400: ProblemShape },
    detail: { operationId: 'createPlan', summary: 'Create a plan' },
  })
  .put('/:id', ({ ctx, params, body }) => plans.change(ctx, params.id, body), {
    can: 'privileged',
    changesData: true,
    params: IdParams,
    body: PlanChange,
    response: changeResponses,
    detail: { operationId: 'updatePlan', summary: 'Update a plan' },
  })
  .delete('/:id', ({ ctx, params }) => plans.remove(ctx, params.id), {
    can: 'privileged',
    params: IdParams,
    response: changeResponses,
    detail: {
      operationId: 'archivePlan',
      summary: 'Archive a plan',
      description: 'The plan accepts no new subscriptions. Existing subscriptions continue.',
    },
  })
  .post('/:id/price-preview', ({ ctx, params, body }) => previewPlan(ctx, params.id, body), {
    can: 'privileged',
    params: IdParams,
    body: PricePreviewRequest,
    response: { 200: PricePreview, 400: ProblemShape, 404: ProblemShape },
    detail: {
      operationId: 'previewPlanPrices',
      summary: 'Preview what a customer would pay for a plan',
      description: 'Returns the payments of a subscription that begins at a time, with a coupon. Nothing is stored.',
    },
  })
