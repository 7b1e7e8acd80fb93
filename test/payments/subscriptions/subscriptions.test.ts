import { describe, expect, test } from 'bun:test'
import { issueApiToken } from '../../../src/accounts/api-tokens'
import { apiClient, createTestTenant, statusAndCode } from '../../test-tenant'
import {
  createPaymentsFixture,
  done,
  FORBIDDEN,
  ID,
  NO_PLAN,
  NO_SUBSCRIPTION,
  TIME,
  UNAUTHENTICATED,
} from '../fixtures'

const at = await createPaymentsFixture()
const { admin, as, stranger, users } = at
const monthly = { planId: at.pro, billingCycle: 'monthly' }
const forUser = (id = users.user) => ({ billableEntityType: 'user', billableEntityId: id })
const ids = (list: { _id: string }[]) => list.map(({ _id }) => _id)

describe('subscriptions', () => {
  test('wait for their checkout, at the price that the plan has now', async () => {
    const body = await done(as('user').post('/subscriptions', { ...monthly, dynamicAmount: 'x', providerKind: 'x' }))
    const subscription = {
      ...{ _id: ID, planId: at.pro, billableEntityType: 'user', billableEntityId: users.user, status: 'pending' },
      ...{ billingCycle: 'monthly', currency: 'USD', basePrice: 20, finalPrice: 20, dynamicAmount: null },
      ...{ couponId: null, couponCode: null, couponBenefitEndsAt: null, currentPeriodStart: null },
      ...{ currentPeriodEnd: null, trialEndsAt: null, cancelAtPeriodEnd: false, cancelRequested: null },
      ...{ providerKind: null, providerSourceId: null, externalSubscriptionId: null, metadata: {} },
      ...{ created: TIME, updated: TIME },
    }
    expect(body).toEqual(subscription)
    await done(admin.put(`/plans/${at.pro}`, { monthlyPrice: 25 }))
    expect(await done(as('user').get(`/subscriptions/${body._id}`))).toEqual(subscription)
    await done(admin.put(`/plans/${at.pro}`, { monthlyPrice: 20 }))
    expect((await done(as('user').post('/subscriptions', { ...monthly, billingCycle: 'yearly' }))).finalPrice).toBe(200)
    expect(await done(as('user').get('/subscriptions/me'))).toBeNull()
  })

  test('are of the caller, whatever they say; admins say of whom', async () => {
    const said = { ...forUser(users.other), dynamicAmount: 5 }
    const own = await done(as('user').post('/subscriptions', { ...monthly, ...said }))
    expect(own.billableEntityId).toBe(users.user)
    const theirs = await done(admin.post('/subscriptions', { ...monthly, ...said }))
    expect([theirs.billableEntityId, theirs.status, theirs.dynamicAmount]).toEqual([users.other, 'pending', null])
    const dynamic = await done(admin.post('/subscriptions', { ...monthly, ...said, planId: at.dynamic }))
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

  test('are of plans that there are, in a cycle that there is, with a coupon that is good', async () => {
    const old = await at.plan({ name: 'Old', monthlyPrice: 1, yearlyPrice: 1, isActive: false })
    const euros = await at.coupon({ discountType: 'fixed', discountValue: 5, currency: 'EUR' })
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
    const { _id: couponId, code } = await at.coupon({ discountValue: 33.33 })
    const body = await done(as('user').post('/subscriptions', { ...monthly, couponCode: code.toUpperCase() }))
    expect(body).toMatchObject({ couponId, couponCode: code, basePrice: 20, finalPrice: 13.33 })
  })

  test('of somebody else are refused, and those that are not there are missing', async () => {
    const id = await at.pending('user')
    for (const path of [`/subscriptions/${id}`]) {
      expect(statusAndCode(await as('other').get(path))).toEqual(FORBIDDEN)
      expect(statusAndCode(await as('other').put(`${path}/cancel`))).toEqual(FORBIDDEN)
      expect(statusAndCode(await as('other').put(`/checkout/${id}/cancel`))).toEqual(FORBIDDEN)
      expect(statusAndCode(await stranger.get(path))).toEqual(UNAUTHENTICATED)
    }
    for (const who of [as('user'), as('editor')]) {
      expect(statusAndCode(await who.get('/subscriptions/workspaces'))).toEqual(FORBIDDEN)
      expect(statusAndCode(await who.put(`/subscriptions/${id}/coupon`, { couponCode: null }))).toEqual(FORBIDDEN)
      expect(statusAndCode(await who.put(`/subscriptions/${id}/dynamic-amount`, { amount: 1 }))).toEqual(FORBIDDEN)
    }
    const foreign = await (await createPaymentsFixture()).pending()
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

  test('are listed to their own, and to admins by whose they are and how they stand', async () => {
    const own = await createPaymentsFixture()
    const [mine, theirs] = [await own.pending('user'), await own.pending('other')]
    await done(own.as('other').put(`/subscriptions/${theirs}/cancel`))
    expect(ids(await done(own.as('user').get(`/subscriptions?billableEntityId=${own.users.other}`)))).toEqual([mine])
    expect(ids(await done(own.admin.get('/subscriptions')))).toEqual([theirs, mine])
    const find = async (query: string) => ids(await done(own.admin.get(`/subscriptions?${query}`)))
    expect(await find(`billableEntityType=user&billableEntityId=${own.users.other}`)).toEqual([theirs])
    expect(await find('status=pending')).toEqual([mine])
    expect(await find('status=expired,canceled')).toEqual([theirs])
    expect(await find('status=undefined&billableEntityType=')).toEqual([theirs, mine])
    expect(await find('billableEntityType=workspace')).toEqual([])
    for (const query of ['status=paid', 'billableEntityType=team', 'limit=-1'])
      expect(statusAndCode(await own.admin.get(`/subscriptions?${query}`))).toEqual([400, 'INVALID_INPUT'])
    expect(await done((await createTestTenant()).as('admin').get('/subscriptions'))).toEqual([])
  })

  test('belong to the workspace that somebody acts in, and what is theirs alone stays theirs', async () => {
    const own = await createPaymentsFixture()
    const personal = await own.pending('user')
    const { _id: workspace } = await done(own.as('user').post('/workspaces', { name: 'Office' }), 201)
    await done(own.as('user').post(`/workspaces/${workspace}/activate`))
    const shared = await done(own.as('user').post('/subscriptions', { planId: own.free, billingCycle: 'monthly' }))
    expect([shared.billableEntityType, shared.billableEntityId]).toEqual(['workspace', workspace])
    expect(ids(await done(own.as('user').get('/subscriptions')))).toEqual([shared._id])
    await done(own.as('user').get(`/subscriptions/${personal}`))
    await done(own.as('user').post('/checkout', { subscriptionId: shared._id }))
    expect(await done(own.as('user').get('/subscriptions/me'))).toMatchObject({ _id: shared._id, limits: {} })
    // Others are no members of it; an admin who acts as one of them sees what they see.
    expect(statusAndCode(await own.as('other').get(`/subscriptions/${shared._id}`))).toEqual(FORBIDDEN)
    const guise = { 'x-impersonate-user': own.users.other }
    expect(statusAndCode(await own.admin.with(guise).get(`/subscriptions/${shared._id}`))).toEqual(FORBIDDEN)
    const inside = { 'x-impersonate-user': own.users.user, 'x-impersonate-workspace': workspace }
    expect((await done(own.admin.with(inside).get('/subscriptions/me')))._id).toBe(shared._id)
    const [listed] = await done(own.admin.get(`/subscriptions/workspaces?billableEntityId=${workspace}`))
    expect(listed).toMatchObject({ _id: shared._id, planId: { _id: own.free, name: 'Free', monthlyPrice: 0 } })
    const find = async (query: string) => (await done(own.admin.get(`/subscriptions/workspaces?${query}`))).length
    expect([await find(`planId=${own.pro}`), await find('status=expired'), await find('')]).toEqual([0, 0, 1])
  })

  test('are reached by an API token as far as its scopes go', async () => {
    const id = await at.pending('user')
    const token = async (...scopes: string[]) => {
      const { token } = await issueApiToken(at.tenant, users.user, { nickname: 'x', scopes })
      return apiClient(at.origin, { 'x-api-key': token })
    }
    const [reader, writer, other] = [
      await token('payments:read'),
      await token('payments:write'),
      await token('entities:write'),
    ]
    await done(reader.get(`/subscriptions/${id}`))
    expect(statusAndCode(await reader.put(`/subscriptions/${id}/cancel`))).toEqual(FORBIDDEN)
    expect(statusAndCode(await reader.post('/checkout', { subscriptionId: id }))).toEqual(FORBIDDEN)
    for (const path of [`/subscriptions/${id}`, '/invoices', `/plans/${at.pro}`])
      expect(statusAndCode(await other.get(path))).toEqual(FORBIDDEN)
    await done(writer.put(`/subscriptions/${id}/cancel`))
  })

  test('that wait are not made without end', async () => {
    const own = await createPaymentsFixture()
    for (let n = 0; n < 100; n++) await own.pending('user')
    const { status, body } = await own.as('user').post('/subscriptions', { planId: own.pro, billingCycle: 'monthly' })
    expect([status, body.code]).toEqual([409, 'TOO_MANY_SUBSCRIPTIONS'])
    await own.pending('other')
  })
})

describe('the amount of a dynamic plan', () => {
  const path = (id: string) => `/subscriptions/${id}/dynamic-amount`

  test('is said by an admin, who may say another', async () => {
    const id = await at.pending('user', { planId: at.dynamic })
    expect((await done(admin.get(`/subscriptions/${id}`))).finalPrice).toBeNull()
    expect(await done(admin.put(path(id), { amount: 49.999 }))).toMatchObject({ dynamicAmount: 50, finalPrice: 50 })
    expect(await done(admin.put(path(id), { amount: 0.01 }))).toMatchObject({ status: 'pending', basePrice: 0.01 })
    const { code } = await at.coupon({ discountValue: 25 })
    await done(admin.put(`/subscriptions/${id}/coupon`, { couponCode: code }))
    expect(await done(admin.put(path(id), { amount: 100 }))).toMatchObject({ basePrice: 100, finalPrice: 75 })
  })

  test('is a positive number that the currency has', async () => {
    const id = await at.pending('user', { planId: at.dynamic })
    for (const amount of [0, -1, 0.001, 1e21, 1e15, '10', null, undefined, {}, [10], true])
      expect(statusAndCode(await admin.put(path(id), { amount })), String(amount)).toEqual([400, 'INVALID_AMOUNT'])
    expect((await done(admin.get(`/subscriptions/${id}`))).dynamicAmount).toBeNull()
  })

  test('is of no other plan, and of none that ended', async () => {
    expect(statusAndCode(await admin.put(path(await at.pending()), { amount: 5 }))).toEqual([400, 'PLAN_NOT_DYNAMIC'])
    const id = await at.pending('user', { planId: at.dynamic })
    await done(admin.put(`/subscriptions/${id}/cancel`))
    expect(statusAndCode(await admin.put(path(id), { amount: 5 }))).toEqual([409, 'SUBSCRIPTION_ENDED'])
  })
})

describe('cancel', () => {
  test('ends what waits and what is in force, once and for all', async () => {
    const who = await at.customer()
    const { subscriptionId: id } = await done(who.post('/checkout', { planId: at.free, billingCycle: 'monthly' }))
    expect((await done(who.get('/subscriptions/me')))._id).toBe(id)
    expect(await done(who.put(`/subscriptions/${id}/cancel`))).toMatchObject({ _id: id, status: 'canceled' })
    expect((await done(who.put(`/checkout/${id}/cancel`))).status).toBe('canceled')
    expect(await done(who.get('/subscriptions/me'))).toBeNull()
    expect(statusAndCode(await who.post('/checkout', { subscriptionId: id }))).toEqual([
      400,
      'SUBSCRIPTION_NOT_PENDING',
    ])
    const waiting = await at.pending('user')
    expect((await done(as('user').put(`/checkout/${waiting}/cancel`))).status).toBe('canceled')
  })

  test('has nothing to do with what has expired', async () => {
    const id = await at.pending('user')
    await at.told(id, 'checkout abandoned')
    expect(statusAndCode(await as('user').put(`/subscriptions/${id}/cancel`))).toEqual([409, 'SUBSCRIPTION_ENDED'])
    expect(await at.status(id)).toBe('expired')
  })
})
