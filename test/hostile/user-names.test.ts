import { afterAll, afterEach, beforeAll, expect, spyOn, test } from 'bun:test'
import { registerUser } from '../../src/accounts/users/users'
import { config } from '../../src/config'
import { bearer, signInForTokens } from '../accounts/session-fixtures'
import { createTestTenant, statusAndCode } from '../test-tenant'

const testTenant = await createTestTenant()
const { anonymous } = testTenant
const password = 'correct horse'
const { hash } = Bun.password
const originalRateLimits = config.ATOLL_RATE_LIMITS
beforeAll(() => {
  config.ATOLL_RATE_LIMITS = 'off'
})
afterAll(() => {
  config.ATOLL_RATE_LIMITS = originalRateLimits
})
afterEach(() => spyOn(Bun.password, 'hash').mockRestore())

test('POST /api/signup refuses a taken username or e-mail with 409 before it hashes the password', async () => {
  const spy = spyOn(Bun.password, 'hash')
  const email = `user@${testTenant.id}.test`
  for (const [input, code] of [
    [{ username: 'user' }, 'USERNAME_EXISTS'],
    [{ username: 'ＵＳＥＲ' }, 'USERNAME_EXISTS'],
    [{ username: email }, 'USERNAME_EXISTS'],
    [{ username: 'somebody', email }, 'EMAIL_EXISTS'],
  ] as const)
    expect(statusAndCode(await anonymous.post('/signup', { password, ...input }))).toEqual([409, code])
  expect(spy).not.toHaveBeenCalled()
  expect((await anonymous.post('/signup', { password, username: 'somebody' })).status).toBe(201)
  expect(spy).toHaveBeenCalledTimes(1)
})

test('a flood of sign-ups at one tenant gets 503 BUSY while users of another tenant can sign in', async () => {
  const flooded = await createTestTenant()
  expect((await anonymous.post('/signup', { username: 'ada', password })).status).toBe(201)
  const passwordHash = await hash(password, { algorithm: 'argon2id', memoryCost: 8, timeCost: 1 })
  const gate = Promise.withResolvers<void>()
  spyOn(Bun.password, 'hash').mockImplementation(async () => {
    await gate.promise
    return passwordHash
  })
  const flood = Array.from({ length: 150 }, (_, n) =>
    flooded.anonymous.post('/signup', { username: `guest ${n}`, password }),
  )
  const refused = await Promise.race(flood)
  expect(statusAndCode(refused)).toEqual([503, 'BUSY'])
  const signedIn = anonymous.post('/signin', { username: 'ada', password })
  const another = flooded.anonymous.post('/signup', { username: 'too late', password })
  expect(statusAndCode(await another)).toEqual([503, 'BUSY'])
  gate.resolve()
  expect((await signedIn).status).toBe(200)
  const statuses = (await Promise.all(flood)).map(({ status }) => status)
  expect(new Set(statuses)).toEqual(new Set([201, 503]))
})

const INVISIBLE = [
  '\u200b',
  '\u200d',
  '\u2060',
  '\ufeff',
  '\u00ad',
  '\u034f',
  '\u061c',
  '\u180e',
  '\u3164',
  '\ufe0f',
  '\u{e0041}',
]

test('POST /api/signup refuses a taken username or e-mail with added invisible characters', async () => {
  const { tenant, anonymous } = await createTestTenant()
  const taken = [409, 'USERNAME_EXISTS']
  await registerUser(tenant, { username: 'root', email: 'root@example.test' })
  for (const mark of INVISIBLE) {
    const shown = JSON.stringify(mark)
    for (const username of [`root${mark}`, `${mark}root`, `ro${mark}ot`, `R${mark}O${mark}ｏt`])
      expect((await anonymous.post('/signup', { username, password })).status, shown).toBeOneOf([400, 409])
    expect(statusAndCode(await anonymous.post('/signup', { username: `ro${mark}ot`, password })), shown).toEqual(taken)
    const address = { username: 'fresh', email: `ro${mark}ot@example.test` }
    expect((await anonymous.post('/signup', { ...address, password })).status, shown).toBeOneOf([400, 409])
  }
})

test('POST /api/me refuses a taken username with added invisible characters with 409 USERNAME_EXISTS', async () => {
  const t = await createTestTenant()
  const user = t.anonymous.with(bearer((await signInForTokens(t, 'user')).token))
  for (const mark of INVISIBLE)
    expect(statusAndCode(await user.post('/me', { username: `adm${mark}in` }))).toEqual([409, 'USERNAME_EXISTS'])
  expect((await user.get('/me')).body.username).toBe('user')
})

test('a username of invisible characters only is refused with 400 INVALID_INPUT', async () => {
  const t = await createTestTenant()
  const { anonymous } = t
  const user = anonymous.with(bearer((await signInForTokens(t, 'user')).token))
  for (const username of [...INVISIBLE, INVISIBLE.join(''), '', ' ', '\u00a0']) {
    const shown = JSON.stringify(username)
    expect(statusAndCode(await anonymous.post('/signup', { username, password })), shown).toEqual([
      400,
      'INVALID_INPUT',
    ])
    expect(statusAndCode(await user.post('/me', { username })), shown).toEqual([400, 'INVALID_INPUT'])
  }
})
