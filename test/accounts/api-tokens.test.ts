import { afterEach, expect, test } from 'bun:test'
import { issueApiToken } from '../../src/accounts/api-tokens'
import { listTenantWarnings } from '../../src/commands/warnings'
import { now, toIsoString } from '../../src/core/clock'
import { TIME } from '../expectations'
import { createTestTenant, statusAndCode } from '../test-tenant'
import { advanceClock, createSignedInClient, MINUTE, resetClock } from './session-fixtures'

const home = await createTestTenant()
const { anonymous } = home
const user = await createSignedInClient(home, 'user')
const createTokenClient = (token: string) => anonymous.with({ 'x-api-key': token })

afterEach(resetClock)

test('POST /api/me/api-tokens returns the whole token once; the list shows only its prefix', async () => {
  const answer = await user.post('/me/api-tokens', { nickname: 'nightly job' })
  expect(answer.status).toBe(201)
  const { token, apiToken } = answer.body
  expect(token).toMatch(/^atl_[0-9a-f]{64}$/)
  expect(answer.body).toEqual({
    token,
    apiToken: {
      _id: expect.any(String),
      nickname: 'nightly job',
      tokenPrefix: token.slice(0, apiToken.tokenPrefix.length),
      scopes: [],
      expiresAt: null,
      lastUsedAt: null,
      workspace: null,
      created: TIME,
    },
  })
  expect(apiToken.tokenPrefix.length).toBeWithin(6, 17)
  expect((await createTokenClient(token).get('/me')).body._id).toBe(home.users.user)

  const { status, body } = await user.get('/me/api-tokens')
  expect(status).toBe(200)
  expect(body.find(({ _id }: { _id: string }) => _id === apiToken._id)).toMatchObject({ nickname: 'nightly job' })
  expect(JSON.stringify(body)).not.toContain(token)
  expect(JSON.stringify(body)).not.toMatch(/hash/)
})

test('a request with an API token updates lastUsedAt of the token', async () => {
  const { token, apiToken } = (await user.post('/me/api-tokens', { nickname: 'used' })).body
  const before = toIsoString(now())
  await createTokenClient(token).get('/me')
  // `lastUsedAt` is written in the background; a later write waits for it.
  await user.post('/me', { metadata: {} })
  const { body } = await user.get('/me/api-tokens')
  const { lastUsedAt } = body.find(({ _id }: { _id: string }) => _id === apiToken._id)
  expect(lastUsedAt >= before).toBe(true)
})

test('a user has at most twenty API tokens, even when they are created simultaneously; others get 409 TOO_MANY_TOKENS', async () => {
  const otherUser = await createSignedInClient(home, 'other') // has one token already
  const responses = await Promise.all(
    [...Array(21).keys()].map((n) => otherUser.post('/me/api-tokens', { nickname: `${n}` })),
  )
  const refused = responses.filter(({ status }) => status !== 201)
  expect(refused.map(statusAndCode)).toEqual([
    [409, 'TOO_MANY_TOKENS'],
    [409, 'TOO_MANY_TOKENS'],
  ])
  expect((await otherUser.get('/me/api-tokens')).body).toHaveLength(20)

  const [{ _id }] = (await otherUser.get('/me/api-tokens')).body
  await otherUser.delete(`/me/api-tokens/${_id}`)
  expect((await otherUser.post('/me/api-tokens', { nickname: 'one more' })).status).toBe(201)
})

test('an API token gets 401 after its expiresAt, even when it was used shortly before', async () => {
  const expiresAt = toIsoString(now() + 60 * MINUTE)
  const { token, apiToken } = (await user.post('/me/api-tokens', { nickname: 'short', expiresAt })).body
  expect(apiToken.expiresAt).toBe(expiresAt)
  advanceClock(59 * MINUTE)
  expect((await createTokenClient(token).get('/me')).status).toBe(200)
  advanceClock(2 * MINUTE)
  expect(statusAndCode(await createTokenClient(token).get('/me'))).toEqual([401, 'UNAUTHENTICATED'])
})

test('expiresAt of an API token is returned in UTC, whatever time zone the request uses', async () => {
  const answer = await user.post('/me/api-tokens', { nickname: 'zone', expiresAt: '2999-01-01T00:30:00+02:00' })
  expect(answer.body.apiToken.expiresAt).toBe('2998-12-31T22:30:00.000Z')
})

test('scopes limit the requests of an API token; requests outside them get 403 FORBIDDEN', async () => {
  const tokenFor = async (...scopes: string[]) => {
    const { status, body } = await user.post('/me/api-tokens', { nickname: 'scoped', scopes })
    expect([status, body.apiToken?.scopes]).toEqual([201, scopes])
    return createTokenClient(body.token)
  }
  const [reader, writer, elsewhere] = [
    await tokenFor('accounts:read'),
    await tokenFor('accounts:write'),
    await tokenFor('entities:write', 'blueprints:read'),
  ]
  const change = { metadata: { colour: 'teal' } }
  expect((await reader.get('/me')).status).toBe(200)
  expect(statusAndCode(await reader.post('/me', change))).toEqual([403, 'FORBIDDEN'])
  expect(statusAndCode(await reader.get('/blueprints'))).toEqual([403, 'FORBIDDEN'])
  expect((await writer.get('/me')).status).toBe(200)
  expect((await writer.post('/me', change)).status).toBe(200)
  expect(statusAndCode(await elsewhere.get('/me'))).toEqual([403, 'FORBIDDEN'])
  expect((await elsewhere.get('/blueprints')).status).toBe(200)
})

test('a scope does not give an API token more rights than its user has', async () => {
  const { token } = (await user.post('/me/api-tokens', { nickname: 'greedy', scopes: ['blueprints:write'] })).body
  expect(statusAndCode(await createTokenClient(token).post('/blueprints', {}))).toEqual([403, 'FORBIDDEN'])
})

test('a request by API token gets 403 FORBIDDEN when it creates or deletes an API token', async () => {
  const { body } = await user.get('/me/api-tokens')
  const tokenClient = home.as('user')
  expect(statusAndCode(await tokenClient.post('/me/api-tokens', { nickname: 'heir' }))).toEqual([403, 'FORBIDDEN'])
  expect(statusAndCode(await tokenClient.delete(`/me/api-tokens/${body[0]._id}`))).toEqual([403, 'FORBIDDEN'])
  expect((await user.get('/me/api-tokens')).body).toHaveLength(body.length)
})

test('a request by API token gets 403 FORBIDDEN when it lists API tokens', async () => {
  expect(statusAndCode(await home.as('user').get('/me/api-tokens'))).toEqual([403, 'FORBIDDEN'])
})

test('a deleted API token gets 401 at once', async () => {
  const { token, apiToken } = (await user.post('/me/api-tokens', { nickname: 'lost' })).body
  expect((await createTokenClient(token).get('/me')).status).toBe(200)
  const answer = await user.delete(`/me/api-tokens/${apiToken._id}`)
  expect([answer.status, answer.body]).toEqual([200, { success: true }])
  expect(statusAndCode(await createTokenClient(token).get('/me'))).toEqual([401, 'UNAUTHENTICATED'])
  expect(statusAndCode(await user.delete(`/me/api-tokens/${apiToken._id}`))).toEqual([404, 'API_TOKEN_NOT_FOUND'])
})

test('an API token is hidden from other users, admins and tenants, whose DELETE gets 404 API_TOKEN_NOT_FOUND', async () => {
  const otherTenant = await createTestTenant()
  const { token, apiToken } = (await user.post('/me/api-tokens', { nickname: 'mine' })).body
  for (const client of [
    await createSignedInClient(home, 'other'),
    await createSignedInClient(home, 'admin'),
    await createSignedInClient(otherTenant, 'user'),
  ]) {
    expect(JSON.stringify((await client.get('/me/api-tokens')).body)).not.toContain(apiToken._id)
    expect(statusAndCode(await client.delete(`/me/api-tokens/${apiToken._id}`))).toEqual([404, 'API_TOKEN_NOT_FOUND'])
  }
  expect((await createTokenClient(token).get('/me')).status).toBe(200)
})

test('anonymous requests to /api/me/api-tokens get 401', async () => {
  expect((await anonymous.get('/me/api-tokens')).status).toBe(401)
  expect((await anonymous.post('/me/api-tokens', { nickname: 'x' })).status).toBe(401)
  expect((await anonymous.delete('/me/api-tokens/x')).status).toBe(401)
})

test.each([
  ['without a nickname', { nickname: undefined }],
  ['with an empty nickname', { nickname: '' }],
  ['with an unknown scope', { scopes: ['everything'] }],
  ['with a scope of an unknown area', { scopes: ['entitys:read'] }],
  ['with a scope that neither reads nor writes', { scopes: ['accounts:delete'] }],
  ['whose scopes are not an array', { scopes: 'accounts:read' }],
  ['that has already expired', { expiresAt: '2020-01-01T00:00:00.000Z' }],
  ['whose expiresAt is not a date', { expiresAt: 'tomorrow' }],
])('POST /api/me/api-tokens rejects a token %s with 400 INVALID_INPUT', async (_, flaw) => {
  const answer = await user.post('/me/api-tokens', { nickname: 'odd', ...flaw })
  expect(statusAndCode(answer)).toEqual([400, 'INVALID_INPUT'])
})

test('POST /api/me/api-tokens names the scope that was probably meant, or all areas', async () => {
  const { body } = await user.post('/me/api-tokens', {
    nickname: 'typo',
    scopes: ['entities:read', 'entitys:read', 'invoices:write'],
  })
  expect(body.details).toEqual([
    { path: '/scopes/1', message: '"entitys:read" is not a scope. Did you mean `entities:read`?' },
    {
      path: '/scopes/2',
      message: expect.stringContaining('Use one of these areas with :read or :write: accounts, ai,'),
    },
  ])
})

test('a stored token with an unknown scope keeps it and is warned about', async () => {
  const { tenant, users } = await createTestTenant()
  const { apiToken } = await issueApiToken(tenant, users.user, {
    nickname: 'old',
    scopes: ['entities:read', 'entitys:read'],
  })
  expect(await listTenantWarnings(tenant.tenant)).toEqual([
    {
      path: `/api-tokens/${apiToken._id}/scopes/1`,
      code: 'UNKNOWN_SCOPE',
      message: '"entitys:read" is not a scope. Did you mean `entities:read`?',
    },
  ])
})

test.each([
  ['a null character', '%00'],
  ['a word', 'x'],
  ['a quote', "'"],
  ['an invalid escape sequence', '%zz'],
  ['two hundred characters long', 'x'.repeat(200)],
])('DELETE /api/me/api-tokens/:id gets 404 API_TOKEN_NOT_FOUND where the ID is %s', async (_, id) => {
  expect(statusAndCode(await user.delete(`/me/api-tokens/${id}`))).toEqual([404, 'API_TOKEN_NOT_FOUND'])
})
