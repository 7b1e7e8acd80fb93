import { afterEach, describe, expect, test } from 'bun:test'
import { eq } from 'drizzle-orm'
import { revokeSignIns } from '../../../src/accounts/credential-revocation'
import { issueOneTimeToken } from '../../../src/accounts/one-time-tokens'
import { users } from '../../../src/accounts/tables'
import { runDueJobs } from '../../../src/jobs/runner'
import { writeInvalidating } from '../../../src/tenancy/cache'
import { createTestTenant, statusAndCode, type TestResponse } from '../../test-tenant'
import { advanceClock, MINUTE, resetClock } from '../session-fixtures'
import { createMailFixture, INVALID_TOKEN, password } from './mail-fixtures'

afterEach(resetClock)
const newPassword = 'battery staple'
const INVALID_INPUT = [400, 'INVALID_INPUT']

async function createResetFixture() {
  const home = await createMailFixture()
  await home.verify()
  await home.stranger.post('/password/forgot', { email: 'ADA@Lovelace.test' })
  const reset = (token: string, word = newPassword) => home.stranger.post('/password/reset', { token, password: word })
  const signIn = (word: string) => home.stranger.post('/signin', { username: 'ada', password: word })
  const hash = await Bun.password.hash(newPassword)
  /** Begins something that takes as long as a password is hashed, and has a reset done before it ends. */
  const replaceMeanwhile = async (begin: () => Promise<TestResponse>) => {
    const begun = begin()
    await Bun.sleep(10)
    await writeInvalidating(home.tenant, 'actors', async (tx) => {
      await revokeSignIns(tx, home.user._id)
      await tx.update(users).set({ password: hash }).where(eq(users._id, home.user._id))
    })
    return begun
  }
  return { ...home, reset, signIn, replaceMeanwhile }
}

describe('a forgotten password', () => {
  test('is replaced by who reads the mail, and every session ends', async () => {
    const { ada, codeOf, reset, signIn } = await createResetFixture()
    const answer = await reset(await codeOf('passwordReset'))
    expect([answer.status, answer.body]).toEqual([200, { success: true }])
    expect((await ada.get('/me')).status).toBe(401)
    expect(statusAndCode(await signIn(password))).toEqual([401, 'INVALID_CREDENTIALS'])
    expect((await signIn(newPassword)).body.payload.user.username).toBe('ada')
  })

  test('is not replaced by mail to an address that nobody has verified', async () => {
    const { stranger, outbox, codeOf, tenant, user } = await createMailFixture()
    expect((await stranger.post('/password/forgot', { email: 'ada@lovelace.test' })).status).toBe(200)
    await runDueJobs(tenant)
    expect((await outbox()).map(({ template }: { template: string }) => template)).toEqual(['verification'])
    // Nor by a token from when it was verified.
    const data = { emailKey: 'ada@lovelace.test' }
    const token = await tenant.write((tx) => issueOneTimeToken(tx, 'passwordReset', user._id, data))
    expect(statusAndCode(await stranger.post('/password/reset', { token, password: newPassword }))).toEqual(
      INVALID_TOKEN,
    )
    await stranger.post('/email/verify', { token: await codeOf('verification') })
    expect((await stranger.post('/password/forgot', { email: 'ada@lovelace.test' })).status).toBe(200)
    await runDueJobs(tenant)
    expect((await outbox()).map(({ template }: { template: string }) => template)).toContain('passwordReset')
  })

  test('is replaced by mail to an address that an admin gave', async () => {
    const { as, stranger, codeOf } = await createMailFixture()
    const person = { username: 'grace', email: 'grace@navy.test', password }
    expect((await as('admin').post('/users', person)).status).toBe(201)
    await stranger.post('/password/forgot', { email: 'grace@navy.test' })
    const answer = await stranger.post('/password/reset', {
      token: await codeOf('passwordReset'),
      password: newPassword,
    })
    expect(answer.status).toBe(200)
    expect((await stranger.post('/signin', { username: 'grace', password: newPassword })).status).toBe(200)
  })

  test('answers the same whoever is meant, and writes only to who is there', async () => {
    const { stranger, outbox, tenant, verify } = await createMailFixture()
    await verify()
    const ask = (email: string) => stranger.post('/password/forgot', { email })
    const answers = [await ask('ada@lovelace.test'), await ask('nobody@lovelace.test')]
    expect(answers.map(({ status, body }) => [status, body])).toEqual(answers.map(() => [200, { success: true }]))
    // What is done before the answer is the same, too: whom it is about is found out later.
    const jobs = await tenant.db.query("select kind, count(*) from jobs where kind <> 'mail' group by kind")
    expect(jobs).toEqual([['forgotten-password', 2]])
    await runDueJobs(tenant)
    const sent = (await outbox()).filter(({ template }: { template: string }) => template === 'passwordReset')
    expect(sent.map(({ to }: { to: string }) => to)).toEqual(['ada@lovelace.test'])
    expect(statusAndCode(await stranger.post('/password/forgot', { email: 'nobody' }))).toEqual(INVALID_INPUT)
  })

  test('is asked for ten times in ten minutes at most, for whichever address', async () => {
    for (const email of ['ada@lovelace.test', 'nobody@lovelace.test']) {
      const { stranger } = await createMailFixture()
      const ask = () => stranger.post('/password/forgot', { email })
      for (let n = 0; n < 10; n++) expect((await ask()).status).toBe(200)
      expect(statusAndCode(await ask())).toEqual([429, 'RATE_LIMITED'])
      // Signing in is another matter.
      expect((await stranger.post('/signin', { username: 'ada', password })).status).toBe(200)
      advanceClock(11 * MINUTE)
      expect((await ask()).status).toBe(200)
      resetClock()
    }
  })

  test('is replaced once, also by two at the same time, and not by an older mail after that', async () => {
    const { stranger, codeOf, reset } = await createResetFixture()
    const older = await codeOf('passwordReset')
    await stranger.post('/password/forgot', { email: 'ada@lovelace.test' })
    const token = await codeOf('passwordReset')
    expect(token).not.toBe(older)
    const answers = await Promise.all([reset(token), reset(token)])
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 400])
    for (const spent of [token, older]) expect(statusAndCode(await reset(spent))).toEqual(INVALID_TOKEN)
  })

  test('ends all API tokens of the user when it is replaced, and nobody else’s', async () => {
    const { ada, as, stranger, codeOf, reset } = await createResetFixture()
    const key = (await ada.post('/me/api-tokens', { nickname: 'theirs' })).body.token
    expect((await stranger.get('/me', { 'x-api-key': key })).status).toBe(200)
    await reset(await codeOf('passwordReset'))
    expect((await stranger.get('/me', { 'x-api-key': key })).status).toBe(401)
    expect((await as('user').get('/me')).status).toBe(200)
  })

  test('lets nobody in whose sign-in by it was under way when it was replaced', async () => {
    const { signIn, stranger, replaceMeanwhile } = await createResetFixture()
    const answer = await replaceMeanwhile(() => signIn(password))
    expect(statusAndCode(answer)).toEqual([401, 'INVALID_CREDENTIALS'])
    expect(answer.headers.getSetCookie()).toEqual([])
    const person = { username: 'ada', password: newPassword, authType: 'oauth' }
    expect((await stranger.post('/signin', person)).status).toBe(200)
  })

  test.each([
    ['an API token', '/me/api-tokens', { nickname: 'theirs' }],
    ['another e-mail address', '/me', { email: 'eve@x.test' }],
    ['another password', '/me', { password: 'of an intruder' }],
    ['a second factor', '/me/totp', {}],
  ])('gives nobody %s whose session ended with it while they proved who they are', async (_, path, body) => {
    const { ada, signIn, replaceMeanwhile } = await createResetFixture()
    const answer = await replaceMeanwhile(() => ada.post(path, { ...body, currentPassword: password }))
    expect(statusAndCode(answer)).toEqual([401, 'UNAUTHENTICATED'])
    expect((await signIn(newPassword)).body.payload.user.email).toBe('ada@lovelace.test')
  })

  test('is good for an hour, at one tenant, and for what it was sent for', async () => {
    const { codeOf, reset, stranger, signIn } = await createResetFixture()
    const [token, other] = [await codeOf('passwordReset'), await codeOf('verification')]
    const abroad = await createTestTenant()
    expect(statusAndCode(await abroad.stranger.post('/password/reset', { token, password: newPassword }))).toEqual(
      INVALID_TOKEN,
    )
    expect(statusAndCode(await reset(other))).toEqual(INVALID_TOKEN)
    expect(statusAndCode(await stranger.post('/email/verify', { token }))).toEqual(INVALID_TOKEN)
    advanceClock(61 * MINUTE)
    expect(statusAndCode(await reset(token))).toEqual(INVALID_TOKEN)
    expect((await signIn(password)).status).toBe(200)
  })

  test('that came back to mind and was changed is not replaced by a mail from before', async () => {
    const { ada, codeOf, reset } = await createResetFixture()
    const token = await codeOf('passwordReset')
    expect((await ada.post('/me', { password: 'battery staple', currentPassword: password })).status).toBe(200)
    expect(statusAndCode(await reset(token))).toEqual(INVALID_TOKEN)
  })

  test('is not replaced by what is no password, and the token stays good', async () => {
    const { codeOf, reset } = await createResetFixture()
    const token = await codeOf('passwordReset')
    expect(statusAndCode(await reset(token, 'short'))).toEqual(INVALID_INPUT)
    expect(statusAndCode(await reset(token, 'x'.repeat(257)))).toEqual(INVALID_INPUT)
    expect((await reset(token)).status).toBe(200)
  })

  test('is not replaced by who reads an address that is the user’s no more', async () => {
    const { ada, codeOf, reset } = await createResetFixture()
    const token = await codeOf('passwordReset')
    await ada.post('/me', { email: 'countess@lovelace.test' })
    expect(statusAndCode(await reset(token))).toEqual(INVALID_TOKEN)
  })
})

describe('a sign-in from elsewhere', () => {
  const from = (agent: string) => ({ 'user-agent': agent })

  test('is told to the user by mail, once for each place', async () => {
    const { stranger, codeOf, outbox } = await createMailFixture()
    await stranger.post('/email/verify', { token: await codeOf('verification') })
    const signIn = (agent: string) => stranger.post('/signin', { username: 'ada', password }, from(agent))
    await signIn('Netscape 4')
    await signIn('Netscape 4')
    const told = (await outbox()).filter(({ template }: { template: string }) => template === 'newDevice')
    expect(told).toHaveLength(1)
    expect(told[0]).toMatchObject({ to: 'ada@lovelace.test', subject: expect.stringContaining('A new sign-in at') })
    expect(told[0].text).toContain('\nNetscape 4\n')
  })

  test('is not told to an address that may be somebody else’s', async () => {
    const { stranger, outbox } = await createMailFixture()
    await stranger.post('/signin', { username: 'ada', password }, from('Netscape 4'))
    expect((await outbox()).map(({ template }: { template: string }) => template)).toEqual(['verification'])
  })
})
