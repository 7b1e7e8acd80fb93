import { Elysia, status, t } from 'elysia'
import { guard } from '../../accounts/guard'
import { ProblemShape } from '../../core/problem'
import { free, one, withKeys } from '../../core/shapes'
import * as coupons from '../coupons/coupons'
import { validate } from '../coupons/validation'
import { Coupon, CouponCode, CouponData, CouponList } from '../shapes'

const changed = { 200: Coupon, 400: ProblemShape, 404: ProblemShape }

const anyCoupon = { ...free, ...withKeys({ known: Object.keys(CouponData.properties) }) }

/** What is sent is judged by the verb, whose refusals have a code of their own. */
const described = (required: string[]) => ({
  requestBody: { content: { 'application/json': { schema: { ...CouponData, required } } } },
})

export const couponRoutes = new Elysia({ prefix: '/coupons', tags: ['payments'] })
  .use(guard('payments'))
  .get('/', ({ ctx, query, request, set }) => coupons.list(ctx, query, { request, set }), {
    can: 'privileged',
    query: CouponList,
    response: t.Array(Coupon),
  })
  .get('/:id', ({ ctx, params }) => coupons.get(ctx, params.id), {
    can: 'privileged',
    params: one,
    response: { 200: Coupon, 404: ProblemShape },
  })
  .post('/', async ({ ctx, body }) => status(201, await coupons.create(ctx, body)), {
    can: 'privileged',
    body: anyCoupon,
    response: { 201: Coupon, 400: ProblemShape },
    detail: described(['code', 'discountType', 'discountValue']) as object,
  })
  .put('/:id', ({ ctx, params, body }) => coupons.change(ctx, params.id, body), {
    can: 'privileged',
    params: one,
    body: anyCoupon,
    response: changed,
    detail: described([]) as object,
  })
  .delete('/:id', ({ ctx, params }) => coupons.remove(ctx, params.id), {
    can: 'privileged',
    params: one,
    response: changed,
    detail: { summary: 'Have nobody redeem it any more' },
  })
  .post('/validate', ({ ctx, body, request }) => validate(ctx, body, request), {
    anyone: true,
    body: CouponCode,
    response: { 200: Coupon, 400: ProblemShape, 429: ProblemShape },
    detail: { summary: 'What a code is good for, and whether for a plan' },
  })
