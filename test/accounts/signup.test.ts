import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { registerUser } from '../../src/accounts/users/users'
import { config } from '../../src/config'
import { setServer } from '../../src/tenancy/client-connection'
import { TIME } from '../expectations'
import { createTestTenant, statusAndCode } from '../test-tenant'
import { advanceClock, bearer, MINUTE, readSetCookie, resetClock, SECOND } from './session-fixtures'

const home = await createTestTenant()
const { anonymous } = home
const password = 'correct horse'

test('POST /api/signup signs the user in at once and returns their profile without secrets', async () => {
  const answer = await anonymous.post('/signup', {
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
        created: TIME,
      },
      workspace: null,
    },
  })
  expect(JSON.stringify(answer.body)).not.toMatch(/password|argon2|correct horse/)
  const { cookie } = readSetCookie(answer)
  expect((await anonymous.get('/me', { cookie })).body._id).toBe(answer.body.payload.user._id)
})

test('POST /api/signup with authType oauth returns tokens instead of a cookie', async () => {
  const answer = await anonymous.post('/signup', { username: 'grace', password, authType: 'oauth' })
  expect(answer.status).toBe(201)
  expect(Object.keys(answer.body.payload).sort()).toEqual(['expiresIn', 'refreshToken', 'token', 'user', 'workspace'])
  expect(answer.headers.get('set-cookie')).toBeNull()
  expect((await anonymous.get('/me', bearer(answer.body.payload.token))).body.username).toBe('grace')
})

test('POST /api/signup ignores roles, IDs and other fields that users may not set', async () => {
  const answer = await anonymous.post('/signup', {
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
  const { body } = await anonymous.get('/me', bearer(answer.body.payload.token))
  expect(body).toMatchObject({ username: 'mallory', roles: ['user'], isPrivileged: false, metadata: {} })
  expect(body._id).not.toBe(home.users.admin)
  expect(body.created).not.toStartWith('2000')
})

test('POST /api/signup treats empty and null fields as absent', async () => {
  const empty = { email: '', firstName: 'Jane', lastName: 'Doe', fullName: '', phone: '', birthDate: null }
  for (const [username, form] of [
    ['empty', empty],
    ['nulls', { ...empty, email: null, fullName: null, phone: null, name: null }],
  ] as const) {
    const { status, body } = await anonymous.post('/signup', { username, password, ...form })
    expect([status, body.payload?.user]).toMatchObject([201, { email: '', fullName: 'Jane Doe', birthDate: null }])
  }
})

test('POST /api/signup accepts Unicode usernames and names', async () => {
  const answer = await anonymous.post('/signup', {
    username: '李小龍 🐉',
    password,
    firstName: 'Þóra',
    lastName: 'Ñandú',
  })
  expect(answer.status).toBe(201)
  expect(answer.body.payload.user).toMatchObject({ username: '李小龍 🐉', fullName: 'Þóra Ñandú' })
})

const signUpTogether = (...inputs: { username: string; email?: string }[]) =>
  Promise.all(inputs.map(async (input) => statusAndCode(await anonymous.post('/signup', { password, ...input }))))

test('POST /api/signup rejects a taken username in any case and width with 409 USERNAME_EXISTS', async () => {
  const names = ['user', 'USER', 'ＵＳＥＲ'].map((username) => ({ username }))
  for (const answer of await signUpTogether(...names)) expect(answer).toEqual([409, 'USERNAME_EXISTS'])
})

test('POST /api/signup rejects a taken e-mail address in any case with 409 EMAIL_EXISTS', async () => {
  const addresses = [`user@${home.id}.test`, `USER@${home.id}.TEST`].map((email) => ({ username: 'somebody', email }))
  for (const answer of await signUpTogether(...addresses)) expect(answer).toEqual([409, 'EMAIL_EXISTS'])
})

test('POST /api/signup rejects the address of another user as username, and a username as address, with 409', async () => {
  await registerUser(home.tenant, { username: 'eve@eden.test' })
  const [named, addressed] = await signUpTogether(
    { username: `user@${home.id}.test` },
    { username: 'adam', email: 'eve@eden.test' },
  )
  expect(named).toEqual([409, 'USERNAME_EXISTS'])
  expect(addressed).toEqual([409, 'EMAIL_EXISTS'])
})

test('two simultaneous sign-ups with one username get 201 and 409 USERNAME_EXISTS', async () => {
  const both = await Promise.all(['Twin', 'twin'].map((username) => anonymous.post('/signup', { username, password })))
  expect(both.map(({ status }) => status).sort()).toEqual([201, 409])
  expect(both.map(({ body }) => body.code)).toContain('USERNAME_EXISTS')
})

test('a username and an address that are taken in one tenant are available in another', async () => {
  const otherTenant = await createTestTenant()
  await registerUser(home.tenant, { username: 'Nomad', email: 'nomad@example.test' })
  const answer = await otherTenant.anonymous.post('/signup', {
    username: 'Nomad',
    password,
    email: 'nomad@example.test',
  })
  expect(answer.status).toBe(201)
})

test.each([
  ['is missing', undefined],
  ['has seven characters', '1234567'],
  ['has seven characters of four bytes each', '🐚'.repeat(7)],
  ['has more than 256 bytes', 'é'.repeat(129)],
  ['is not a string', 12345678],
])('POST /api/signup rejects a password that %s with 400 INVALID_INPUT and the path /password', async (_, password) => {
  const answer = await anonymous.post('/signup', { username: 'nobody', password })
  expect(statusAndCode(answer)).toEqual([400, 'INVALID_INPUT'])
  expect(answer.body.details).toContainEqual({ path: '/password', message: expect.any(String) })
})

test.each([
  ['a missing username', { username: undefined }],
  ['an empty username', { username: '' }],
  ['a username that begins with a space', { username: ' nobody' }],
  ['a username of two lines', { username: 'no\nbody' }],
  ['a username of 129 characters', { username: 'n'.repeat(129) }],
  ['an address without @', { email: 'nobody.example.test' }],
  ['two addresses', { email: 'a@example.test,b@example.test' }],
  ['a date in another format', { birthDate: '10/12/1815' }],
  ['an unknown authType', { authType: 'basic' }],
])('POST /api/signup rejects %s with 400 INVALID_INPUT', async (_, flaw) => {
  const answer = await anonymous.post('/signup', { username: 'nobody', password, ...flaw })
  expect(statusAndCode(answer)).toEqual([400, 'INVALID_INPUT'])
})

test('POST /api/signup rejects a birthDate that does not exist with 400 INVALID_INPUT', async () => {
  const days = ['1990-13-45', '1990-02-30']
  const answers = days.map((birthDate) => anonymous.post('/signup', { username: birthDate, password, birthDate }))
  for (const answer of await Promise.all(answers)) expect(statusAndCode(answer)).toEqual([400, 'INVALID_INPUT'])
})

describe('the rate limit of sign-ups', () => {
  /** A fresh tenant, and a function that signs up there from an address; the default username is taken, which avoids hashing. */
  async function createSignupFixture() {
    const { anonymous, as } = await createTestTenant()
    const signUp = (from: string, username = 'user', more: Record<string, string> = {}) =>
      anonymous.post('/signup', { username, password }, { 'x-from': from, ...more })
    return { anonymous, as, signUp }
  }
  const TAKEN = [409, 'USERNAME_EXISTS']
  const RATE_LIMITED = [429, 'RATE_LIMITED']

  beforeEach(() =>
    setServer({ requestIP: ({ headers }) => ({ address: headers.get('x-from') ?? '', port: 1, family: 'IPv4' }) }),
  )
  afterEach(() => {
    setServer(undefined)
    resetClock()
    config.ATOLL_RATE_LIMITS = 'on'
  })

  test('the 21st sign-up from one address within an hour gets 429 RATE_LIMITED, and later sign-ups succeed again', async () => {
    const { signUp } = await createSignupFixture()
    expect((await signUp('192.0.2.1', 'ada')).status).toBe(201)
    for (let n = 1; n < 20; n++) expect(statusAndCode(await signUp('192.0.2.1'))).toEqual(TAKEN)
    const refused = await signUp('192.0.2.1', 'grace')
    expect(statusAndCode(refused)).toEqual(RATE_LIMITED)
    expect(Number(refused.headers.get('retry-after'))).toBeWithin(3_000, 3_601)
    expect((await signUp('192.0.2.2', 'grace')).status).toBe(201)
    const otherTenant = await createSignupFixture()
    expect((await otherTenant.signUp('192.0.2.1', 'ada')).status).toBe(201)
    advanceClock(60 * MINUTE + SECOND)
    expect((await signUp('192.0.2.1', 'joan')).status).toBe(201)
  })

  test('beyond 500 sign-ups at one tenant within an hour each waits three seconds, and admins see one event', async () => {
    const { as, signUp } = await createSignupFixture()
    for (let n = 0; n < 500; n++) expect(statusAndCode(await signUp(`198.51.${n % 100}.1`))).toEqual(TAKEN)
    const begun = performance.now()
    const answers = await Promise.all(['192.0.2.1', '192.0.2.2'].map((from) => signUp(from)))
    expect(answers.map(statusAndCode)).toEqual([TAKEN, TAKEN])
    expect(performance.now() - begun).toBeWithin(2_900, 10_000)
    const events = (await as('admin').get('/events?eventName=strangers-slowed')).body
    expect(events.map(({ metadata }: { metadata: object }) => metadata)).toEqual([{ action: 'sign-up', requests: 500 }])
    const atOtherTenant = performance.now()
    const otherTenant = await createSignupFixture()
    expect(statusAndCode(await otherTenant.signUp('192.0.2.1'))).toEqual(TAKEN)
    expect(performance.now() - atOtherTenant).toBeLessThan(2_900)
  })

  test('the 81st sign-up from one IPv6 /56 and the 321st from one /48 get 429 RATE_LIMITED', async () => {
    const { signUp } = await createSignupFixture()
    for (let n = 0; n < 80; n++)
      expect(statusAndCode(await signUp(`2001:db8:1:${(n % 8).toString(16)}::1`))).toEqual(TAKEN)
    expect(statusAndCode(await signUp('2001:db8:1:ff::1'))).toEqual(RATE_LIMITED)
    for (let n = 0; n < 240; n++)
      expect(statusAndCode(await signUp(`2001:db8:1:${(256 + n * 16).toString(16)}::1`))).toEqual(TAKEN)
    expect(statusAndCode(await signUp('2001:db8:1:ffff::1'))).toEqual(RATE_LIMITED)
    expect(statusAndCode(await signUp('2001:db8:2::1'))).toEqual(TAKEN)
  })

  test.each(['127.0.0.1', '::1'])(
    'sign-ups from the loopback address %s are not limited unless a proxy header is present',
    async (own) => {
      const { signUp } = await createSignupFixture()
      for (let n = 0; n < 25; n++) expect(statusAndCode(await signUp(own))).toEqual(TAKEN)
      for (const header of ['x-forwarded-for', 'forwarded', 'x-real-ip']) {
        const { signUp } = await createSignupFixture()
        for (let n = 0; n < 20; n++)
          expect(statusAndCode(await signUp(own, 'user', { [header]: '192.0.2.9' }))).toEqual(TAKEN)
        expect(statusAndCode(await signUp(own, 'user', { [header]: '192.0.2.9' }))).toEqual(RATE_LIMITED)
      }
    },
  )

  test('sign-ups from other loopback addresses and without an address are limited', async () => {
    for (const from of ['127.0.0.2', '']) {
      const { signUp } = await createSignupFixture()
      for (let n = 0; n < 20; n++) await signUp(from)
      expect(statusAndCode(await signUp(from))).toEqual(RATE_LIMITED)
    }
  })

  test('sign-ups are not limited where ATOLL_RATE_LIMITS is off', async () => {
    config.ATOLL_RATE_LIMITS = 'off'
    const { signUp } = await createSignupFixture()
    for (let n = 0; n < 25; n++) expect(statusAndCode(await signUp('192.0.2.1'))).toEqual(TAKEN)
  })
})
