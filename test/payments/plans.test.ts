import { describe, expect, test } from 'bun:test'
import { FORBIDDEN, ID, TIME, UNAUTHENTICATED } from '../expectations'
import { createTestTenant, statusAndCode } from '../test-tenant'
import { createPaymentsFixture, expectOk, NO_PLAN } from './fixtures'

const at = await createPaymentsFixture()
const { admin, as, anonymous } = at

describe('plans', () => {
  test('a plan is returned with its provider ids to admins, and without them to users and the public', async () => {
    const externalIds = { stripe: { monthlyPriceId: 'price_1' } }
    const { status, body } = await admin.post('/plans', {
      ...{ name: 'Team', monthlyPrice: 50, yearlyPrice: 480, currency: 'eur', features: ['Ten seats'], sortOrder: 5 },
      ...{ limits: { seats: 10 }, metadata: { color: 'teal' }, externalIds, tenant_id: 'x' },
    })
    expect(status).toBe(200)
    const team = {
      ...{
        _id: ID,
        name: 'Team',
        description: '',
        monthlyPrice: 50,
        yearlyPrice: 480,
        currency: 'EUR',
        dynamic: false,
      },
      ...{ isActive: true, features: ['Ten seats'], sortOrder: 5, limits: { seats: 10 }, metadata: { color: 'teal' } },
      ...{ created: TIME, updated: TIME },
    }
    expect(body).toEqual({ ...team, externalIds })
    expect(await expectOk(admin.get(`/plans/${body._id}`))).toEqual({ ...team, externalIds })
    expect(await expectOk(as('user').get(`/plans/${body._id}`))).toEqual(team)
    expect((await expectOk(anonymous.get('/plans/public'))).at(-1)).toEqual(team)
    expect((await expectOk(admin.put(`/plans/${body._id}`, body))).externalIds).toEqual(externalIds)
    await admin.delete(`/plans/${body._id}`)
  })

  test('GET /plans/public sorts by sortOrder and price, with plans without a price last, and supports limit, count and sort', async () => {
    const own = await createPaymentsFixture()
    await own.createPlan({ name: 'First', monthlyPrice: 90, yearlyPrice: 900, sortOrder: -1 })
    const names = (await expectOk(own.anonymous.get('/plans/public'))).map(({ name }: { name: string }) => name)
    expect(names).toEqual(['First', 'Free', 'Pro', 'Made to measure'])
    const { body, headers } = await own.anonymous.get('/plans/public?limit=2&count=true&sort=-name')
    expect(body.map(({ name }: { name: string }) => name)).toEqual(['Pro', 'Made to measure'])
    expect([headers.get('x-total-count'), headers.get('link')]).toEqual(['4', expect.stringContaining('rel="next"')])
  })

  test('POST and PUT /plans reject a missing name, missing prices and invalid fields with 400 INVALID_INPUT', async () => {
    const prices = { monthlyPrice: 1, yearlyPrice: 1 }
    const bad: object[] = [
      ...[{ ...prices }, { name: '', ...prices }, { name: 'x' }, { name: 'x', monthlyPrice: 1 }],
      ...[
        { name: 'x', ...prices, monthlyPrice: -1 },
        { name: 'x', ...prices, yearlyPrice: '10' },
      ],
      ...[
        { name: 'x', ...prices, monthlyPrice: 1e21 },
        { name: 'x', ...prices, monthlyPrice: null },
      ],
      ...[
        { name: 'x', ...prices, currency: 'XYZ' },
        { name: 'x', ...prices, sortOrder: 1.5 },
      ],
      ...[
        { name: 'x', ...prices, limits: [] },
        { name: 'x', ...prices, externalIds: { stripe: { productId: 5 } } },
      ],
    ]
    for (const body of bad) expect(statusAndCode(await admin.post('/plans', body)), JSON.stringify(body)).toEqual(BAD)
    for (const body of [{ name: '' }, { monthlyPrice: null }, { yearlyPrice: -0.01 }])
      expect(statusAndCode(await admin.put(`/plans/${at.pro}`, body)), JSON.stringify(body)).toEqual(BAD)
    expect((await expectOk(admin.get(`/plans/${at.dynamic}`))).monthlyPrice).toBeNull()
  })

  test('a change of currency keeps the prices of a plan, unless the new currency cannot hold them', async () => {
    const { _id } = await at.createPlan({ name: 'x', monthlyPrice: 12.5, yearlyPrice: 100 })
    const changed = await expectOk(admin.put(`/plans/${_id}`, { currency: 'KWD' }))
    expect([changed.monthlyPrice, changed.currency]).toEqual([12.5, 'KWD'])
    expect(statusAndCode(await admin.put(`/plans/${_id}`, { currency: 'JPY' }))).toEqual([400, 'INVALID_AMOUNT'])
    await admin.delete(`/plans/${_id}`)
  })

  test('an archived plan is visible to admins only; users get 404 PLAN_NOT_FOUND', async () => {
    const { _id } = await at.createPlan({ name: 'Old', monthlyPrice: 1, yearlyPrice: 1 })
    expect((await expectOk(admin.delete(`/plans/${_id}`))).isActive).toBe(false)
    expect((await expectOk(admin.get(`/plans/${_id}`))).name).toBe('Old')
    expect(statusAndCode(await as('user').get(`/plans/${_id}`))).toEqual(NO_PLAN)
    const ids = async (client: typeof admin, query = '') =>
      (await expectOk(client.get(`/plans/public${query}`))).map((plan: { _id: string }) => plan._id)
    expect(await ids(admin)).not.toContain(_id)
    expect(await ids(admin, '?isActive=false')).toContain(_id)
    for (const client of [anonymous, as('user'), anonymous.with({ 'x-api-key': 'nonsense' })])
      expect(await ids(client, '?isActive=false')).toEqual([])
    expect((await expectOk(admin.get('/plans?isActive=false'))).length).toBeGreaterThan(0)
    expect((await expectOk(admin.get('/plans'))).map((plan: { _id: string }) => plan._id)).toContain(_id)
  })

  test('plan routes answer 403 to users, 401 without credentials and 404 PLAN_NOT_FOUND for unknown or foreign plans', async () => {
    const [path, body] = [`/plans/${at.pro}`, { name: 'x' }]
    for (const client of [as('user'), as('editor')])
      for (const answer of [
        client.get('/plans'),
        client.post('/plans', body),
        client.put(path, body),
        client.delete(path),
      ])
        expect(statusAndCode(await answer)).toEqual(FORBIDDEN)
    for (const answer of [anonymous.get('/plans'), anonymous.get(path), anonymous.post('/plans', body)])
      expect(statusAndCode(await answer)).toEqual(UNAUTHENTICATED)
    for (const id of ['x', '%00', Bun.randomUUIDv7(), 'x'.repeat(500)])
      for (const answer of [admin.get(`/plans/${id}`), admin.put(`/plans/${id}`, body), admin.delete(`/plans/${id}`)])
        expect(statusAndCode(await answer)).toEqual(NO_PLAN)
    const otherTenant = await createTestTenant()
    expect(await expectOk(otherTenant.anonymous.get('/plans/public'))).toEqual([])
    expect(statusAndCode(await otherTenant.as('admin').get(path))).toEqual(NO_PLAN)
  })
})

const BAD = [400, 'INVALID_INPUT']
