import { afterEach, describe, expect, test } from 'bun:test'
import { issueSetupToken } from '../../src/accounts/links/setup-link'
import { issueSigninToken } from '../../src/accounts/links/signin-link'
import { registerUser } from '../../src/accounts/users/users'
import { createTenant } from '../../src/tenancy/tenants'
import { apiClient, createTestTenant, statusAndCode } from '../test-tenant'
import { advanceClock, DAY, MINUTE, resetClock } from './session-fixtures'

const INVALID_TOKEN = [400, 'INVALID_TOKEN']
const account = { username: 'ada', password: 'correct horse' }
const home = await createTestTenant()

afterEach(resetClock)

async function createEmptyTenant() {
  const id = `t${crypto.randomUUID()}`
  const tenant = await createTenant(id, [`${id}.test`])
  return { tenant, client: apiClient(`http://${id}.test`) }
}

describe('the set-up link', () => {
  test('POST /api/setup creates an administrator and signs them in; the link does not work again', async () => {
    const { tenant, client } = await createEmptyTenant()
    const token = await issueSetupToken(tenant)
    const answer = await client.post('/setup', { ...account, token })
    expect(answer.status).toBe(201)
    expect(answer.body.payload.user).toMatchObject({ username: 'ada', roles: ['admin', 'user'] })
    const cookie = answer.headers
      .getSetCookie()
      .map((each) => each.split(';')[0])
      .join('; ')
    expect((await client.with({ cookie }).get('/users')).status).toBe(200)
    const again = await client.post('/setup', { ...account, username: 'eve', token })
    expect(statusAndCode(again)).toEqual([409, 'SETUP_COMPLETE'])
    expect((await client.with({ cookie }).get('/users')).body).toHaveLength(1)
    expect(await issueSetupToken(tenant)).toBeUndefined()
  })

  test('one of several concurrent set-ups with the same link creates an administrator, and the others answer 409', async () => {
    const { tenant, client } = await createEmptyTenant()
    const token = await issueSetupToken(tenant)
    const answers = await Promise.all(
      ['ada', 'eve', 'bob'].map((username) => client.post('/setup', { ...account, username, token })),
    )
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 409, 409])
  })

  test('POST /api/setup refuses tokens that are invalid, of another tenant, or older than a day', async () => {
    const { tenant, client } = await createEmptyTenant()
    const other = await createEmptyTenant()
    const token = (await issueSetupToken(tenant))!
    for (const wrong of ['x', `${token}x`, token.slice(1), (await issueSetupToken(other.tenant))!])
      expect(statusAndCode(await client.post('/setup', { ...account, token: wrong }))).toEqual(INVALID_TOKEN)
    advanceClock(DAY + 1)
    expect(statusAndCode(await client.post('/setup', { ...account, token }))).toEqual(INVALID_TOKEN)
    expect((await client.post('/setup', { ...account, token: await issueSetupToken(tenant) })).status).toBe(201)
  })

  test('a user without the role admin does not end the set-up', async () => {
    const { tenant, client } = await createEmptyTenant()
    await registerUser(tenant, { username: 'guest' }, ['user'])
    expect((await client.post('/setup', { ...account, token: await issueSetupToken(tenant) })).status).toBe(201)
  })

  test('POST /api/setup refuses an invalid username or password and leaves the link valid', async () => {
    const { tenant, client } = await createEmptyTenant()
    const token = await issueSetupToken(tenant)
    for (const [path, flaw] of [
      ['/username', { username: '' }],
      ['/password', { password: 'short' }],
    ] as const) {
      const { status, body } = await client.post('/setup', { ...account, ...flaw, token })
      expect([status, body.code, body.details[0].path]).toEqual([400, 'INVALID_INPUT', path])
    }
    expect((await client.post('/setup', { ...account, token })).status).toBe(201)
  })
})

describe('the sign-in link', () => {
  test('POST /api/signin/link signs the user in once', async () => {
    const token = await issueSigninToken(home.tenant, home.users.user)
    const answer = await home.anonymous.post('/signin/link', { token, authType: 'oauth' })
    expect(answer.status).toBe(200)
    expect(answer.body.payload.user._id).toBe(home.users.user)
    const me = await home.anonymous.with({ authorization: `Bearer ${answer.body.payload.token}` }).get('/me')
    expect(me.body.username).toBe('user')
    expect(statusAndCode(await home.anonymous.post('/signin/link', { token }))).toEqual(INVALID_TOKEN)
  })

  test('POST /api/signin/link refuses a link of another tenant, and one that is older than an hour', async () => {
    const other = await createTestTenant()
    const token = await issueSigninToken(home.tenant, home.users.user)
    expect(statusAndCode(await other.anonymous.post('/signin/link', { token }))).toEqual(INVALID_TOKEN)
    advanceClock(61 * MINUTE)
    expect(statusAndCode(await home.anonymous.post('/signin/link', { token }))).toEqual(INVALID_TOKEN)
  })

  test('a link does not work after an admin has ended all sessions of its user', async () => {
    const token = await issueSigninToken(home.tenant, home.users.other)
    await home.as('admin').delete(`/users/${home.users.other}/sessions`)
    expect(statusAndCode(await home.anonymous.post('/signin/link', { token }))).toEqual(INVALID_TOKEN)
  })
})
