import { Elysia, status, t } from 'elysia'
import { guard } from '../../accounts/guard'
import { ProblemShape } from '../../core/problem'
import { sendPage } from '../../core/response-headers'
import { IdParams, jsonObject, withKeyPolicy } from '../../core/shapes'
import { Coupon, CouponChange, CouponCode, CouponList, NewCoupon } from '../shapes'
import * as coupons from './coupons'
import { validateCode } from './validation'

const changeResponses = { 200: Coupon, 400: ProblemShape, 404: ProblemShape }

const couponBody = { ...jsonObject, ...withKeyPolicy({ known: Object.keys(CouponChange.properties) }) }

/** The functions of coupons validate the body, because their errors have codes of their own. */
const describeOperation = (operationId: string, summary: string, schema: object) =>
  ({ operationId, summary, requestBody: { content: { 'application/json': { schema } } } }) as object

export const couponRoutes = new Elysia({ prefix: '/coupons', tags: ['payments'] })
  .use(guard('payments'))
  .get('/', ({ ctx, query, request, set }) => sendPage({ request, set }, coupons.list(ctx, query)), {
    can: 'privileged',
    query: CouponList,
    response: t.Array(Coupon),
    detail: { operationId: 'listCoupons', summary: 'List coupons' },
  })
  .get('/:id', ({ ctx, params }) => coupons.get(ctx, params.id), {
    can: 'privileged',
    params: IdParams,
    response: { 200: Coupon, 404: ProblemShape },
    detail: { operationId: 'getCoupon', summary: 'Get a coupon' },
  })
  .post('/', async ({ ctx, body }) => status(201, await coupons.create(ctx, body)), {
    can: 'privileged',
    addsData: true,
    body: couponBody,
    response: { 201: Coupon, 400: ProblemShape },
    detail: describeOperation('createCoupon', 'Create a coupon', NewCoupon),
  })
  .put('/:id', ({ ctx, params, body }) => coupons.change(ctx, params.id, body), {
    can: 'privileged',
    changesData: true,
    params: IdParams,
    body: couponBody,
    response: changeResponses,
    detail: describeOperation('updateCoupon', 'Update a coupon', CouponChange),
  })
  .delete('/:id', ({ ctx, params }) => coupons.remove(ctx, params.id), {
    can: 'privileged',
    params: IdParams,
    response: changeResponses,
    detail: {
      operationId: 'deactivateCoupon',
      summary: 'Deactivate a coupon',
      description: 'The coupon can no longer be redeemed.',
    },
  })
  .post('/validate', ({ ctx, body, request }) => validateCode(ctx, body, request), {
    anyone: true,
    body: CouponCode,
    response: { 200: Coupon, 400: ProblemShape, 429: ProblemShape },
    detail: {
      operationId: 'validateCoupon',
      summary: 'Validate a coupon code',
      description: 'Returns the coupon if it is valid. If planId is given, it must apply to that plan.',
    },
  })
