import { afterAll, afterEach, beforeAll, describe, expect, spyOn, test } from 'bun:test'
import { issueApiToken } from '../../src/accounts/api-tokens'
import { codeAt, decodeBase32, stepAt } from '../../src/accounts/totp/codes'
import { config } from '../../src/config'
import { now } from '../../src/core/clock'
import { runDueJobs } from '../../src/jobs/runner'
import { startSmtpServer } from '../fakes/smtp-server'
import { type ApiClient, createTestTenant, statusAndCode, type TestUser } from '../test-tenant'
import { createMailFixture, extractCode, password } from './mail/mail-fixtures'
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
const FORBIDDEN = [403, 'FORBIDDEN']
const WRONG_PASSWORD = [403, 'INVALID_CREDENTIALS']
const INVALID_TOKEN = [400, 'INVALID_TOKEN']
const newPassword = 'battery staple'

afterEach(resetClock)

/** What needs proof, by what it is called. */
const guarded: Record<string, (me: ApiClient, proof?: object) => ReturnType<ApiClient['post']>> = {
  'another e-mail address': (me, proof) => me.post('/me', { email: `e${crypto.randomUUID()}@x.test`, ...proof }),
  'no e-mail address': (me, proof) => me.post('/me', { email: '', ...proof }),
  'another username': (me, proof) => me.post('/me', { username: `n${crypto.randomUUID()}`, ...proof }),
  'a second factor': (me, proof) => me.post('/me/totp', proof),
  'an API token': (me, proof) => me.post('/me/api-tokens', { nickname: 'x', ...proof }),
}

describe.each(Object.keys(guarded))('%s', (what) => {
  const attempt = guarded[what]!
  const succeeds = what === 'an API token' ? 201 : 200

  test('is given within ten minutes of a sign-in, and needs the current password after that', async () => {
    const { ada } = await createMailFixture()
    advanceClock(11 * MINUTE)
    const refused = await attempt(ada)
    expect([...statusAndCode(refused), refused.body.details]).toEqual([...PROOF_REQUIRED, { by: 'currentPassword' }])
    expect(statusAndCode(await attempt(ada, { currentPassword: 'wrong horse' }))).toEqual(WRONG_PASSWORD)
    expect((await attempt(ada, { currentPassword: password })).status).toBe(succeeds)
    const { stranger } = await createMailFixture()
    const { headers } = await stranger.post('/signin', { username: 'ada', password })
    const anew = stranger.with({ cookie: headers.get('set-cookie')!.split(';')[0]! })
    expect((await attempt(anew)).status).toBe(succeeds)
  })

  test('is given neither to an API token nor to an admin in the place of the user', async () => {
    const own = await createTestTenant()
    const { token } = await issueApiToken(own.tenant, own.users.user, { nickname: 'x', scopes: ['accounts:write'] })
    const before = (await own.as('user').get('/me')).body
    for (const me of [own.as('user'), own.stranger.with({ 'x-api-key': token })])
      expect(statusAndCode(await attempt(me))).toEqual(FORBIDDEN)
    const admin = await createSignedInClient(own, 'admin')
    expect(statusAndCode(await attempt(admin.with({ 'x-impersonate-user': own.users.user })))).toEqual(FORBIDDEN)
    expect((await own.as('user').get('/me')).body).toEqual(before)
  })
})

describe('proof', () => {
  test('is a code for who has a second factor; their password is none', async () => {
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

  test('is not needed to send a profile back as it was read, whoever sends it', async () => {
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

  test('is asked of admins for what they themselves sign in with, and for nothing of others', async () => {
    const own = await createTestTenant()
    const { body } = await own.stranger.post('/signup', { username: 'root', password, authType: 'oauth' })
    const [_id, root] = [body.payload.user._id, own.stranger.with(bearer(body.payload.token))]
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
    expect((await own.stranger.post('/signin', { username: 'chief', password: newPassword })).status).toBe(200)
    expect((await root.put(`/users/${own.users.user}`, { username: 'guest', password })).body.username).toBe('guest')
    // An API token of theirs stays below that, too.
    const admin = own.as('admin')
    for (const change of [{ username: 'x' }, { email: 'x@x.test' }, { password: newPassword }])
      for (const user of ['', own.users.admin, _id]) {
        const guise = { 'x-impersonate-user': user }
        expect(statusAndCode(await admin.put(`/users/${own.users.admin}`, change, guise))).toEqual(FORBIDDEN)
      }
  })
})

describe('a new password together with a new username and e-mail address', () => {
  /** Somebody without a password, as who comes by a provider, who has a second factor and signed in a while ago. */
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

  test('is set by one code where there was no password before, in the profile as at /users', async () => {
    const atProfile = await createPasswordlessFixture('user')
    const changed = await atProfile.me.post('/me', atProfile.wanted())
    expect([changed.status, changed.body.username]).toEqual([200, 'countess'])
    const asAdmin = await createPasswordlessFixture('admin')
    const changedByAdmin = await asAdmin.me.put(`/users/${asAdmin.users.admin}`, asAdmin.wanted())
    expect([changedByAdmin.status, changedByAdmin.body.username]).toEqual([200, 'countess'])
    for (const { stranger } of [atProfile, asAdmin])
      expect(statusAndCode(await stranger.post('/signin', { username: 'countess', password }))).toEqual([
        401,
        'SECOND_FACTOR_REQUIRED',
      ])
  })

  test('that is too short leaves the code for the next attempt', async () => {
    const { me, wanted } = await createPasswordlessFixture('user')
    const sent = wanted()
    expect(statusAndCode(await me.post('/me', { ...sent, password: 'short' }))).toEqual([400, 'INVALID_INPUT'])
    expect((await me.post('/me', sent)).status).toBe(200)
  })

  test('has the current password verified once', async () => {
    const { ada } = await createMailFixture()
    advanceClock(11 * MINUTE)
    const verify = spyOn(Bun.password, 'verify')
    const changed = await ada.post('/me', { username: 'countess', password: newPassword, currentPassword: password })
    const { length } = verify.mock.calls
    verify.mockRestore()
    expect([changed.status, length]).toEqual([200, 1])
  })

  test('needs a code and the current password from who has both', async () => {
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
  test('ends all API tokens as well where endTokens says so', async () => {
    const { ada, stranger, token } = await createMailFixture()
    const tokenOf = async () => (await ada.post('/me/api-tokens', { nickname: 'x' })).body.token as string
    const statusOf = async (key: string) => (await stranger.get('/me', { 'x-api-key': key })).status
    const first = await tokenOf()
    await ada.post('/me', { password: newPassword, currentPassword: password })
    expect(await statusOf(first)).toBe(200)
    await ada.post('/me', { password, currentPassword: newPassword, endTokens: true })
    expect(await statusOf(first)).toBe(401)
    expect((await stranger.get('/me', bearer(token))).status).toBe(200)
    expect(statusAndCode(await ada.post('/me', { endTokens: true }))).toEqual([400, 'INVALID_INPUT'])
    expect((await ada.post('/me', { endTokens: false })).status).toBe(200)
  })

  test('ends them where an admin sets it and says so, and only those of that user', async () => {
    const { as, users } = await createTestTenant()
    expect((await as('user').get('/me')).status).toBe(200)
    await as('admin').put(`/users/${users.user}`, { password: newPassword })
    expect((await as('user').get('/me')).status).toBe(200)
    await as('admin').put(`/users/${users.user}`, { password, endTokens: true })
    expect((await as('user').get('/me')).status).toBe(401)
    expect((await as('other').get('/me')).status).toBe(200)
  })

  test('is set without a current one by who has none and has just signed in, but not by their API token', async () => {
    const own = await createTestTenant()
    expect(statusAndCode(await own.as('user').post('/me', { password }))).toEqual(FORBIDDEN)
    const user = await createSignedInClient(own, 'user')
    expect((await user.post('/me', { password })).status).toBe(200)
    expect((await own.stranger.post('/signin', { username: 'user', password })).status).toBe(200)
  })
})

describe('where mail is sent', () => {
  let box: Awaited<ReturnType<typeof startSmtpServer>>
  beforeAll(async () => {
    box = await startSmtpServer()
    config.ATOLL_SMTP_URL = box.url
  })
  afterAll(async () => {
    config.ATOLL_SMTP_URL = ''
    await box.close()
  })

  /** Somebody with a verified address, and what was mailed to whom. */
  async function verified() {
    const [old, next] = [`old-${crypto.randomUUID()}@x.test`, `new-${crypto.randomUUID()}@x.test`]
    const home = await createMailFixture(old)
    const { ada, stranger, tenant } = home
    /** The code in the latest mail to an address. */
    const codeTo = async (to: string) => {
      await runDueJobs(tenant)
      return extractCode(box.to(to).at(-1)?.text ?? '')
    }
    expect((await stranger.post('/email/verify', { token: await codeTo(old) })).status).toBe(200)
    const profile = async () => {
      const { email, emailVerified, pendingEmail } = (await ada.get('/me')).body
      return [email, emailVerified, pendingEmail]
    }
    const verify = async (token: string) => stranger.post('/email/verify', { token })
    const revert = async (token: string) => stranger.post('/email/revert', { token })
    const signIn = async (username: string, word = password) =>
      (await stranger.post('/signin', { username, password: word })).status
    return { ...home, old, next, codeTo, profile, verify, revert, signIn }
  }

  test('another e-mail address is pending until its code came back', async () => {
    const { ada, old, next, codeTo, profile, verify, signIn } = await verified()
    const asked = await ada.post('/me', { email: next })
    expect(asked.body).toMatchObject({ email: old, emailVerified: true, pendingEmail: next })
    expect([await signIn(old), await signIn(next)]).toEqual([200, 401])
    const code = await codeTo(next)
    // Another change of the profile, sent back as it was read, leaves it pending.
    expect((await ada.post('/me', { ...(await ada.get('/me')).body, firstName: 'Ada' })).status).toBe(200)
    expect(await profile()).toEqual([old, true, next])
    expect((await verify(code)).status).toBe(200)
    expect(await profile()).toEqual([next, true, null])
    expect([await signIn(old), await signIn(next)]).toEqual([401, 200])
    expect(statusAndCode(await verify(code))).toEqual(INVALID_TOKEN)
  })

  test('the code can be asked for again, and only the latest wish counts', async () => {
    const { ada, old, next, codeTo, profile, verify } = await verified()
    await ada.post('/me', { email: next })
    const first = await codeTo(next)
    await ada.post('/me', { email: `x${next}` })
    expect(statusAndCode(await verify(first))).toEqual(INVALID_TOKEN)
    expect(await profile()).toEqual([old, true, `x${next}`])
    expect((await ada.post('/email/verification')).status).toBe(200)
    expect((await verify(await codeTo(`x${next}`))).status).toBe(200)
    expect(await profile()).toEqual([`x${next}`, true, null])
  })

  test('an address that somebody else has taken meanwhile stays theirs', async () => {
    const { ada, stranger, old, next, codeTo, profile, verify } = await verified()
    await ada.post('/me', { email: next })
    const code = await codeTo(next)
    expect((await stranger.post('/signup', { username: 'bob', email: next, password })).status).toBe(201)
    expect(statusAndCode(await verify(code))).toEqual([409, 'EMAIL_EXISTS'])
    expect(await profile()).toEqual([old, true, next])
  })

  test('the old address is told at once, and ends the wish before it is confirmed', async () => {
    const { ada, old, next, codeTo, profile, verify, revert, stranger } = await verified()
    const key = (await ada.post('/me/api-tokens', { nickname: 'theirs' })).body.token
    await ada.post('/me', { email: next })
    const [code, token] = [await codeTo(next), await codeTo(old)]
    const notice = box.to(old).at(-1)!
    expect(notice.text).toContain('takes the place of this one as soon as it is confirmed')
    expect(notice.text).not.toContain(next)
    expect((await revert(token)).body).toEqual({ success: true })
    expect(statusAndCode(await revert(token))).toEqual(INVALID_TOKEN)
    expect(statusAndCode(await verify(code))).toEqual(INVALID_TOKEN)
    expect((await ada.get('/me')).status).toBe(401)
    expect((await stranger.get('/me', { 'x-api-key': key })).status).toBe(401)
    const { body } = await stranger.post('/signin', { username: old, password, authType: 'oauth' })
    const back = (await stranger.get('/me', bearer(body.payload.token))).body
    expect([back.email, back.emailVerified, back.pendingEmail]).toEqual([old, true, null])
    expect(await profile().catch(() => [])).toEqual([undefined, undefined, undefined])
  })

  test('the old address has the account back within seven days, whatever was changed after', async () => {
    const { ada, old, next, codeTo, verify, revert, signIn, stranger } = await verified()
    await ada.post('/me', { email: next })
    const token = await codeTo(old)
    await verify(await codeTo(next))
    await ada.post('/me', { email: `x${next}` })
    const later1 = await codeTo(next)
    await verify(await codeTo(`x${next}`))
    await ada.post('/me', { password: newPassword, currentPassword: password })
    // Nobody gets the old address or its name meanwhile.
    for (const person of [{ username: 'eve', email: old }, { username: old.toUpperCase() }])
      expect((await stranger.post('/signup', { ...person, password })).status).toBe(409)
    advanceClock(6 * DAY)
    expect((await revert(token)).status).toBe(200)
    expect(statusAndCode(await revert(later1))).toEqual(INVALID_TOKEN)
    expect([await signIn(`x${next}`, newPassword), await signIn(old, newPassword)]).toEqual([401, 200])
    // Its owner chooses a new password by that address again.
    await stranger.post('/password/forgot', { email: old })
    expect((await stranger.post('/password/reset', { token: await codeTo(old), password })).status).toBe(200)
    expect(await signIn(old)).toBe(200)
  })

  test('after seven days the old address is anybody’s', async () => {
    const { ada, old, next, codeTo, verify, revert, stranger } = await verified()
    await ada.post('/me', { email: next })
    const token = await codeTo(old)
    await verify(await codeTo(next))
    advanceClock(7 * DAY + MINUTE)
    expect(statusAndCode(await revert(token))).toEqual(INVALID_TOKEN)
    expect((await stranger.post('/signup', { username: 'eve', email: old, password })).status).toBe(201)
  })

  test('an address that nobody verified has nothing to take back', async () => {
    const first = `typo-${crypto.randomUUID()}@x.test`
    const { ada, tenant } = await createMailFixture(first)
    await ada.post('/me', { email: `right-${first}` })
    await runDueJobs(tenant)
    const notice = box.to(first).find(({ text }) => text.includes('another e-mail address'))!
    expect(extractCode(notice.text)).toBe('')
    expect(await tenant.db.query('select count(*) from email_changes')).toEqual([[0]])
  })

  test('a reset of the password ends a pending change, and every session', async () => {
    const { ada, old, next, codeTo, verify, stranger } = await verified()
    await ada.post('/me', { email: next })
    const code = await codeTo(next)
    await stranger.post('/password/forgot', { email: old })
    expect((await stranger.post('/password/reset', { token: await codeTo(old), password: newPassword })).status).toBe(
      200,
    )
    expect((await ada.get('/me')).status).toBe(401)
    expect(statusAndCode(await verify(code))).toEqual(INVALID_TOKEN)
    const { body } = await stranger.post('/signin', { username: old, password: newPassword, authType: 'oauth' })
    const back = (await stranger.get('/me', bearer(body.payload.token))).body
    expect([back.email, back.pendingEmail]).toEqual([old, null])
  })

  test('an admin sets another address at once, which nobody takes back', async () => {
    const { ada, as, user, old, next, codeTo, profile, verify } = await verified()
    await ada.post('/me', { email: `x${next}` })
    const pending = await codeTo(`x${next}`)
    expect((await as('admin').put(`/users/${user._id}`, { email: next })).status).toBe(200)
    expect(await profile()).toEqual([next, true, null])
    expect(await codeTo(old)).toBe('')
    expect(statusAndCode(await verify(pending))).toEqual(INVALID_TOKEN)
  })

  test('a change is no other tenant’s, nor is what takes it back', async () => {
    const { ada, next, old, codeTo } = await verified()
    await ada.post('/me', { email: next })
    const [code, token] = [await codeTo(next), await codeTo(old)]
    const abroad = await createTestTenant()
    expect(statusAndCode(await abroad.stranger.post('/email/verify', { token: code }))).toEqual(INVALID_TOKEN)
    for (const wrong of [token, code, `${token}x`, 'x'])
      expect(statusAndCode(await abroad.stranger.post('/email/revert', { token: wrong }))).toEqual(INVALID_TOKEN)
    const abroadUser = await signInForTokens(abroad, 'user')
    expect((await abroad.stranger.get('/me', bearer(abroadUser.token))).status).toBe(200)
  })
})
