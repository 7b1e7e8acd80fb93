import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test'
import { issue } from '../../src/accounts/tokens'
import { bytesOf, codeAt, stepAt } from '../../src/accounts/totp/codes'
import { config } from '../../src/config'
import { now } from '../../src/core/clock'
import { runDue } from '../../src/jobs/runner'
import { type Client, house, refusal } from '../house'
import { postbox } from '../outside/postbox'
import { codeIn, inhabited, password } from './mail/kit'
import { backToNow, bearer, DAY, later, MINUTE, pairOf, signedIn } from './people'

const PROOF = [403, 'PROOF_REQUIRED']
const FORBIDDEN = [403, 'FORBIDDEN']
const WRONG = [403, 'INVALID_CREDENTIALS']
const TOKEN = [400, 'INVALID_TOKEN']
const fresh = 'battery staple'

afterEach(backToNow)

/** What needs proof, by what it is called. */
const guarded: Record<string, (me: Client, proof?: object) => ReturnType<Client['post']>> = {
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
    const { ada } = await inhabited()
    later(11 * MINUTE)
    const refused = await attempt(ada)
    expect([...refusal(refused), refused.body.details]).toEqual([...PROOF, { by: 'currentPassword' }])
    expect(refusal(await attempt(ada, { currentPassword: 'wrong horse' }))).toEqual(WRONG)
    expect((await attempt(ada, { currentPassword: password })).status).toBe(succeeds)
    const { stranger } = await inhabited()
    const { headers } = await stranger.post('/signin', { username: 'ada', password })
    const anew = stranger.with({ cookie: headers.get('set-cookie')!.split(';')[0]! })
    expect((await attempt(anew)).status).toBe(succeeds)
  })

  test('is given neither to an API token nor to an admin in the place of the user', async () => {
    const own = await house()
    const { token } = await issue(own.tenant, own.users.user, { nickname: 'x', scopes: ['accounts:write'] })
    const before = (await own.as('user').get('/me')).body
    for (const me of [own.as('user'), own.stranger.with({ 'x-api-key': token })])
      expect(refusal(await attempt(me))).toEqual(FORBIDDEN)
    const admin = await signedIn(own, 'admin')
    expect(refusal(await attempt(admin.with({ 'x-impersonate-user': own.users.user })))).toEqual(FORBIDDEN)
    expect((await own.as('user').get('/me')).body).toEqual(before)
  })
})

describe('proof', () => {
  test('is a code for who has a second factor; their password is none', async () => {
    const { ada } = await inhabited()
    const { secret } = (await ada.post('/me/totp')).body
    const code = () => codeAt(bytesOf(secret), stepAt(now()))
    await ada.post('/me/totp/confirm', { code: code() })
    later(11 * MINUTE)
    const refused = await ada.post('/me', { username: 'countess', currentPassword: password })
    expect([...refusal(refused), refused.body.details]).toEqual([...PROOF, { by: 'code' }])
    expect(refusal(await ada.post('/me', { username: 'countess', code: '000000' }))).toEqual([403, 'INVALID_CODE'])
    expect((await ada.post('/me', { username: 'countess', code: code() })).body.username).toBe('countess')
  })

  test('is not needed to send a profile back as it was read, whoever sends it', async () => {
    const { ada, as, user, tenant } = await inhabited()
    later(11 * MINUTE)
    const { body } = await ada.get('/me')
    const sent = await ada.post('/me', { ...body, firstName: 'Augusta' })
    expect([sent.status, sent.body.firstName]).toEqual([200, 'Augusta'])
    const { token } = await issue(tenant, user._id, { nickname: 'x' })
    expect((await ada.with({ authorization: '', 'x-api-key': token }).post('/me', body)).status).toBe(200)
    const impersonating = as('admin').with({ 'x-impersonate-user': user._id })
    expect((await impersonating.post('/me', body)).status).toBe(200)
  })

  test('is asked of admins for what they themselves sign in with, and for nothing of others', async () => {
    const own = await house()
    const { body } = await own.stranger.post('/signup', { username: 'root', password, authType: 'oauth' })
    const [_id, root] = [body.payload.user._id, own.stranger.with(bearer(body.payload.token))]
    await own.as('admin').put(`/users/${_id}`, { roles: ['admin'] })
    const at = `/users/${_id}`
    later(11 * MINUTE)
    for (const change of [{ username: 'chief' }, { email: 'chief@x.test' }])
      expect(refusal(await root.put(at, change))).toEqual(PROOF)
    expect(refusal(await root.put(at, { password: fresh }))).toEqual([400, 'INVALID_INPUT'])
    expect(refusal(await root.put(at, { password: fresh, currentPassword: 'wrong horse' }))).toEqual(WRONG)
    expect((await root.put(at, { ...(await root.get(at)).body, firstName: 'Root' })).status).toBe(200)
    const proven = { username: 'chief', password: fresh, currentPassword: password }
    expect((await root.put(at, proven)).body.username).toBe('chief')
    expect((await own.stranger.post('/signin', { username: 'chief', password: fresh })).status).toBe(200)
    expect((await root.put(`/users/${own.users.user}`, { username: 'guest', password })).body.username).toBe('guest')
    // An API token of theirs stays below that, too.
    const admin = own.as('admin')
    for (const change of [{ username: 'x' }, { email: 'x@x.test' }, { password: fresh }])
      for (const user of ['', own.users.admin, _id]) {
        const guise = { 'x-impersonate-user': user }
        expect(refusal(await admin.put(`/users/${own.users.admin}`, change, guise))).toEqual(FORBIDDEN)
      }
  })
})

describe('a new password', () => {
  test('ends all API tokens as well where endTokens says so', async () => {
    const { ada, stranger, token } = await inhabited()
    const tokenOf = async () => (await ada.post('/me/api-tokens', { nickname: 'x' })).body.token as string
    const statusOf = async (key: string) => (await stranger.get('/me', { 'x-api-key': key })).status
    const first = await tokenOf()
    await ada.post('/me', { password: fresh, currentPassword: password })
    expect(await statusOf(first)).toBe(200)
    await ada.post('/me', { password, currentPassword: fresh, endTokens: true })
    expect(await statusOf(first)).toBe(401)
    expect((await stranger.get('/me', bearer(token))).status).toBe(200)
    expect(refusal(await ada.post('/me', { endTokens: true }))).toEqual([400, 'INVALID_INPUT'])
    expect((await ada.post('/me', { endTokens: false })).status).toBe(200)
  })

  test('ends them where an admin sets it and says so, and only those of that user', async () => {
    const { as, users } = await house()
    expect((await as('user').get('/me')).status).toBe(200)
    await as('admin').put(`/users/${users.user}`, { password: fresh })
    expect((await as('user').get('/me')).status).toBe(200)
    await as('admin').put(`/users/${users.user}`, { password, endTokens: true })
    expect((await as('user').get('/me')).status).toBe(401)
    expect((await as('other').get('/me')).status).toBe(200)
  })

  test('is set without a current one by who has none and has just signed in, but not by their API token', async () => {
    const own = await house()
    expect(refusal(await own.as('user').post('/me', { password }))).toEqual(FORBIDDEN)
    const user = await signedIn(own, 'user')
    expect((await user.post('/me', { password })).status).toBe(200)
    expect((await own.stranger.post('/signin', { username: 'user', password })).status).toBe(200)
  })
})

describe('where mail is sent', () => {
  let box: Awaited<ReturnType<typeof postbox>>
  beforeAll(async () => {
    box = await postbox()
    config.ATOLL_SMTP_URL = box.url
  })
  afterAll(async () => {
    config.ATOLL_SMTP_URL = ''
    await box.close()
  })

  /** Somebody with a verified address, and what was mailed to whom. */
  async function verified() {
    const [old, next] = [`old-${crypto.randomUUID()}@x.test`, `new-${crypto.randomUUID()}@x.test`]
    const home = await inhabited(old)
    const { ada, stranger, tenant } = home
    /** The code in the latest mail to an address. */
    const codeTo = async (to: string) => {
      await runDue(tenant)
      return codeIn(box.to(to).at(-1)?.text ?? '')
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
    expect(refusal(await verify(code))).toEqual(TOKEN)
  })

  test('the code can be asked for again, and only the latest wish counts', async () => {
    const { ada, old, next, codeTo, profile, verify } = await verified()
    await ada.post('/me', { email: next })
    const first = await codeTo(next)
    await ada.post('/me', { email: `x${next}` })
    expect(refusal(await verify(first))).toEqual(TOKEN)
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
    expect(refusal(await verify(code))).toEqual([409, 'EMAIL_EXISTS'])
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
    expect(refusal(await revert(token))).toEqual(TOKEN)
    expect(refusal(await verify(code))).toEqual(TOKEN)
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
    await ada.post('/me', { password: fresh, currentPassword: password })
    // Nobody gets the old address or its name meanwhile.
    for (const person of [{ username: 'eve', email: old }, { username: old.toUpperCase() }])
      expect((await stranger.post('/signup', { ...person, password })).status).toBe(409)
    later(6 * DAY)
    expect((await revert(token)).status).toBe(200)
    expect(refusal(await revert(later1))).toEqual(TOKEN)
    expect([await signIn(`x${next}`, fresh), await signIn(old, fresh)]).toEqual([401, 200])
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
    later(7 * DAY + MINUTE)
    expect(refusal(await revert(token))).toEqual(TOKEN)
    expect((await stranger.post('/signup', { username: 'eve', email: old, password })).status).toBe(201)
  })

  test('an address that nobody verified has nothing to take back', async () => {
    const first = `typo-${crypto.randomUUID()}@x.test`
    const { ada, tenant } = await inhabited(first)
    await ada.post('/me', { email: `right-${first}` })
    await runDue(tenant)
    const notice = box.to(first).find(({ text }) => text.includes('another e-mail address'))!
    expect(codeIn(notice.text)).toBe('')
    expect(await tenant.db.ask('select count(*) from email_changes')).toEqual([[0]])
  })

  test('a reset of the password ends a pending change, and every session', async () => {
    const { ada, old, next, codeTo, verify, stranger } = await verified()
    await ada.post('/me', { email: next })
    const code = await codeTo(next)
    await stranger.post('/password/forgot', { email: old })
    expect((await stranger.post('/password/reset', { token: await codeTo(old), password: fresh })).status).toBe(200)
    expect((await ada.get('/me')).status).toBe(401)
    expect(refusal(await verify(code))).toEqual(TOKEN)
    const { body } = await stranger.post('/signin', { username: old, password: fresh, authType: 'oauth' })
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
    expect(refusal(await verify(pending))).toEqual(TOKEN)
  })

  test('a change is no other tenant’s, nor is what takes it back', async () => {
    const { ada, next, old, codeTo } = await verified()
    await ada.post('/me', { email: next })
    const [code, token] = [await codeTo(next), await codeTo(old)]
    const abroad = await house()
    expect(refusal(await abroad.stranger.post('/email/verify', { token: code }))).toEqual(TOKEN)
    for (const wrong of [token, code, `${token}x`, 'x'])
      expect(refusal(await abroad.stranger.post('/email/revert', { token: wrong }))).toEqual(TOKEN)
    const abroadUser = await pairOf(abroad, 'user')
    expect((await abroad.stranger.get('/me', bearer(abroadUser.token))).status).toBe(200)
  })
})
