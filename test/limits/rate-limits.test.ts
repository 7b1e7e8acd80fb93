import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { issueApiToken } from '../../src/accounts/api-tokens'
import { config } from '../../src/config'
import { advanceClock, resetClock } from '../accounts/session-fixtures'
import {
  type ApiClient,
  callApi,
  createTestTenant,
  fullAccessRules,
  statusAndCode,
  type TestResponse,
  withoutRateLimits,
} from '../test-tenant'

const TOKEN = 'operator-of-the-rate-limits'
const original = config.ATOLL_RATE_LIMITS

beforeAll(() => {
  config.ATOLL_RATE_LIMITS = 'on'
  config.ATOLL_OPERATOR_TOKEN = TOKEN
})
afterAll(() => {
  config.ATOLL_RATE_LIMITS = original
  config.ATOLL_OPERATOR_TOKEN = ''
  resetClock()
})

const headersOf = ({ headers }: TestResponse) =>
  ['limit', 'remaining', 'reset'].map((name) => headers.get(`ratelimit-${name}`))

const operator = (method: string, path: string, body?: unknown) =>
  callApi(method, `http://localhost/operator${path}`, { headers: { authorization: `Bearer ${TOKEN}` }, body })

const setLimits = (client: ApiClient, metadata: object) =>
  client.put('/configurations/limits-configuration', { metadata })

async function createLimited(metadata: object) {
  const tenant = await createTestTenant()
  const admin = tenant.as('admin')
  expect((await setLimits(admin, metadata)).status).toBe(200)
  return { ...tenant, admin }
}

test('every answer of the API says how many requests of its kind are left, and when all are there again', async () => {
  const { as, anonymous: guest } = await createTestTenant()
  expect(headersOf(await as('user').get('/me'))).toEqual(['6000', '5999', '1'])
  expect(headersOf(await as('user').post('/me', { name: 'Ada' }))).toEqual(['3000', '2999', '1'])
  expect(headersOf(await as('other').get('/me'))).toEqual(['6000', '5999', '1'])
  expect(headersOf(await guest.get('/configurations/app-configuration'))).toEqual(['600', '599', '1'])
  expect(headersOf(await guest.post('/blueprints', {}))).toEqual(['300', '299', '1'])
})

test('a caller who has made the requests of a minute gets 429 with the time to wait, and is admitted again after it', async () => {
  const { as, admin } = await createLimited({ users: { reads: 3 } })
  const user = as('user')
  for (let n = 0; n < 3; n++) expect((await user.get('/me')).status).toBe(200)
  const refused = await user.get('/me')
  expect(refused.status).toBe(429)
  expect(refused.body).toEqual({
    code: 'RATE_LIMITED',
    message: 'You have made too many requests: the limit is 3 reads per minute. Try again in 20 s.',
  })
  expect(refused.headers.get('retry-after')).toBe('20')
  expect(headersOf(refused)).toEqual(['3', '0', '60'])
  expect((await user.post('/me', { name: 'Ada' })).status).toBe(200)
  expect((await as('other').get('/me')).status).toBe(200)
  expect((await admin.get('/me')).status).toBe(200)
  advanceClock(20_000)
  expect((await user.get('/me')).status).toBe(200)
  expect((await user.get('/me')).status).toBe(429)
})

test('a guest and whoever sends an invalid credential share the limit of their address', async () => {
  const { anonymous: guest } = await createLimited({ guests: { reads: 3, writes: 1 } })
  const invalid = guest.with({ 'x-api-key': `atl_${'0'.repeat(64)}` })
  expect((await guest.get('/configurations/app-configuration')).status).toBe(200)
  expect((await invalid.get('/me')).status).toBe(401)
  expect((await invalid.get('/me')).status).toBe(401)
  expect((await invalid.get('/me')).status).toBe(429)
  expect((await guest.get('/configurations/app-configuration')).status).toBe(429)
  expect((await guest.post('/password/forgot', { email: 'ada@example.com' })).status).toBe(200)
  expect((await guest.post('/password/forgot', { email: 'ada@example.com' })).status).toBe(429)
})

test('signing in, signing up and refreshing are left to their own throttles', async () => {
  const { anonymous: guest } = await createLimited({ guests: { writes: 1 } })
  for (let n = 0; n < 3; n++) {
    const answers = [
      await guest.post('/signin', { username: 'nobody', password: 'wrong password' }),
      await guest.post('/signup', { username: `ada${n}`, password: 'correct horse' }),
      await guest.post('/token/refresh', { refreshToken: 'x' }),
    ]
    expect(answers.map(({ status }) => status)).toEqual([401, 201, 401])
    for (const answer of answers) expect(headersOf(answer)).toEqual([null, null, null])
  }
})

test('exports, charts and counted lists have a limit of their own', async () => {
  const { admin, as } = await createLimited({ users: { costly: 2 } })
  const fields = [{ key: 'title', type: 'string' }]
  const permissions = fullAccessRules('tenant', 'user')
  expect((await admin.post('/blueprints', { key: 'tasks', name: 'Task', fields, permissions })).status).toBe(201)
  const user = as('user')
  const paths = ['entities?$count=true', 'entities/export', 'charts/count']
  const costly = paths.map((path) => user.get(`/blueprints/tasks/${path}`))
  const answers = await Promise.all(costly)
  const statuses = answers.map(({ status }) => status)
  expect(statuses.filter((status) => status === 429)).toHaveLength(1)
  expect((await user.get('/blueprints/tasks/entities')).status).toBe(200)
  expect((await user.get('/blueprints/tasks/entities?$count=true')).body.message).toMatch(
    /the limit is 2 costly requests per minute/,
  )
})

test('the callers of another tenant and the tokens of one user are counted separately', async () => {
  const one = await createLimited({ users: { reads: 1 }, guests: { reads: 1 } })
  const other = await createTestTenant()
  expect((await one.anonymous.get('/configurations/app-configuration')).status).toBe(200)
  expect((await one.anonymous.get('/configurations/app-configuration')).status).toBe(429)
  expect((await other.anonymous.get('/configurations/app-configuration')).status).toBe(200)
  const { token } = await issueApiToken(one.tenant, one.users.user, { nickname: 'second' })
  const second = one.anonymous.with({ 'x-api-key': token })
  expect((await one.as('user').get('/me')).status).toBe(200)
  expect((await one.as('user').get('/me')).status).toBe(429)
  expect((await second.get('/me')).status).toBe(200)
})

test('an admin who impersonates a user is counted as the admin', async () => {
  const { admin, users, as } = await createLimited({ users: { reads: 2 } })
  const asUser = admin.with({ 'x-impersonate-user': users.user })
  expect((await asUser.get('/me')).status).toBe(200)
  expect((await asUser.get('/me')).status).toBe(200)
  expect((await asUser.get('/me')).status).toBe(429)
  expect((await as('user').get('/me')).status).toBe(200)
})

test('the description of a tenant counts as a read and as a costly request, and for a guest as a read', async () => {
  const { id, origin, tokens, admin } = await createLimited({ users: { costly: 2 }, guests: { reads: 2 } })
  const describe = (headers: Record<string, string> = {}) =>
    callApi('GET', `${origin}/openapi/json?tenant=${id}`, { headers })
  const answers = []
  for (let n = 0; n < 3; n++) {
    const answer = await describe({ 'x-api-key': tokens.user })
    expect(headersOf(answer)).not.toContain(null)
    answers.push(statusAndCode(answer))
  }
  expect(answers.at(0)?.[0]).toBe(200)
  expect(answers.at(-1)).toEqual([429, 'RATE_LIMITED'])
  expect((await describe({ 'x-api-key': tokens.admin })).status, 'another caller has a budget of their own').toBe(200)
  const guests = []
  for (let n = 0; n < 3; n++) guests.push((await describe()).status)
  expect(guests).toEqual([401, 401, 429])
  expect((await admin.get('/me')).status).toBe(200)
})

test('ATOLL_RATE_LIMITS=off counts nothing', async () => {
  const { as } = await createLimited({ users: { reads: 1 } })
  using _ = withoutRateLimits()
  for (let n = 0; n < 3; n++) expect(headersOf(await as('user').get('/me'))).toEqual([null, null, null])
})

describe('limits-configuration', () => {
  test.each([
    [{ guests: { reads: 0 } }, '/metadata/guests/reads'],
    [{ users: { writes: 1.5 } }, '/metadata/users/writes'],
    [{ users: { writes: '5' } }, '/metadata/users/writes'],
    [{ users: 5 }, '/metadata/users'],
    [{ guests: { read: 5 } }, '/metadata/guests/read'],
    [{ guest: { reads: 5 } }, '/metadata/guest'],
  ])('refuses %j', async (metadata, path) => {
    const { as } = await createTestTenant()
    const { status, body } = await setLimits(as('admin'), metadata)
    expect([status, body.code, body.details[0].path]).toEqual([400, 'INVALID_INPUT', path])
  })

  test('it can be written by admins only, and never be public', async () => {
    const { as } = await createTestTenant()
    expect((await setLimits(as('user'), { users: { reads: 1 } })).status).toBe(403)
    const { status } = await as('admin').put('/configurations/limits-configuration', { public: true, metadata: {} })
    expect(status).toBe(400)
  })
})

describe('limits of the operator', () => {
  test('they replace the defaults, are recorded, and can only be lowered by the tenant', async () => {
    const { id, as } = await createTestTenant()
    const chosen = { users: { reads: 10 }, guests: { writes: 1_000 } }
    const defaults = {
      guests: { reads: 600, writes: 300, costly: 120 },
      users: { reads: 6_000, writes: 3_000, costly: 1_200 },
    }
    expect((await operator('PUT', `/tenants/${id}/limits`, chosen)).body).toEqual({ ...chosen, defaults })
    expect((await operator('GET', `/tenants/${id}/limits`)).body).toEqual({ ...chosen, defaults })
    expect(headersOf(await as('user').get('/me'))[0]).toBe('10')
    const { body: installation } = await as('admin').get('/installation')
    expect(installation.rateLimits).toEqual({
      guests: { ...defaults.guests, writes: 1_000 },
      users: { ...defaults.users, reads: 10 },
    })
    expect((await setLimits(as('admin'), { users: { reads: 100, writes: 7 } })).status).toBe(200)
    expect(headersOf(await as('user').get('/me'))[0]).toBe('10')
    expect(headersOf(await as('user').post('/me', { name: 'Ada' }))[0]).toBe('7')
    const { body: events } = await operator('GET', `/events?tenant=${id}`)
    expect(events[0]).toMatchObject({ eventName: 'limits-changed', metadata: { rates: chosen } })
    expect((await operator('PUT', `/tenants/${id}/limits`, {})).body).toEqual({ defaults })
    expect(headersOf(await as('user').get('/me'))[0]).toBe('100')
  })

  test('invalid limits and unknown tenants are refused, also for a tenant that was deleted', async () => {
    const { id } = await createTestTenant()
    const refused = await operator('PUT', `/tenants/${id}/limits`, { users: { reads: -1 } })
    expect([refused.status, refused.body.details[0].path]).toEqual([400, '/users/reads'])
    expect((await operator('PUT', `/tenants/${id}/limits`, { user: {} })).status).toBe(400)
    expect(statusAndCode(await operator('PUT', '/tenants/nobody/limits', {}))).toEqual([404, 'TENANT_NOT_FOUND'])
    await operator('PUT', `/tenants/${id}/limits`, { users: { reads: 5 } })
    await operator('DELETE', `/tenants/${id}?confirm=${id}`)
    expect(statusAndCode(await operator('GET', `/tenants/${id}/limits`))).toEqual([404, 'TENANT_NOT_FOUND'])
  })
})
