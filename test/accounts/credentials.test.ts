import { afterAll, afterEach, beforeAll, describe, expect, spyOn, test } from 'bun:test'
import { issueApiToken } from '../../src/accounts/api-tokens'
import { codeAt, decodeBase32, stepAt } from '../../src/accounts/totp/codes'
import { config } from '../../src/config'
import { now } from '../../src/core/clock'
import { runDueJobs } from '../../src/jobs/runner'
import { FORBIDDEN, INVALID_TOKEN } from '../expectations'
import { startSmtpServer } from '../fakes/smtp-server'
import { type ApiClient, createTestTenant, statusAndCode, type TestUser } from '../test-tenant'
import { createMailFixture, extractToken, password } from './mail/mail-fixtures'
import {
  advanceClock,
  bearer,
  createSignedInClient,
  DAY,
  MINUTE,
  resetClock,
  signInForTokens,
} from './session-fixtures'

const PROOF_REQUIRED = [403, 'PROOF_REQUIRED']
const WRONG_PASSWORD = [403, 'INVALID_CREDENTIALS']
const newPassword = 'battery staple'

afterEach(resetClock)

/** The changes that need proof, by name. */
const guarded: Record<string, (me: ApiClient, proof?: object) => ReturnType<ApiClient['post']>> = {
  'another e-mail address': (me, proof) => me.post('/me', { email: `e${crypto.randomUUID()}@x.test`, ...proof }),
  'no e-mail address': (me, proof) => me.post('/me', { email: '', ...proof }),
  'another username': (me, proof) => me.post('/me', { username: `n${crypto.randomUUID()}`, ...proof }),
  'a second factor': (me, proof) => me.post('/me/totp', proof),
  'an API token': (me, proof) => me.post('/me/api-tokens', { nickname: 'x', ...proof }),
}

describe.each(Object.keys(guarded))('a change that needs proof: %s', (what) => {
  const attempt = guarded[what]!
  const succeeds = what === 'an API token' ? 201 : 200

  test('the change succeeds within ten minutes of a sign-in and later needs currentPassword (403 PROOF_REQUIRED)', async () => {
    const { ada } = await createMailFixture()
    advanceClock(11 * MINUTE)
    const refused = await attempt(ada)
    expect([...statusAndCode(refused), refused.body.details]).toEqual([...PROOF_REQUIRED, { by: 'currentPassword' }])
    expect(statusAndCode(await attempt(ada, { currentPassword: 'wrong horse' }))).toEqual(WRONG_PASSWORD)
    expect((await attempt(ada, { currentPassword: password })).status).toBe(succeeds)
    const { anonymous } = await createMailFixture()
    const { headers } = await anonymous.post('/signin', { username: 'ada', password })
    const freshClient = anonymous.with({ cookie: headers.get('set-cookie')!.split(';')[0]! })
    expect((await attempt(freshClient)).status).toBe(succeeds)
  })

  test('the change gets 403 FORBIDDEN by an API token and by an impersonating admin', async () => {
    const own = await createTestTenant()
    const { token } = await issueApiToken(own.tenant, own.users.user, { nickname: 'x', scopes: ['accounts:write'] })
    const before = (await own.as('user').get('/me')).body
    for (const me of [own.as('user'), own.anonymous.with({ 'x-api-key': token })])
      expect(statusAndCode(await attempt(me))).toEqual(FORBIDDEN)
    const admin = await createSignedInClient(own, 'admin')
    expect(statusAndCode(await attempt(admin.with({ 'x-impersonate-user': own.users.user })))).toEqual(FORBIDDEN)
    expect((await own.as('user').get('/me')).body).toEqual(before)
  })
})

describe('proof of identity', () => {
  test('a user with TOTP proves their identity by a code; the password alone gets 403 PROOF_REQUIRED', async () => {
    const { ada } = await createMailFixture()
    const { secret } = (await ada.post('/me/totp')).body
    const code = () => codeAt(decodeBase32(secret), stepAt(now()))
    await ada.post('/me/totp/confirm', { code: code() })
    advanceClock(11 * MINUTE)
    const refused = await ada.post('/me', { username: 'countess', currentPassword: password })
    expect([...statusAndCode(refused), refused.body.details]).toEqual([...PROOF_REQUIRED, { by: 'code' }])
    expect(statusAndCode(await ada.post('/me', { username: 'countess', code: '000000' }))).toEqual([
      403,
      'INVALID_CODE',
    ])
    expect((await ada.post('/me', { username: 'countess', code: code() })).body.username).toBe('countess')
  })

  test('an unchanged profile can be sent back without proof by the user, an API token or an impersonating admin', async () => {
    const { ada, as, user, tenant } = await createMailFixture()
    advanceClock(11 * MINUTE)
    const { body } = await ada.get('/me')
    const sent = await ada.post('/me', { ...body, firstName: 'Augusta' })
    expect([sent.status, sent.body.firstName]).toEqual([200, 'Augusta'])
    const { token } = await issueApiToken(tenant, user._id, { nickname: 'x' })
    expect((await ada.with({ authorization: '', 'x-api-key': token }).post('/me', body)).status).toBe(200)
    const impersonating = as('admin').with({ 'x-impersonate-user': user._id })
    expect((await impersonating.post('/me', body)).status).toBe(200)
  })

  test('an admin needs proof for their own sign-in credentials but not for those of other users', async () => {
    const own = await createTestTenant()
    const { body } = await own.anonymous.post('/signup', { username: 'root', password, authType: 'oauth' })
    const [_id, root] = [body.payload.user._id, own.anonymous.with(bearer(body.payload.token))]
    await own.as('admin').put(`/users/${_id}`, { roles: ['admin'] })
    const at = `/users/${_id}`
    advanceClock(11 * MINUTE)
    for (const change of [{ username: 'chief' }, { email: 'chief@x.test' }])
      expect(statusAndCode(await root.put(at, change))).toEqual(PROOF_REQUIRED)
    expect(statusAndCode(await root.put(at, { password: newPassword }))).toEqual([400, 'INVALID_INPUT'])
    expect(statusAndCode(await root.put(at, { password: newPassword, currentPassword: 'wrong horse' }))).toEqual(
      WRONG_PASSWORD,
    )
    expect((await root.put(at, { ...(await root.get(at)).body, firstName: 'Root' })).status).toBe(200)
    const proven = { username: 'chief', password: newPassword, currentPassword: password }
    expect((await root.put(at, proven)).body.username).toBe('chief')
    expect((await own.anonymous.post('/signin', { username: 'chief', password: newPassword })).status).toBe(200)
    expect((await root.put(`/users/${own.users.user}`, { username: 'guest', password })).body.username).toBe('guest')
    // An API token of an admin cannot change their credentials either.
    const admin = own.as('admin')
    for (const change of [{ username: 'x' }, { email: 'x@x.test' }, { password: newPassword }])
      for (const user of ['', own.users.admin, _id]) {
        const impersonation = { 'x-impersonate-user': user }
        expect(statusAndCode(await admin.put(`/users/${own.users.admin}`, change, impersonation))).toEqual(FORBIDDEN)
      }
  })
})

describe('a new password together with a new username and e-mail address', () => {
  /** A user without a password, as after a sign-in by a provider, with TOTP and a session older than ten minutes. */
  async function createPasswordlessFixture(name: TestUser) {
    const home = await createTestTenant()
    const me = await createSignedInClient(home, name)
    const { secret } = (await me.post('/me/totp')).body
    const code = () => codeAt(decodeBase32(secret), stepAt(now()))
    await me.post('/me/totp/confirm', { code: code() })
    advanceClock(11 * MINUTE)
    const wanted = () => ({ username: 'countess', email: `e${crypto.randomUUID()}@x.test`, password, code: code() })
    return { ...home, me, wanted }
  }

  test('a user without a password sets password, username and address with one code, at /api/me and /api/users/:id', async () => {
    const atProfile = await createPasswordlessFixture('user')
    const changed = await atProfile.me.post('/me', atProfile.wanted())
    expect([changed.status, changed.body.username]).toEqual([200, 'countess'])
    const asAdmin = await createPasswordlessFixture('admin')
    const changedByAdmin = await asAdmin.me.put(`/users/${asAdmin.users.admin}`, asAdmin.wanted())
    expect([changedByAdmin.status, changedByAdmin.body.username]).toEqual([200, 'countess'])
    for (const { anonymous } of [atProfile, asAdmin])
      expect(statusAndCode(await anonymous.post('/signin', { username: 'countess', password }))).toEqual([
        401,
        'SECOND_FACTOR_REQUIRED',
      ])
  })

  test('a password that is too short gets 400 and leaves the code valid for the next attempt', async () => {
    const { me, wanted } = await createPasswordlessFixture('user')
    const sent = wanted()
    expect(statusAndCode(await me.post('/me', { ...sent, password: 'short' }))).toEqual([400, 'INVALID_INPUT'])
    expect((await me.post('/me', sent)).status).toBe(200)
  })

  test('a change of username and password verifies the current password only once', async () => {
    const { ada } = await createMailFixture()
    advanceClock(11 * MINUTE)
    const verify = spyOn(Bun.password, 'verify')
    const changed = await ada.post('/me', { username: 'countess', password: newPassword, currentPassword: password })
    const { length } = verify.mock.calls
    verify.mockRestore()
    expect([changed.status, length]).toEqual([200, 1])
  })

  test('a user with TOTP and a password needs both a code and the current password for a new password and username', async () => {
    const { ada } = await createMailFixture()
    const { secret } = (await ada.post('/me/totp')).body
    const code = () => codeAt(decodeBase32(secret), stepAt(now()))
    await ada.post('/me/totp/confirm', { code: code() })
    advanceClock(11 * MINUTE)
    const wanted = { username: 'countess', password: newPassword }
    expect(statusAndCode(await ada.post('/me', { ...wanted, currentPassword: password }))).toEqual(PROOF_REQUIRED)
    const sent = { ...wanted, currentPassword: 'wrong horse', code: code() }
    expect(statusAndCode(await ada.post('/me', sent))).toEqual(WRONG_PASSWORD)
    advanceClock(MINUTE)
    expect((await ada.post('/me', { ...wanted, currentPassword: password, code: code() })).status).toBe(200)
  })
})

describe('a new password', () => {
  test('a new password keeps the API tokens of the user unless endTokens is true, which requires a new password', async () => {
    const { ada, anonymous, token } = await createMailFixture()
    const tokenOf = async () => (await ada.post('/me/api-tokens', { nickname: 'x' })).body.token as string
    const statusOf = async (key: string) => (await anonymous.get('/me', { 'x-api-key': key })).status
    const first = await tokenOf()
    await ada.post('/me', { password: newPassword, currentPassword: password })
    expect(await statusOf(first)).toBe(200)
    await ada.post('/me', { password, currentPassword: newPassword, endTokens: true })
    expect(await statusOf(first)).toBe(401)
    expect((await anonymous.get('/me', bearer(token))).status).toBe(200)
    expect(statusAndCode(await ada.post('/me', { endTokens: true }))).toEqual([400, 'INVALID_INPUT'])
    expect((await ada.post('/me', { endTokens: false })).status).toBe(200)
  })

  test('an admin who sets a password with endTokens revokes the API tokens of that user only', async () => {
    const { as, users } = await createTestTenant()
    expect((await as('user').get('/me')).status).toBe(200)
    await as('admin').put(`/users/${users.user}`, { password: newPassword })
    expect((await as('user').get('/me')).status).toBe(200)
    await as('admin').put(`/users/${users.user}`, { password, endTokens: true })
    expect((await as('user').get('/me')).status).toBe(401)
    expect((await as('other').get('/me')).status).toBe(200)
  })

  test('a user without a password can set one after a recent sign-in, but their API token gets 403 FORBIDDEN', async () => {
    const own = await createTestTenant()
    expect(statusAndCode(await own.as('user').post('/me', { password }))).toEqual(FORBIDDEN)
    const user = await createSignedInClient(own, 'user')
    expect((await user.post('/me', { password })).status).toBe(200)
    expect((await own.anonymous.post('/signin', { username: 'user', password })).status).toBe(200)
  })
})

describe('credential changes where mail is configured', () => {
  let box: Awaited<ReturnType<typeof startSmtpServer>>
  beforeAll(async () => {
    box = await startSmtpServer()
    config.ATOLL_SMTP_URL = box.url
  })
  afterAll(async () => {
    config.ATOLL_SMTP_URL = ''
    await box.close()
  })

  /** A user with a verified address, and access to the mails that were sent. */
  async function createVerifiedFixture() {
    const [old, next] = [`old-${crypto.randomUUID()}@x.test`, `new-${crypto.randomUUID()}@x.test`]
    const home = await createMailFixture(old)
    const { ada, anonymous, tenant } = home
    /** The code in the latest mail to an address. */
    const codeTo = async (to: string) => {
      await runDueJobs(tenant)
      return extractToken(box.to(to).at(-1)?.text ?? '')
    }
    expect((await anonymous.post('/email/verify', { token: await codeTo(old) })).status).toBe(200)
    const profile = async () => {
      const { email, emailVerified, pendingEmail } = (await ada.get('/me')).body
      return [email, emailVerified, pendingEmail]
    }
    const verify = async (token: string) => anonymous.post('/email/verify', { token })
    const revert = async (token: string) => anonymous.post('/email/revert', { token })
    const signIn = async (username: string, givenPassword = password) =>
      (await anonymous.post('/signin', { username, password: givenPassword })).status
    return { ...home, old, next, codeTo, profile, verify, revert, signIn }
  }

  test('a new e-mail address is pending until its code is confirmed, and only then replaces the old one at sign-in', async () => {
    const { ada, old, next, codeTo, profile, verify, signIn } = await createVerifiedFixture()
    const response = await ada.post('/me', { email: next })
    expect(response.body).toMatchObject({ email: old, emailVerified: true, pendingEmail: next })
    expect([await signIn(old), await signIn(next)]).toEqual([200, 401])
    // Another change of the profile, sent back as it was read, leaves it pending.
    expect((await ada.post('/me', { ...(await ada.get('/me')).body, firstName: 'Ada' })).status).toBe(200)
    expect(await profile()).toEqual([old, true, next])
    const code = await codeTo(next)
    expect((await verify(code)).status).toBe(200)
    expect(await profile()).toEqual([next, true, null])
    expect([await signIn(old), await signIn(next)]).toEqual([401, 200])
    expect(statusAndCode(await verify(code))).toEqual(INVALID_TOKEN)
  })

  test('the code of a pending e-mail address can be requested again, and only the latest address can be confirmed', async () => {
    const { ada, old, next, codeTo, profile, verify } = await createVerifiedFixture()
    await ada.post('/me', { email: next })
    const first = await codeTo(next)
    await ada.post('/me', { email: `x${next}` })
    expect(statusAndCode(await verify(first))).toEqual(INVALID_TOKEN)
    expect(await profile()).toEqual([old, true, `x${next}`])
    expect((await ada.post('/email/verification')).status).toBe(200)
    expect((await verify(await codeTo(`x${next}`))).status).toBe(200)
    expect(await profile()).toEqual([`x${next}`, true, null])
  })

  test('confirming an address that another user has taken meanwhile gets 409 EMAIL_EXISTS', async () => {
    const { ada, anonymous, old, next, codeTo, profile, verify } = await createVerifiedFixture()
    await ada.post('/me', { email: next })
    const code = await codeTo(next)
    expect((await anonymous.post('/signup', { username: 'bob', email: next, password })).status).toBe(201)
    expect(statusAndCode(await verify(code))).toEqual([409, 'EMAIL_EXISTS'])
    expect(await profile()).toEqual([old, true, next])
  })

  test('the old address is notified at once, and its token cancels the pending change and ends sessions and API tokens', async () => {
    const { ada, old, next, codeTo, profile, verify, revert, anonymous } = await createVerifiedFixture()
    const key = (await ada.post('/me/api-tokens', { nickname: 'theirs' })).body.token
    await ada.post('/me', { email: next })
    const [code, token] = [await codeTo(next), await codeTo(old)]
    const notice = box.to(old).at(-1)!
    expect(notice.text).toContain('It replaces this one as soon as it is confirmed')
    expect(notice.text).not.toContain(next)
    expect((await revert(token)).body).toEqual({ success: true })
    expect(statusAndCode(await revert(token))).toEqual(INVALID_TOKEN)
    expect(statusAndCode(await verify(code))).toEqual(INVALID_TOKEN)
    expect((await ada.get('/me')).status).toBe(401)
    expect((await anonymous.get('/me', { 'x-api-key': key })).status).toBe(401)
    const { body } = await anonymous.post('/signin', { username: old, password, authType: 'oauth' })
    const back = (await anonymous.get('/me', bearer(body.payload.token))).body
    expect([back.email, back.emailVerified, back.pendingEmail]).toEqual([old, true, null])
    expect(await profile().catch(() => [])).toEqual([undefined, undefined, undefined])
  })

  test('the token of the old address restores it within seven days despite later changes, and keeps it reserved', async () => {
    const { ada, old, next, codeTo, verify, revert, signIn, anonymous } = await createVerifiedFixture()
    await ada.post('/me', { email: next })
    const token = await codeTo(old)
    await verify(await codeTo(next))
    await ada.post('/me', { email: `x${next}` })
    const laterToken = await codeTo(next)
    await verify(await codeTo(`x${next}`))
    await ada.post('/me', { password: newPassword, currentPassword: password })
    // Sign-ups with the old address as e-mail address or username are rejected meanwhile.
    for (const signup of [{ username: 'eve', email: old }, { username: old.toUpperCase() }])
      expect((await anonymous.post('/signup', { ...signup, password })).status).toBe(409)
    advanceClock(6 * DAY)
    expect((await revert(token)).status).toBe(200)
    expect(statusAndCode(await revert(laterToken))).toEqual(INVALID_TOKEN)
    expect([await signIn(`x${next}`, newPassword), await signIn(old, newPassword)]).toEqual([401, 200])
    // The owner can reset the password by that address again.
    await anonymous.post('/password/forgot', { email: old })
    expect((await anonymous.post('/password/reset', { token: await codeTo(old), password })).status).toBe(200)
    expect(await signIn(old)).toBe(200)
  })

  test('the token of the old address expires after seven days, and the address becomes available', async () => {
    const { ada, old, next, codeTo, verify, revert, anonymous } = await createVerifiedFixture()
    await ada.post('/me', { email: next })
    const token = await codeTo(old)
    await verify(await codeTo(next))
    advanceClock(7 * DAY + MINUTE)
    expect(statusAndCode(await revert(token))).toEqual(INVALID_TOKEN)
    expect((await anonymous.post('/signup', { username: 'eve', email: old, password })).status).toBe(201)
  })

  test('an unverified old address gets a notice without a token', async () => {
    const first = `typo-${crypto.randomUUID()}@x.test`
    const { ada, tenant } = await createMailFixture(first)
    await ada.post('/me', { email: `right-${first}` })
    await runDueJobs(tenant)
    const notice = box.to(first).find(({ text }) => text.includes('another e-mail address'))!
    expect(extractToken(notice.text)).toBe('')
    expect(await tenant.db.query('select count(*) from email_changes')).toEqual([[0]])
  })

  test('a password reset cancels a pending e-mail change and ends every session', async () => {
    const { ada, old, next, codeTo, verify, anonymous } = await createVerifiedFixture()
    await ada.post('/me', { email: next })
    const code = await codeTo(next)
    await anonymous.post('/password/forgot', { email: old })
    expect((await anonymous.post('/password/reset', { token: await codeTo(old), password: newPassword })).status).toBe(
      200,
    )
    expect((await ada.get('/me')).status).toBe(401)
    expect(statusAndCode(await verify(code))).toEqual(INVALID_TOKEN)
    const { body } = await anonymous.post('/signin', { username: old, password: newPassword, authType: 'oauth' })
    const back = (await anonymous.get('/me', bearer(body.payload.token))).body
    expect([back.email, back.pendingEmail]).toEqual([old, null])
  })

  test('an admin sets an e-mail address at once, without a token for the old one, and cancels a pending change', async () => {
    const { ada, as, user, old, next, codeTo, profile, verify } = await createVerifiedFixture()
    await ada.post('/me', { email: `x${next}` })
    const pending = await codeTo(`x${next}`)
    expect((await as('admin').put(`/users/${user._id}`, { email: next })).status).toBe(200)
    expect(await profile()).toEqual([next, true, null])
    expect(await codeTo(old)).toBe('')
    expect(statusAndCode(await verify(pending))).toEqual(INVALID_TOKEN)
  })

  test('codes and tokens of an e-mail change get 400 INVALID_TOKEN at another tenant', async () => {
    const { ada, next, old, codeTo } = await createVerifiedFixture()
    await ada.post('/me', { email: next })
    const [code, token] = [await codeTo(next), await codeTo(old)]
    const otherTenant = await createTestTenant()
    expect(statusAndCode(await otherTenant.anonymous.post('/email/verify', { token: code }))).toEqual(INVALID_TOKEN)
    for (const wrong of [token, code, `${token}x`, 'x'])
      expect(statusAndCode(await otherTenant.anonymous.post('/email/revert', { token: wrong }))).toEqual(INVALID_TOKEN)
    const otherTenantUser = await signInForTokens(otherTenant, 'user')
    expect((await otherTenant.anonymous.get('/me', bearer(otherTenantUser.token))).status).toBe(200)
  })
})
