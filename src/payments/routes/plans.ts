import { Elysia, t } from 'elysia'
import { guard } from '../../accounts/guard'
import { ProblemShape } from '../../core/problem'
import { one } from '../../core/shapes'
import * as plans from '../plans'
import { NewPlan, Plan, PlanChange, PlanList } from '../shapes'

const changed = { 200: Plan, 404: ProblemShape }

export const planRoutes = new Elysia({ prefix: '/plans', tags: ['payments'] })
  .use(guard('payments'))
  .get('/public', ({ ctx, query, request, set }) => plans.listPublic(ctx, query, { request, set }), {
    open: true,
    query: PlanList,
    response: t.Array(Plan),
    detail: { summary: 'What anybody may subscribe to' },
  })
  .get('/', ({ ctx, query, request, set }) => plans.list(ctx, query, { request, set }), {
    can: 'privileged',
    query: PlanList,
    response: t.Array(Plan),
  })
  .get('/:id', ({ ctx, params }) => plans.get(ctx, params.id), {
    can: 'user',
    params: one,
    response: { 200: Plan, 404: ProblemShape },
  })
  .post('/', ({ ctx, body }) => plans.create(ctx, body), { can: 'privileged', body: NewPlan, response: Plan })
  .put('/:id', ({ ctx, params, body }) => plans.change(ctx, params.id, body), {
    can: 'privileged',
    params: one,
    body: PlanChange,
    response: changed,
  })
  .delete('/:id', ({ ctx, params }) => plans.remove(ctx, params.id), {
    can: 'privileged',
    params: one,
    response: changed,
    detail: { summary: 'Have nobody subscribe to it any more' },
  })
