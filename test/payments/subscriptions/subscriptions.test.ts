import { describe, expect, test } from 'bun:test'
import { issueApiToken } from '../../../src/accounts/api-tokens'
import { FORBIDDEN, ID, TIME, UNAUTHENTICATED } from '../../expectations'
import { apiClient, createTestTenant, statusAndCode } from '../../test-tenant'
import { createPaymentsFixture, expectOk, NO_PLAN, NO_SUBSCRIPTION } from '../fixtures'

const at = await createPaymentsFixture()
const { admin, as, anonymous, users } = at
const monthly = { planId: at.pro, billingCycle: 'monthly' }
const forUser = (id = users.user) => ({ billableEntityType: 'user', billableEntityId: id })
const ids = (list: { _id: string }[]) => list.map(({ _id }) => _id)

describe('subscriptions', () => {
  test('POST /subscriptions creates a pending subscription at the current price, which later changes of the plan do not affect', async () => {
    const body = await expectOk(
      as('user').post('/subscriptions', { ...monthly, dynamicAmount: 'x', providerKind: 'x' }),
    )
    const subscription = {
      ...{ _id: ID, planId: at.pro, billableEntityType: 'user', billableEntityId: users.user, status: 'pending' },
      ...{ billingCycle: 'monthly', currency: 'USD', basePrice: 20, finalPrice: 20, dynamicAmount: null },
      ...{ couponId: null, couponCode: null, couponBenefitEndsAt: null, currentPeriodStart: null },
      ...{ currentPeriodEnd: null, trialEndsAt: null, cancelAtPeriodEnd: false, cancelRequested: null, pause: null },
      ...{ providerKind: null, providerSourceId: null, externalSubscriptionId: null, metadata: {} },
      ...{ created: TIME, updated: TIME },
    }
    expect(body).toEqual(subscription)
    await expectOk(admin.put(`/plans/${at.pro}`, { monthlyPrice: 25 }))
    expect(await expectOk(as('user').get(`/subscriptions/${body._id}`))).toEqual(subscription)
    await expectOk(admin.put(`/plans/${at.pro}`, { monthlyPrice: 20 }))
    expect((await expectOk(as('user').post('/subscriptions', { ...monthly, billingCycle: 'yearly' }))).finalPrice).toBe(
      200,
    )
    expect(await expectOk(as('user').get('/subscriptions/me'))).toBeNull()
  })

  test('POST /subscriptions creates subscriptions of the caller for users, and of the named entity for admins', async () => {
    const named = { ...forUser(users.other), dynamicAmount: 5 }
    const own = await expectOk(as('user').post('/subscriptions', { ...monthly, ...named }))
    expect(own.billableEntityId).toBe(users.user)
    const theirs = await expectOk(admin.post('/subscriptions', { ...monthly, ...named }))
    expect([theirs.billableEntityId, theirs.status, theirs.dynamicAmount]).toEqual([users.other, 'pending', null])
    const dynamic = await expectOk(admin.post('/subscriptions', { ...monthly, ...named, planId: at.dynamic }))
    expect([dynamic.dynamicAmount, dynamic.basePrice, dynamic.finalPrice]).toEqual([5, 5, 5])
    const bad: [object, unknown[]][] = [
      [monthly, [400, 'INVALID_INPUT']],
      [{ ...monthly, billableEntityType: 'user' }, [400, 'INVALID_INPUT']],
      [{ ...monthly, ...forUser(), billableEntityType: 'team' }, [400, 'INVALID_INPUT']],
      [{ ...monthly, ...forUser('nobody') }, [404, 'USER_NOT_FOUND']],
      [{ ...monthly, billableEntityType: 'workspace', billableEntityId: users.user }, [404, 'WORKSPACE_NOT_FOUND']],
    ]
    for (const [body, expected] of bad)
      expect(statusAndCode(await admin.post('/subscriptions', body)), JSON.stringify(body)).toEqual(expected)
    for (const dynamicAmount of ['10', -1, 0, 1e21, {}])
      expect(
        statusAndCode(
          await admin.post('/subscriptions', { ...monthly, ...forUser(), planId: at.dynamic, dynamicAmount }),
        ),
      ).toEqual([400, 'INVALID_AMOUNT'])
  })

  test('POST /subscriptions rejects unknown or inactive plans, unknown cycles and inapplicable coupons with 400 or 404', async () => {
    const old = await at.createPlan({ name: 'Old', monthlyPrice: 1, yearlyPrice: 1, isActive: false })
    const euros = await at.createCoupon({ discountType: 'fixed', discountValue: 5, currency: 'EUR' })
    const bad: [object, unknown[]][] = [
      [{ ...monthly, planId: 'nothing' }, NO_PLAN],
      [{ ...monthly, planId: '\0' }, [400, 'INVALID_INPUT']],
      [{ ...monthly, planId: old._id }, [400, 'PLAN_NOT_ACTIVE']],
      [{ ...monthly, billingCycle: 'weekly' }, [400, 'INVALID_INPUT']],
      [{ planId: at.pro }, [400, 'INVALID_INPUT']],
      [{ billingCycle: 'monthly' }, [400, 'INVALID_INPUT']],
      [{ ...monthly, couponCode: 'nothing' }, [400, 'COUPON_NOT_FOUND']],
      [{ ...monthly, couponCode: euros.code }, [400, 'COUPON_NOT_APPLICABLE']],
    ]
    for (const [body, expected] of bad)
      expect(statusAndCode(await as('user').post('/subscriptions', body)), JSON.stringify(body)).toEqual(expected)
    const { _id: couponId, code } = await at.createCoupon({ discountValue: 33.33 })
    const body = await expectOk(as('user').post('/subscriptions', { ...monthly, couponCode: code.toUpperCase() }))
    expect(body).toMatchObject({ couponId, couponCode: code, basePrice: 20, finalPrice: 13.33 })
  })

  test('subscription routes answer 403 for a subscription of another user, and 404 SUBSCRIPTION_NOT_FOUND for an unknown one', async () => {
    const id = await at.createPending('user')
    for (const path of [`/subscriptions/${id}`]) {
      expect(statusAndCode(await as('other').get(path))).toEqual(FORBIDDEN)
      expect(statusAndCode(await as('other').put(`${path}/cancel`))).toEqual(FORBIDDEN)
      expect(statusAndCode(await as('other').put(`/checkout/${id}/cancel`))).toEqual(FORBIDDEN)
      expect(statusAndCode(await anonymous.get(path))).toEqual(UNAUTHENTICATED)
    }
    for (const client of [as('user'), as('editor')]) {
      expect(statusAndCode(await client.get('/subscriptions/workspaces'))).toEqual(FORBIDDEN)
      expect(statusAndCode(await client.put(`/subscriptions/${id}/coupon`, { couponCode: null }))).toEqual(FORBIDDEN)
      expect(statusAndCode(await client.put(`/subscriptions/${id}/dynamic-amount`, { amount: 1 }))).toEqual(FORBIDDEN)
    }
    const foreign = await (await createPaymentsFixture()).createPending()
    for (const unknown of ['x', '%00', Bun.randomUUIDv7(), foreign]) {
      const path = `/subscriptions/${unknown}`
      expect(statusAndCode(await admin.get(path))).toEqual(NO_SUBSCRIPTION)
      expect(statusAndCode(await admin.put(`${path}/cancel`))).toEqual(NO_SUBSCRIPTION)
      expect(statusAndCode(await admin.put(`${path}/coupon`, { couponCode: null }))).toEqual(NO_SUBSCRIPTION)
      expect(statusAndCode(await admin.put(`${path}/dynamic-amount`, { amount: 1 }))).toEqual(NO_SUBSCRIPTION)
      expect(statusAndCode(await admin.put(`/checkout/${unknown}/cancel`))).toEqual(NO_SUBSCRIPTION)
    }
    expect(await at.status(id)).toBe('pending')
  })

  test('GET /subscriptions lists a user’s own subscriptions, and admins filter all of them by entity and status', async () => {
    const own = await createPaymentsFixture()
    const [mine, theirs] = [await own.createPending('user'), await own.createPending('other')]
    await expectOk(own.as('other').put(`/subscriptions/${theirs}/cancel`))
    expect(ids(await expectOk(own.as('user').get(`/subscriptions?billableEntityId=${own.users.other}`)))).toEqual([
      mine,
    ])
    expect(ids(await expectOk(own.admin.get('/subscriptions')))).toEqual([theirs, mine])
    const find = async (query: string) => ids(await expectOk(own.admin.get(`/subscriptions?${query}`)))
    expect(await find(`billableEntityType=user&billableEntityId=${own.users.other}`)).toEqual([theirs])
    expect(await find('status=pending')).toEqual([mine])
    expect(await find('status=expired,canceled')).toEqual([theirs])
    expect(await find('status=undefined&billableEntityType=')).toEqual([theirs, mine])
    expect(await find('billableEntityType=workspace')).toEqual([])
    for (const query of ['status=paid', 'billableEntityType=team', 'limit=-1'])
      expect(statusAndCode(await own.admin.get(`/subscriptions?${query}`))).toEqual([400, 'INVALID_INPUT'])
    expect(await expectOk((await createTestTenant()).as('admin').get('/subscriptions'))).toEqual([])
  })

  test('subscriptions created in an active workspace belong to it, and personal ones stay readable by their user', async () => {
    const own = await createPaymentsFixture()
    const personal = await own.createPending('user')
    const { _id: workspace } = await expectOk(own.as('user').post('/workspaces', { name: 'Office' }), 201)
    await expectOk(own.as('user').post(`/workspaces/${workspace}/activate`))
    const shared = await expectOk(own.as('user').post('/subscriptions', { planId: own.free, billingCycle: 'monthly' }))
    expect([shared.billableEntityType, shared.billableEntityId]).toEqual(['workspace', workspace])
    expect(ids(await expectOk(own.as('user').get('/subscriptions')))).toEqual([shared._id])
    await expectOk(own.as('user').get(`/subscriptions/${personal}`))
    await expectOk(own.as('user').post('/checkout', { subscriptionId: shared._id }))
    expect(await expectOk(own.as('user').get('/subscriptions/me'))).toMatchObject({ _id: shared._id, limits: {} })
    // An admin who impersonates a non-member sees what that user sees.
    expect(statusAndCode(await own.as('other').get(`/subscriptions/${shared._id}`))).toEqual(FORBIDDEN)
    const impersonation = { 'x-impersonate-user': own.users.other }
    expect(statusAndCode(await own.admin.with(impersonation).get(`/subscriptions/${shared._id}`))).toEqual(FORBIDDEN)
    const workspaceImpersonation = { 'x-impersonate-user': own.users.user, 'x-impersonate-workspace': workspace }
    expect((await expectOk(own.admin.with(workspaceImpersonation).get('/subscriptions/me')))._id).toBe(shared._id)
    const [listed] = await expectOk(own.admin.get(`/subscriptions/workspaces?billableEntityId=${workspace}`))
    expect(listed).toMatchObject({ _id: shared._id, planId: { _id: own.free, name: 'Free', monthlyPrice: 0 } })
    const find = async (query: string) => (await expectOk(own.admin.get(`/subscriptions/workspaces?${query}`))).length
    expect([await find(`planId=${own.pro}`), await find('status=expired'), await find('')]).toEqual([0, 0, 1])
  })

  test('an API token reads subscriptions with payments:read and changes them with payments:write, or gets 403 FORBIDDEN', async () => {
    const id = await at.createPending('user')
    const token = async (...scopes: string[]) => {
      const { token } = await issueApiToken(at.tenant, users.user, { nickname: 'x', scopes })
      return apiClient(at.origin, { 'x-api-key': token })
    }
    const [reader, writer, entityWriter] = [
      await token('payments:read'),
      await token('payments:write'),
      await token('entities:write'),
    ]
    await expectOk(reader.get(`/subscriptions/${id}`))
    expect(statusAndCode(await reader.put(`/subscriptions/${id}/cancel`))).toEqual(FORBIDDEN)
    expect(statusAndCode(await reader.post('/checkout', { subscriptionId: id }))).toEqual(FORBIDDEN)
    for (const path of [`/subscriptions/${id}`, '/invoices', `/plans/${at.pro}`])
      expect(statusAndCode(await entityWriter.get(path))).toEqual(FORBIDDEN)
    await expectOk(writer.put(`/subscriptions/${id}/cancel`))
  })

  test('POST /subscriptions rejects the 101st pending subscription with 409 TOO_MANY_SUBSCRIPTIONS', async () => {
    const own = await createPaymentsFixture()
    for (let n = 0; n < 100; n++) await own.createPending('user')
    const { status, body } = await own.as('user').post('/subscriptions', { planId: own.pro, billingCycle: 'monthly' })
    expect([status, body.code]).toEqual([409, 'TOO_MANY_SUBSCRIPTIONS'])
    await own.createPending('other')
  })
})

describe('the amount of a dynamic plan', () => {
  const path = (id: string) => `/subscriptions/${id}/dynamic-amount`

  test('PUT /subscriptions/:id/dynamic-amount lets an admin set and change the price of a pending subscription', async () => {
    const id = await at.createPending('user', { planId: at.dynamic })
    expect((await expectOk(admin.get(`/subscriptions/${id}`))).finalPrice).toBeNull()
    expect(await expectOk(admin.put(path(id), { amount: 49.99 }))).toMatchObject({ dynamicAmount: 49.99 })
    expect(await expectOk(admin.put(path(id), { amount: 0.01 }))).toMatchObject({ status: 'pending', basePrice: 0.01 })
    const { code } = await at.createCoupon({ discountValue: 25 })
    await expectOk(admin.put(`/subscriptions/${id}/coupon`, { couponCode: code }))
    expect(await expectOk(admin.put(path(id), { amount: 100 }))).toMatchObject({ basePrice: 100, finalPrice: 75 })
  })

  test('PUT /subscriptions/:id/dynamic-amount rejects an invalid amount with 400 INVALID_AMOUNT', async () => {
    const id = await at.createPending('user', { planId: at.dynamic })
    for (const amount of [0, -1, 0.001, 49.999, 1e21, 1e15, '10', null, undefined, {}, [10], true])
      expect(statusAndCode(await admin.put(path(id), { amount })), String(amount)).toEqual([400, 'INVALID_AMOUNT'])
    expect((await expectOk(admin.get(`/subscriptions/${id}`))).dynamicAmount).toBeNull()
  })

  test('PUT /subscriptions/:id/dynamic-amount rejects other plans with 400 PLAN_NOT_DYNAMIC and ended subscriptions with 409', async () => {
    expect(statusAndCode(await admin.put(path(await at.createPending()), { amount: 5 }))).toEqual([
      400,
      'PLAN_NOT_DYNAMIC',
    ])
    const id = await at.createPending('user', { planId: at.dynamic })
    await expectOk(admin.put(`/subscriptions/${id}/cancel`))
    expect(statusAndCode(await admin.put(path(id), { amount: 5 }))).toEqual([409, 'SUBSCRIPTION_ENDED'])
  })
})

describe('PUT /subscriptions/:id/cancel', () => {
  test('PUT /subscriptions/:id/cancel ends a pending or active subscription, and may be repeated', async () => {
    const client = await at.createCustomer()
    const { subscriptionId: id } = await expectOk(
      client.post('/checkout', { planId: at.free, billingCycle: 'monthly' }),
    )
    expect((await expectOk(client.get('/subscriptions/me')))._id).toBe(id)
    expect(await expectOk(client.put(`/subscriptions/${id}/cancel`))).toMatchObject({ _id: id, status: 'canceled' })
    expect((await expectOk(client.put(`/checkout/${id}/cancel`))).status).toBe('canceled')
    expect(await expectOk(client.get('/subscriptions/me'))).toBeNull()
    expect(statusAndCode(await client.post('/checkout', { subscriptionId: id }))).toEqual([
      400,
      'SUBSCRIPTION_NOT_PENDING',
    ])
    const waiting = await at.createPending('user')
    expect((await expectOk(as('user').put(`/checkout/${waiting}/cancel`))).status).toBe('canceled')
  })

  test('PUT /subscriptions/:id/cancel rejects an expired subscription with 409 SUBSCRIPTION_ENDED', async () => {
    const id = await at.createPending('user')
    await at.applyTrigger(id, 'checkout abandoned')
    expect(statusAndCode(await as('user').put(`/subscriptions/${id}/cancel`))).toEqual([409, 'SUBSCRIPTION_ENDED'])
    expect(await at.status(id)).toBe('expired')
  })
})
