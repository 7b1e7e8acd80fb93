import { describe, expect, test } from 'bun:test'
import { times } from '../plugins/fixtures'
import { type ApiClient, fullAccessRules, statusAndCode } from '../test-tenant'
import { createPaymentsFixture, expectOk } from './fixtures'

const LIMIT = [403, 'LIMIT_REACHED']
const at = await createPaymentsFixture()
const PATH = '/blueprints/projects/entities'
const limitedBlueprint = (value: unknown, scope = 'user') => ({
  ...{ key: 'projects', name: 'Projects', fields: [{ key: 'title', type: 'string' }] },
  ...{ permissions: fullAccessRules('tenant', 'user'), limitations: [{ scope, value }] },
})
await expectOk(at.admin.post('/blueprints', limitedBlueprint({ planLimit: 'projects' })), 201)

/** Returns how many of `count` concurrent creations succeed; the others have to get LIMIT_REACHED. */
async function fill(client: ApiClient, count: number) {
  const answers = await Promise.all(times(count).map(() => client.post(PATH, {})))
  for (const answer of answers) if (answer.status !== 201) expect(statusAndCode(answer)).toEqual(LIMIT)
  return answers.filter(({ status }) => status === 201).length
}
/** Creates a customer with a free plan of these limits. */
async function subscribe(limits: object) {
  const { _id: planId } = await at.createPlan({ name: 'x', monthlyPrice: 0, yearlyPrice: 0, limits })
  const client = await at.createCustomer()
  const { subscriptionId } = await expectOk(client.post('/checkout', { planId, billingCycle: 'monthly' }))
  return { client: client as unknown as ApiClient & { id: string }, id: subscriptionId as string, planId }
}

describe('plan limits', () => {
  test('a plan limit bounds the entities of a user, also for concurrent requests, and further ones get 403 LIMIT_REACHED', async () => {
    const { client, planId } = await subscribe({ projects: 3 })
    expect((await expectOk(client.get('/subscriptions/me'))).limits).toEqual({ projects: 3 })
    expect(await fill(client, 10)).toBe(3)
    expect((await client.post(PATH, {})).body.details).toMatchObject({ value: 3 })
    await expectOk(at.admin.put(`/plans/${planId}`, { limits: { projects: 5 } }))
    expect(await fill(client, 10)).toBe(2)
    const operations = [{ op: 'create', data: {} }]
    expect(statusAndCode(await client.post(`${PATH}/batch`, { operations }))).toEqual(LIMIT)
  })

  test('a plan limit is rounded down to a whole number and may be very large', async () => {
    expect(await fill((await subscribe({ projects: 1.5 })).client, 3)).toBe(1)
    expect(await fill((await subscribe({ projects: 1e300 })).client, 3)).toBe(3)
    expect(await fill((await subscribe({ projects: -1 })).client, 1)).toBe(0)
  })

  test('a plan limit is zero without a subscription, before one and after its cancellation', async () => {
    const unsubscribed = await at.createCustomer()
    expect(await fill(unsubscribed as unknown as ApiClient, 2)).toBe(0)
    const { client, id } = await subscribe({ projects: 3 })
    expect(await fill(client, 1)).toBe(1)
    await expectOk(client.put(`/subscriptions/${id}/cancel`))
    expect(await fill(client, 1)).toBe(0)
    expect((await expectOk(client.get(PATH))).length).toBeGreaterThan(0)
  })

  test('a plan limit applies to a past-due subscription until its grace period ends', async () => {
    const { client, id } = await subscribe({ projects: 2 })
    await at.applyTrigger(id, 'payment failed', { occurredAt: Date.now() })
    expect(await fill(client, 1)).toBe(1)
    await at.applyTrigger(id, 'grace ended')
    expect(await fill(client, 1)).toBe(0)
  })

  test('a plan limit applies neither when the plan does not define it nor to admins', async () => {
    for (const limits of [{}, { projects: null }, { others: 1 }])
      expect(await fill((await subscribe(limits)).client, 4)).toBe(4)
    expect(await fill(at.admin, 3)).toBe(3)
  })

  test('a plan limit of a workspace applies to users who act in it', async () => {
    const own = await createPaymentsFixture()
    await expectOk(
      own.admin.post('/blueprints', limitedBlueprint({ planLimit: 'projects', otherwise: 1 }, 'workspace')),
      201,
    )
    const user = own.as('user')
    expect(await fill(user, 3)).toBe(1)
    const { _id } = await expectOk(user.post('/workspaces', { name: 'Office' }), 201)
    await expectOk(user.post(`/workspaces/${_id}/activate`))
    expect(await fill(user, 3)).toBe(1)
    const { code } = await own.createCoupon({ discountValue: 100 })
    await expectOk(user.post('/checkout', { planId: own.pro, billingCycle: 'monthly', couponCode: code }))
    expect(await fill(user, 3)).toBe(1)
    expect((await expectOk(user.get('/subscriptions/me'))).limits).toEqual({ projects: 2 })
  })

  test('a blueprint with an invalid planLimit or otherwise value is rejected with 400 INVALID_INPUT', async () => {
    for (const value of [{}, { planLimit: '' }, { planLimit: 5 }, { planLimit: 'x', otherwise: -1 }, '5', null])
      expect(
        statusAndCode(await at.admin.post('/blueprints', { ...limitedBlueprint(value), key: 'bad' })),
        JSON.stringify(value),
      ).toEqual([...[400, 'INVALID_INPUT']])
    const { limitations } = await expectOk(at.admin.get('/blueprints/projects'))
    expect(limitations).toEqual([{ scope: 'user', value: { planLimit: 'projects' } }])
  })
})
