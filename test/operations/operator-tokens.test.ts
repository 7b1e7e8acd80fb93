import { afterAll, afterEach, beforeAll, expect, test } from 'bun:test'
import { config } from '../../src/config'
import { HOUR_MS, toIsoString } from '../../src/core/clock'
import { advanceClock, resetClock } from '../accounts/session-fixtures'
import { ID, TIME } from '../expectations'
import { callApi, createTestTenant, statusAndCode } from '../test-tenant'

const ROOT = 'the-operator-token-of-the-scoped-tokens'

const operator = (method: string, path: string, body?: unknown, token = ROOT) =>
  callApi(method, `http://localhost/operator${path}`, { headers: { authorization: `Bearer ${token}` }, body })
const newName = () => `token ${crypto.randomUUID()}`
const createToken = async (
  scopes: string[],
  more: object = {},
): Promise<{ _id: string; token: string; name: string }> =>
  (await operator('POST', '/tokens', { name: newName(), scopes, ...more })).body

beforeAll(() => {
  config.ATOLL_OPERATOR_TOKEN = ROOT
})
afterEach(resetClock)
afterAll(() => {
  config.ATOLL_OPERATOR_TOKEN = ''
})

test('a token is created, shown once, listed with its last use, and worth nothing after it was removed', async () => {
  const input = { name: newName(), scopes: ['read'] }
  const { status, body: created } = await operator('POST', '/tokens', input)
  expect([status, created]).toEqual([
    201,
    { _id: ID, ...input, created: TIME, expires: null, used: null, token: expect.stringMatching(/^atlop_\S{40,}$/) },
  ])
  expect(statusAndCode(await operator('POST', '/tokens', input))).toEqual([409, 'TOKEN_EXISTS'])
  expect((await operator('GET', '/tenants?limit=1', undefined, created.token)).status).toBe(200)
  const { token: _, ...shown } = created
  expect((await operator('GET', '/tokens')).body).toContainEqual({ ...shown, used: TIME })
  expect((await operator('DELETE', `/tokens/${created._id}`)).body).toEqual({ success: true })
  expect(statusAndCode(await operator('DELETE', `/tokens/${created._id}`))).toEqual([404, 'OPERATOR_TOKEN_NOT_FOUND'])
  const refused = await operator('GET', '/tenants', undefined, created.token)
  expect(statusAndCode(refused)).toEqual([401, 'UNAUTHENTICATED'])
})

test('a token with the scope hosts may not delete or suspend a tenant that is called hosts', async () => {
  const { token } = await createToken(['hosts', 'read'])
  await operator('POST', '/tenants', { id: 'hosts' })
  try {
    for (const [method, path] of [
      ['DELETE', '/tenants/hosts?confirm=hosts'],
      ['POST', '/tenants/hosts/suspend'],
    ] as const)
      expect(statusAndCode(await operator(method, path, undefined, token))).toEqual([403, 'FORBIDDEN'])
    expect((await operator('PUT', '/tenants/hosts/hosts', { hosts: [] }, token)).status).toBe(200)
  } finally {
    await operator('DELETE', '/tenants/hosts?confirm=hosts')
  }
})

test('a token allows what its scopes say, and never tokens', async () => {
  const { id } = await createTestTenant()
  const { id: other } = await createTestTenant()
  const allowedByScope: Record<string, [string, string, unknown?][]> = {
    read: [
      ['GET', `/tenants/${id}`],
      ['GET', '/health'],
    ],
    tenants: [
      ['POST', `/tenants/${id}/suspend`],
      ['POST', `/tenants/${id}/resume`],
    ],
    hosts: [['PUT', `/tenants/${id}/hosts`, { hosts: [`${id}.test`] }]],
    backups: [['POST', `/tenants/${id}/clone`, { as: other }]],
    moves: [['POST', `/tenants/${id}/move`, { to: 'nowhere/at-all' }]],
    support: [['POST', `/tenants/${id}/support`, { reason: 'Ticket 42' }]],
  }
  for (const [scope, allowed] of Object.entries(allowedByScope)) {
    const { token } = await createToken([scope])
    for (const [otherScope, requests] of Object.entries(allowedByScope))
      for (const [method, path, body] of requests) {
        const { status } = await operator(method, path, body, token)
        expect([scope, method, path, status === 403]).toEqual([scope, method, path, otherScope !== scope])
      }
    expect(allowed.length).toBeGreaterThan(0)
    for (const [method, path] of [
      ['GET', '/tokens'],
      ['POST', '/tokens'],
      ['DELETE', '/tokens/x'],
    ] as const)
      expect(statusAndCode(await operator(method, path, undefined, token))).toEqual([403, 'FORBIDDEN'])
  }
})

test('a tenant or host that is called like an action or resource needs no other scope', async () => {
  const { token: ofHosts } = await createToken(['hosts'])
  const { token: ofTenants } = await createToken(['tenants'])
  const { token: ofSupport } = await createToken(['support'])
  for (const id of ['hosts', 'backups', 'support', 'tokens', 'certificates', 'constructor']) {
    await operator('POST', '/tenants', { id })
    for (const wrong of [ofHosts, ofSupport]) {
      expect(statusAndCode(await operator('POST', `/tenants/${id}/suspend`, undefined, wrong))).toEqual([
        403,
        'FORBIDDEN',
      ])
      const removal = await operator('DELETE', `/tenants/${id}?confirm=${id}`, undefined, wrong)
      expect(statusAndCode(removal)).toEqual([403, 'FORBIDDEN'])
    }
    const host = `${id}.test`
    expect((await operator('PUT', `/tenants/${id}/hosts`, { hosts: [host] }, ofHosts)).status).toBe(200)
    expect((await operator('DELETE', `/tenants/${id}?confirm=${id}`, undefined, ofTenants)).status).toBe(200)
  }
  const renewal = await operator('POST', '/certificates/support/renew', undefined, ofSupport)
  expect(statusAndCode(renewal)).toEqual([403, 'FORBIDDEN'])
})

test('an address whose letters are encoded does not get around the scopes', async () => {
  const { id } = await createTestTenant()
  const { token } = await createToken(['tenants'])
  for (const [path, body] of [
    ['/%74okens', { name: newName(), scopes: ['support'] }],
    [`/tenants/${id}/%73upport`, { reason: 'Ticket 42' }],
    ['//tokens', { name: newName(), scopes: ['support'] }],
    ['/tokens/', { name: newName(), scopes: ['support'] }],
    ['/Tokens', { name: newName(), scopes: ['support'] }],
  ] as const)
    expect([403, 404]).toContain((await operator('POST', path, body, token)).status)
})

test('an expired token is refused, and one that would be expired already is not created', async () => {
  const expires = toIsoString(Date.now() + HOUR_MS)
  const { token } = await createToken(['read'], { expires })
  expect((await operator('GET', '/homes', undefined, token)).status).toBe(200)
  advanceClock(2 * HOUR_MS)
  expect(statusAndCode(await operator('GET', '/homes', undefined, token))).toEqual([401, 'UNAUTHENTICATED'])
  const past = await operator('POST', '/tokens', { name: newName(), scopes: ['read'], expires })
  expect(statusAndCode(past)).toEqual([400, 'INVALID_INPUT'])
  for (const scopes of [[], ['everything']])
    expect((await operator('POST', '/tokens', { name: newName(), scopes })).status).toBe(400)
})

test('the events of the operator name the token that made them', async () => {
  const { id } = await createTestTenant()
  const { token, name } = await createToken(['tenants'])
  await operator('POST', `/tenants/${id}/suspend`, undefined, token)
  await operator('POST', `/tenants/${id}/resume`)
  const { body } = await operator('GET', `/events?tenant=${id}`)
  expect(
    body.slice(0, 2).map(({ eventName, metadata }: { eventName: string; metadata: object }) => [eventName, metadata]),
  ).toEqual([
    ['tenant-resumed', {}],
    ['tenant-suspended', { by: name }],
  ])
})
