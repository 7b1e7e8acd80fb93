import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { registerUser } from '../../src/accounts/users/users'
import { config } from '../../src/config'
import { setServer } from '../../src/tenancy/client-connection'
import { createTestTenant, statusAndCode } from '../test-tenant'
import { advanceClock, bearer, MINUTE, readSetCookie, resetClock, SECOND } from './session-fixtures'

const home = await createTestTenant()
const { stranger } = home
const password = 'correct horse'

test('whoever signs up is signed in at once, and is told who they are but nothing secret', async () => {
  const answer = await stranger.post('/signup', {
    username: 'Ada',
    password,
    email: 'Ada@Lovelace.test',
    firstName: 'Ada',
    lastName: 'Lovelace',
    birthDate: '1815-12-10',
    phone: '+44 20 7946 0000',
  })
  expect(answer.status).toBe(201)
  expect(answer.body).toEqual({
    payload: {
      user: {
        _id: expect.stringMatching(/^[0-9a-f-]{36}$/),
        username: 'Ada',
        email: 'Ada@Lovelace.test',
        name: '',
        firstName: 'Ada',
        lastName: 'Lovelace',
        fullName: 'Ada Lovelace',
        profileImage: null,
        birthDate: '1815-12-10',
        phone: '+44 20 7946 0000',
        roles: ['user'],
        metadata: {},
        workspace: null,
        created: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      },
      workspace: null,
    },
  })
  expect(JSON.stringify(answer.body)).not.toMatch(/password|argon2|correct horse/)
  const { cookie } = readSetCookie(answer)
  expect((await stranger.get('/me', { cookie })).body._id).toBe(answer.body.payload.user._id)
})

test('whoever asks for tokens gets them instead of a cookie', async () => {
  const answer = await stranger.post('/signup', { username: 'grace', password, authType: 'oauth' })
  expect(answer.status).toBe(201)
  expect(Object.keys(answer.body.payload).sort()).toEqual(['expiresIn', 'refreshToken', 'token', 'user', 'workspace'])
  expect(answer.headers.get('set-cookie')).toBeNull()
  expect((await stranger.get('/me', bearer(answer.body.payload.token))).body.username).toBe('grace')
})

test('nobody signs up as more than a user, or as somebody else', async () => {
  const answer = await stranger.post('/signup', {
    username: 'mallory',
    password,
    authType: 'oauth',
    _id: home.users.admin,
    roles: ['admin'],
    isPrivileged: true,
    internalMetadata: { vip: true },
    metadata: { vip: true },
    emailVerified: true,
    usernameKey: 'admin',
    emailKey: 'admin@example.test',
    version: 7,
    created: '2000-01-01T00:00:00.000Z',
  })
  expect(answer.status).toBe(201)
  const { body } = await stranger.get('/me', bearer(answer.body.payload.token))
  expect(body).toMatchObject({ username: 'mallory', roles: ['user'], isPrivileged: false, metadata: {} })
  expect(body._id).not.toBe(home.users.admin)
  expect(body.created).not.toStartWith('2000')
})

test('what a form leaves empty is not said', async () => {
  const empty = { email: '', firstName: 'Jane', lastName: 'Doe', fullName: '', phone: '', birthDate: null }
  for (const [username, form] of [
    ['empty', empty],
    ['nulls', { ...empty, email: null, fullName: null, phone: null, name: null }],
  ] as const) {
    const { status, body } = await stranger.post('/signup', { username, password, ...form })
    expect([status, body.payload?.user]).toMatchObject([201, { email: '', fullName: 'Jane Doe', birthDate: null }])
  }
})

test('any Unicode name is a name', async () => {
  const answer = await stranger.post('/signup', {
    username: '李小龍 🐉',
    password,
    firstName: 'Þóra',
    lastName: 'Ñandú',
  })
  expect(answer.status).toBe(201)
  expect(answer.body.payload.user).toMatchObject({ username: '李小龍 🐉', fullName: 'Þóra Ñandú' })
})

const signUpTogether = (...inputs: { username: string; email?: string }[]) =>
  Promise.all(inputs.map(async (input) => statusAndCode(await stranger.post('/signup', { password, ...input }))))

test('a username is taken however it is written', async () => {
  const names = ['user', 'USER', 'ＵＳＥＲ'].map((username) => ({ username }))
  for (const answer of await signUpTogether(...names)) expect(answer).toEqual([409, 'USERNAME_EXISTS'])
})

test('an e-mail address is taken in lower and in upper case', async () => {
  const addresses = [`user@${home.id}.test`, `USER@${home.id}.TEST`].map((email) => ({ username: 'somebody', email }))
  for (const answer of await signUpTogether(...addresses)) expect(answer).toEqual([409, 'EMAIL_EXISTS'])
})

test('nobody takes the address of another for a name, or the name of another for an address', async () => {
  await registerUser(home.tenant, { username: 'eve@eden.test' })
  const [named, addressed] = await signUpTogether(
    { username: `user@${home.id}.test` },
    { username: 'adam', email: 'eve@eden.test' },
  )
  expect(named).toEqual([409, 'USERNAME_EXISTS'])
  expect(addressed).toEqual([409, 'EMAIL_EXISTS'])
})

test('of two who want the same name at the same moment, one gets it', async () => {
  const both = await Promise.all(['Twin', 'twin'].map((username) => stranger.post('/signup', { username, password })))
  expect(both.map(({ status }) => status).sort()).toEqual([201, 409])
  expect(both.map(({ body }) => body.code)).toContain('USERNAME_EXISTS')
})

test('a name and an address that are taken in one tenant are free in another', async () => {
  const abroad = await createTestTenant()
  await registerUser(home.tenant, { username: 'Nomad', email: 'nomad@example.test' })
  const answer = await abroad.stranger.post('/signup', { username: 'Nomad', password, email: 'nomad@example.test' })
  expect(answer.status).toBe(201)
})

test.each([
  ['is missing', undefined],
  ['has seven characters', '1234567'],
  ['has seven characters of four bytes each', '🐚'.repeat(7)],
  ['has more than 256 bytes', 'é'.repeat(129)],
  ['is no text', 12345678],
])('a password that %s is refused, and the refusal says where the flaw is', async (_, password) => {
  const answer = await stranger.post('/signup', { username: 'nobody', password })
  expect(statusAndCode(answer)).toEqual([400, 'INVALID_INPUT'])
  expect(answer.body.details).toContainEqual({ path: '/password', message: expect.any(String) })
})

test.each([
  ['a missing name', { username: undefined }],
  ['an empty name', { username: '' }],
  ['a name that begins with a space', { username: ' nobody' }],
  ['a name of two lines', { username: 'no\nbody' }],
  ['a name of 129 characters', { username: 'n'.repeat(129) }],
  ['an address without @', { email: 'nobody.example.test' }],
  ['two addresses', { email: 'a@example.test,b@example.test' }],
  ['a date of another form', { birthDate: '10/12/1815' }],
  ['an unknown authType', { authType: 'basic' }],
])('%s is refused', async (_, flaw) => {
  const answer = await stranger.post('/signup', { username: 'nobody', password, ...flaw })
  expect(statusAndCode(answer)).toEqual([400, 'INVALID_INPUT'])
})

test('nobody is born on a day that no calendar has', async () => {
  const days = ['1990-13-45', '1990-02-30']
  const answers = days.map((birthDate) => stranger.post('/signup', { username: birthDate, password, birthDate }))
  for (const answer of await Promise.all(answers)) expect(statusAndCode(answer)).toEqual([400, 'INVALID_INPUT'])
})

describe('a sign-up', () => {
  /** A tenant, and how somebody at an address signs up there. The names are taken, so that nothing is hashed for most. */
  async function watched() {
    const { stranger } = await createTestTenant()
    const signUp = (from: string, username = 'user', more: Record<string, string> = {}) =>
      stranger.post('/signup', { username, password }, { 'x-from': from, ...more })
    return { stranger, signUp }
  }
  const TAKEN = [409, 'USERNAME_EXISTS']
  const LATER = [429, 'RATE_LIMITED']

  beforeEach(() =>
    setServer({ requestIP: ({ headers }) => ({ address: headers.get('x-from') ?? '', port: 1, family: 'IPv4' }) }),
  )
  afterEach(() => {
    setServer(undefined)
    resetClock()
    config.ATOLL_RATE_LIMITS = 'on'
  })

  test('is refused after twenty from one address within an hour, and free again after it', async () => {
    const { signUp } = await watched()
    expect((await signUp('192.0.2.1', 'ada')).status).toBe(201)
    for (let n = 1; n < 20; n++) expect(statusAndCode(await signUp('192.0.2.1'))).toEqual(TAKEN)
    const refused = await signUp('192.0.2.1', 'grace')
    expect(statusAndCode(refused)).toEqual(LATER)
    expect(Number(refused.headers.get('retry-after'))).toBeWithin(3_000, 3_601)
    expect((await signUp('192.0.2.2', 'grace')).status).toBe(201)
    const abroad = await watched()
    expect((await abroad.signUp('192.0.2.1', 'ada')).status).toBe(201)
    advanceClock(60 * MINUTE + SECOND)
    expect((await signUp('192.0.2.1', 'joan')).status).toBe(201)
  })

  test('is refused after five hundred at one tenant within an hour, from wherever', async () => {
    const { signUp } = await watched()
    for (let n = 0; n < 500; n++) expect(statusAndCode(await signUp(`198.51.${n % 100}.1`))).toEqual(TAKEN)
    expect(statusAndCode(await signUp('192.0.2.1'))).toEqual(LATER)
    const abroad = await watched()
    expect(statusAndCode(await abroad.signUp('192.0.2.1'))).toEqual(TAKEN)
  })

  test.each(['127.0.0.1', '::1'])('from this machine (%s) is not counted, unless a proxy passes it on', async (own) => {
    const { signUp } = await watched()
    for (let n = 0; n < 25; n++) expect(statusAndCode(await signUp(own))).toEqual(TAKEN)
    for (const header of ['x-forwarded-for', 'forwarded', 'x-real-ip']) {
      const { signUp } = await watched()
      for (let n = 0; n < 20; n++)
        expect(statusAndCode(await signUp(own, 'user', { [header]: '192.0.2.9' }))).toEqual(TAKEN)
      expect(statusAndCode(await signUp(own, 'user', { [header]: '192.0.2.9' }))).toEqual(LATER)
    }
  })

  test('is counted from other addresses of the loopback and from callers without one', async () => {
    for (const from of ['127.0.0.2', '']) {
      const { signUp } = await watched()
      for (let n = 0; n < 20; n++) await signUp(from)
      expect(statusAndCode(await signUp(from))).toEqual(LATER)
    }
  })

  test('is not counted where limits are off', async () => {
    config.ATOLL_RATE_LIMITS = 'off'
    const { signUp } = await watched()
    for (let n = 0; n < 25; n++) expect(statusAndCode(await signUp('192.0.2.1'))).toEqual(TAKEN)
  })
})
