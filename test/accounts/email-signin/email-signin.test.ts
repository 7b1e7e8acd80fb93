import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { eq } from 'drizzle-orm'
import { removeExpired } from '../../../src/accounts/email-signin/request'
import { users } from '../../../src/accounts/tables'
import { codeAt, decodeBase32, stepAt } from '../../../src/accounts/totp/codes'
import { config } from '../../../src/config'
import { now } from '../../../src/core/clock'
import { runDueJobs } from '../../../src/jobs/runner'
import { withLease } from '../../../src/jobs/with-lease'
import { createTestTenant, statusAndCode, type TestResponse } from '../../test-tenant'
import { createMailReader, password } from '../mail/mail-fixtures'
import { advanceClock, bearer, MINUTE, resetClock } from '../session-fixtures'

const EMAIL = 'ada@lovelace.test'
const INVALID_CODE = [401, 'INVALID_CODE']
const INVALID_TOKEN = [400, 'INVALID_TOKEN']

const defaultLimits = config.ATOLL_RATE_LIMITS
beforeEach(() => {
  config.ATOLL_RATE_LIMITS = 'off'
})
afterEach(() => {
  resetClock()
  config.ATOLL_RATE_LIMITS = defaultLimits
})

/** Creates a tenant whose users sign in by mail, with the verified user ada. */
async function createFixture(settings: Record<string, unknown> = {}) {
  const home = await createTestTenant()
  const admin = home.as('admin')
  const configure = (metadata: Record<string, unknown>) =>
    admin.put('/configurations/auth-configuration', { metadata: { allowEmailSignIn: true, ...metadata } })
  expect((await configure(settings)).status).toBe(200)
  await admin.put('/configurations/app-configuration', { metadata: { websiteUrls: ['https://app.test'] } })
  const ada = (await admin.post('/users', { username: 'ada', email: EMAIL, password })).body
  const { outbox } = createMailReader(home)
  const { anonymous } = home
  const mails = async () => (await outbox()).filter(({ template }: { template: string }) => template === 'emailSignIn')
  const readPasswordNotices = async () =>
    (await outbox()).filter(({ template }: { template: string }) => template === 'passwordRemoved')
  const readLatest = async () => {
    const { text, to } = (await mails()).at(-1)
    return { to, code: /^\d{8}$/m.exec(text)?.[0] ?? '', token: /sign-in\?token=([\w-]{43})$/m.exec(text)?.[1] ?? '' }
  }
  const request = async (email = EMAIL): Promise<string> =>
    (await anonymous.post('/signin/email', { email })).body.request
  const byCode = (request: string, code: string, more = {}) =>
    anonymous.post('/signin/email/code', { request, code, ...more })
  const isVerified = async (email: string) =>
    (await home.tenant.db.select().from(users).where(eq(users.email, email)).get())?.emailVerified
  const byLink = (token: string, more = {}) => anonymous.post('/signin/email/link', { token, ...more })
  return { ...home, admin, ada, configure, mails, readLatest, readPasswordNotices, request, byCode, byLink, isVerified }
}

const wrongCode = (code: string) => `${code[0] === '0' ? '1' : '0'}${code.slice(1)}`
const usernameOf = ({ body }: TestResponse) => body.payload?.user.username

describe('sign-in by e-mail', () => {
  test('a user signs in once by the code of the mail, by a cookie or with tokens', async () => {
    const { request, readLatest, byCode, anonymous, ada } = await createFixture()
    const first = await request('ADA@Lovelace.test')
    const { code, to } = await readLatest()
    expect(to).toBe(EMAIL)
    const answer = await byCode(first, ` ${code.slice(0, 4)} ${code.slice(4)}`)
    expect([answer.status, answer.body.payload.user._id]).toEqual([200, ada._id])
    const cookie = answer.headers.getSetCookie()[0]?.split(';')[0] ?? ''
    expect((await anonymous.with({ cookie }).get('/me')).body.username).toBe('ada')
    expect(statusAndCode(await byCode(first, code))).toEqual(INVALID_CODE)
    const second = await request()
    const withTokens = await byCode(second, (await readLatest()).code, { authType: 'oauth' })
    const authorization = `Bearer ${withTokens.body.payload.token}`
    expect((await anonymous.with({ authorization }).get('/me')).body.username).toBe('ada')
  })

  test('a link signs in once, on any device, and ends the code of the same mail; opening its page ends nothing', async () => {
    const { request, readLatest, byCode, byLink, anonymous } = await createFixture()
    const first = await request()
    const { code, token } = await readLatest()
    // The scanner of a mail server opens each link.
    await anonymous.get(`/signin/email/link?token=${token}`)
    expect(usernameOf(await byLink(token))).toBe('ada')
    expect(statusAndCode(await byLink(token))).toEqual(INVALID_TOKEN)
    expect(statusAndCode(await byCode(first, code))).toEqual(INVALID_CODE)
  })

  test('one of several concurrent sign-ins with the same code or link succeeds', async () => {
    const { request, readLatest, byCode, byLink } = await createFixture()
    const first = await request()
    const { code } = await readLatest()
    const byCodes = await Promise.all(Array.from({ length: 4 }, () => byCode(first, code)))
    expect(byCodes.map(({ status }) => status).sort()).toEqual([200, 401, 401, 401])
    await request()
    const { token } = await readLatest()
    const byLinks = await Promise.all(Array.from({ length: 4 }, () => byLink(token)))
    expect(byLinks.map(({ status }) => status).sort()).toEqual([200, 400, 400, 400])
  })

  test('a code works for the device that requested it only, and ends after five wrong ones', async () => {
    const { request, readLatest, byCode } = await createFixture()
    const mine = await request()
    await readLatest()
    const ofThief = await request()
    const { code } = await readLatest()
    expect(statusAndCode(await byCode(mine, code))).toEqual(INVALID_CODE)
    for (let n = 0; n < 5; n++) expect(statusAndCode(await byCode(ofThief, wrongCode(code)))).toEqual(INVALID_CODE)
    expect(statusAndCode(await byCode(ofThief, code))).toEqual(INVALID_CODE)
  })

  test('codes and links end after 15 minutes, and housekeeping removes them', async () => {
    const { tenant, request, readLatest, byCode, byLink } = await createFixture()
    const first = await request()
    const { code, token } = await readLatest()
    advanceClock(15 * MINUTE + 1)
    expect(statusAndCode(await byCode(first, code))).toEqual(INVALID_CODE)
    expect(statusAndCode(await byLink(token))).toEqual(INVALID_TOKEN)
    await withLease(tenant, 'test', removeExpired)
    expect(await tenant.db.query('select count(*) from email_signins')).toEqual([[0]])
  })

  test('a mail that is sent more than an hour after its request fails', async () => {
    const { request, mails, tenant } = await createFixture()
    await request()
    await tenant.write((tx) => tx.executeMany('update email_signins set expires = ?', [[0]]))
    await runDueJobs(tenant)
    expect((await mails())[0]).toMatchObject({ state: 'failed', error: 'The sign-in has expired or was completed.' })
  })

  test('the answer is the same for every address, and without sign-up no stranger gets a mail', async () => {
    const { anonymous, tenant, mails } = await createFixture({ allowSignup: false })
    const answers = [EMAIL, 'nobody@lovelace.test'].map((email) => anonymous.post('/signin/email', { email }))
    for (const { status, body } of await Promise.all(answers))
      expect([status, body]).toEqual([200, { request: expect.stringMatching(/^[\w-]{43}$/) }])
    // The work before the response is the same, too: the user is looked up later.
    const jobs = await tenant.db.query("select kind, count(*) from jobs where kind <> 'mail' group by kind")
    expect(jobs).toEqual([['email-signin', 2]])
    expect((await mails()).map(({ to }: { to: string }) => to)).toEqual([EMAIL])
  })

  test('an address that no user has signs up where the tenant allows it, with a free username and a verified address', async () => {
    const { request, readLatest, byCode, byLink, configure, isVerified } = await createFixture()
    const first = await request('ada@elsewhere.test')
    const { body } = await byCode(first, (await readLatest()).code)
    expect(body.payload.user).toMatchObject({ email: 'ada@elsewhere.test', roles: ['user'] })
    expect(await isVerified('ada@elsewhere.test')).toBe(true)
    expect(body.payload.user.username).toMatch(/^ada-\w{8}$/)
    await request('ada@elsewhere.test')
    expect((await byLink((await readLatest()).token)).body.payload.user._id).toBe(body.payload.user._id)
    await request('grace@navy.test')
    const { token } = await readLatest()
    await configure({ allowSignup: false })
    expect(statusAndCode(await byLink(token))).toEqual([403, 'SIGNUP_CLOSED'])
  })

  test('the owner of an address takes over an account that never verified it, and its credentials end', async () => {
    const { anonymous, request, readLatest, byLink, byCode, isVerified, readPasswordNotices } = await createFixture()
    const thief = { username: 'eve', email: 'grace@navy.test', password, authType: 'oauth' }
    const { token } = (await anonymous.post('/signup', thief)).body.payload
    await request('grace@navy.test')
    const { body } = await byLink((await readLatest()).token)
    expect([body.payload.user.username, await isVerified('grace@navy.test')]).toEqual(['eve', true])
    expect(body.payload.passwordRemoved).toBeTrue()
    const [notice, ...others] = await readPasswordNotices()
    expect([notice.to, notice.text, others]).toEqual([
      'grace@navy.test',
      expect.stringContaining('its password was removed'),
      [],
    ])
    expect(notice.text).not.toContain('eve')
    expect((await anonymous.with({ authorization: `Bearer ${token}` }).get('/me')).status).toBe(401)
    expect(statusAndCode(await anonymous.post('/signin', thief))).toEqual([401, 'INVALID_CREDENTIALS'])
    const next = await byCode(await request('grace@navy.test'), (await readLatest()).code)
    expect([next.status, next.body.payload.passwordRemoved, (await readPasswordNotices()).length]).toEqual([
      200,
      undefined,
      1,
    ])
  })

  test('the answer after the second factor says that the password was removed', async () => {
    const { anonymous, tenant, request, readLatest, byLink } = await createFixture()
    const sent = { username: 'grace', email: 'grace@navy.test', password, authType: 'oauth' }
    const { user, token } = (await anonymous.post('/signup', sent)).body.payload
    const grace = anonymous.with(bearer(token))
    const { secret } = (await grace.post('/me/totp')).body
    const code = () => codeAt(decodeBase32(secret), stepAt(now()))
    expect((await grace.post('/me/totp/confirm', { code: code() })).status).toBe(200)
    advanceClock(MINUTE)
    await request('grace@navy.test')
    const { challenge } = (await byLink((await readLatest()).token)).body.details
    const { status, body } = await anonymous.post('/signin', { challenge, code: code(), authType: 'oauth' })
    expect([status, body.payload.passwordRemoved]).toEqual([200, true])
    expect((await tenant.db.select().from(users).where(eq(users._id, user._id)).get())?.password).toBeNull()
  })

  test('a user with a second factor is still asked for it', async () => {
    const { tenant, ada, request, readLatest, byCode, byLink } = await createFixture()
    await tenant.write((tx) => tx.query('insert into totp ("user", confirmed, step) values (?, 1, 0)', [ada._id]))
    const first = await request()
    expect(statusAndCode(await byCode(first, (await readLatest()).code))).toEqual([401, 'SECOND_FACTOR_REQUIRED'])
    await request()
    const answer = await byLink((await readLatest()).token)
    expect(answer.body.details.challenge).toMatch(/^[\w-]{43}$/)
    expect(answer.headers.getSetCookie()).toEqual([])
  })

  test('requests are limited per address of a mailbox and per network, with 429 RATE_LIMITED', async () => {
    const { anonymous } = await createFixture()
    config.ATOLL_RATE_LIMITS = 'on'
    const send = (email: string) => anonymous.post('/signin/email', { email })
    for (let n = 0; n < 10; n++) expect((await send(EMAIL)).status).toBe(200)
    expect(statusAndCode(await send(EMAIL))).toEqual([429, 'RATE_LIMITED'])
    expect(statusAndCode(await send('grace@navy.test'))).toEqual([429, 'RATE_LIMITED'])
    advanceClock(10 * MINUTE + 1)
    expect((await send(EMAIL)).status).toBe(200)
  })

  test('a tenant that does not allow it answers 403 EMAIL_SIGNIN_CLOSED, and GET /api/signin/methods says so', async () => {
    const { anonymous, configure, request, readLatest, byCode, byLink } = await createFixture()
    expect((await anonymous.get('/signin/methods')).body).toEqual({ email: true, providers: [] })
    const first = await request()
    const { code, token } = await readLatest()
    await configure({ allowEmailSignIn: false })
    expect((await anonymous.get('/signin/methods')).body).toEqual({ email: false, providers: [] })
    const answers = [
      await anonymous.post('/signin/email', { email: EMAIL }),
      await byCode(first, code),
      await byLink(token),
    ]
    expect(answers.map(statusAndCode)).toEqual(answers.map(() => [403, 'EMAIL_SIGNIN_CLOSED']))
  })

  test('an identity is not the last way to sign in of a user whose verified address signs in, until the tenant ends that', async () => {
    const { tenant, anonymous, request, readLatest, byCode, configure } = await createFixture()
    const first = await request('grace@navy.test')
    const { body } = await byCode(first, (await readLatest()).code, { authType: 'oauth' })
    const { token, user } = body.payload
    const grace = anonymous.with({ authorization: `Bearer ${token}` })
    const link = `insert into identities (provider, subject, "user", created) values ('github', '1', ?, 0)`
    await tenant.write((tx) => tx.query(link, [user._id]))
    const [identity] = (await grace.get('/me/identities')).body
    await configure({ allowEmailSignIn: false })
    const remove = () => grace.delete(`/me/identities/${identity._id}`)
    expect(statusAndCode(await remove())).toEqual([409, 'LAST_SIGN_IN_METHOD'])
    await configure({ allowEmailSignIn: true })
    expect((await remove()).status).toBe(200)
  })

  test('a tenant changes the words of the mail and uses its code in the subject', async () => {
    const { admin, request, mails } = await createFixture()
    const emailSignIn = { subject: '{{code}} is your code', text: '{{token}}' }
    await admin.put('/configurations/mail-templates', { metadata: { emailSignIn } })
    await request()
    expect((await mails())[0]).toMatchObject({ subject: expect.stringMatching(/^\d{8} is your code$/) })
  })
})
