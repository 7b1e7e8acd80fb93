import { afterAll, expect, test } from 'bun:test'
import { issueOneTimeToken, type TokenPurpose } from '../../../src/accounts/one-time-tokens'
import { createSession } from '../../../src/accounts/sessions'
import { codeAt, decodeBase32, stepAt } from '../../../src/accounts/totp/codes'
import { config } from '../../../src/config'
import { now } from '../../../src/core/clock'
import { apiClient, callApi, statusAndCode, type TestResponse } from '../../test-tenant'
import { bearer, signInForTokens } from '../session-fixtures'
import { issueRevertToken, requests } from './route-requests'
import { createTenantFixture, password, type RouteRequest, routes, sendRequest, snapshotTenant } from './tenant-fixture'

// Who comes this often would be held back before they are turned away.
config.ATOLL_RATE_LIMITS = 'off'
afterAll(() => {
  config.ATOLL_RATE_LIMITS = 'on'
})

const device = { userAgent: 'a browser', address: '192.0.2.1' }
const [ours, theirs] = [await createTenantFixture(), await createTenantFixture()]

/** One of ours who signs in with a second factor. */
const twoFactorUser = { id: ours.users.other, emailKey: ours.email('other') }
const me = apiClient(ours.origin, bearer((await signInForTokens(ours, 'other')).token))
const code = codeAt(decodeBase32((await me.post('/me/totp')).body.secret), stepAt(now()))
const [recovery] = (await me.post('/me/totp/confirm', { code })).body.recoveryCodes

const issueToken = async (purpose: TokenPurpose, someone?: typeof twoFactorUser) => {
  const { id, emailKey } = someone ?? (await ours.someone())
  return ours.tenant.write((tx) => issueOneTimeToken(tx, purpose, id, { emailKey }))
}
const pair = await signInForTokens(ours, 'admin')

/** Everything by which somebody could come in at our tenant, if possible as an admin. */
const secrets = {
  session: (await createSession(ours.tenant, ours.users.admin, 'cookie', device)).key,
  access: pair.token,
  refresh: pair.refreshToken,
  'API token': ours.tokens.admin,
  verification: await issueToken('verification'),
  'password reset': await issueToken('passwordReset'),
  'address to have back': await issueRevertToken(ours),
  redirect: await issueToken('redirect'),
  challenge: await issueToken('secondFactor', twoFactorUser),
  recovery: recovery as string,
}

/** How a secret can be brought along. */
const carriers: Record<string, (secret: string) => Record<string, string>> = {
  'as our cookie': (secret) => ({ cookie: `atoll_${ours.id}=${secret}` }),
  'as their cookie': (secret) => ({ cookie: `atoll_${theirs.id}=${secret}` }),
  'as bearer token': bearer,
  'as API token': (secret) => ({ 'x-api-key': secret }),
}

/** One of theirs, in whose place nobody of us may act. */
const impersonationHeaders = { 'x-impersonate-user': theirs.users.user, 'x-impersonate-workspace': theirs.workspace }

/** Every way in which one of us can come to them: by the host, or by the header where that is ours. */
const attempts = Object.entries(secrets).flatMap(([kind, secret]) =>
  Object.entries(carriers).map(([how, carry], n) => ({
    name: `${kind} ${how}`,
    // A cookie counts for another tenant at no host of ours, so it comes from the caller's own machine.
    origin: n % 2 ? (how.includes('cookie') ? 'http://localhost' : ours.origin) : theirs.origin,
    headers: { ...(n % 2 && { tenant: theirs.id }), ...carry(secret) } as Record<string, string>,
  })),
)
const impersonatedAttempts = attempts
  .filter(({ name }) => /^(session|access|API token)/.test(name))
  .map((visit) => ({
    ...visit,
    name: `${visit.name}, in disguise`,
    headers: { ...visit.headers, ...impersonationHeaders },
  }))
attempts.push(...impersonatedAttempts)

/** Without headers, for where a browser is sent to is another address each time. */
const toComparable = ({ status, body }: TestResponse) => [status, body]

test('each credential is good where it was given', async () => {
  const who = async (headers: Record<string, string>) => (await ours.stranger.get('/me', headers)).body.username
  expect(await who(carriers['as our cookie']!(secrets.session))).toBe('admin')
  expect(await who(carriers['as bearer token']!(secrets.access))).toBe('admin')
  expect(await who(carriers['as API token']!(secrets['API token']))).toBe('admin')
})

/** A webhook says itself whom it is open to: those that are asked for here, to no guests. */
const isOpen = ({ access, name }: (typeof routes)[number]) => access === 'open' && !name.includes(' /api/webhooks/')
/** Which guests may ask, too. */
const FOR_GUESTS = 'POST /api/coupons/validate'
const guardedRoutes = routes.filter((route) => !isOpen(route) && route.name !== FOR_GUESTS)

test('none of them, however it is brought along, opens a route of another tenant, tells anything or changes anything', async () => {
  // They are asked for what is there, and our admin is even invited there.
  const by = { user: theirs.users.user, email: ours.email('admin'), headers: {} }
  const asked = new Map<string, RouteRequest>()
  for (const { name } of guardedRoutes) asked.set(name, (await requests[name]?.(theirs, by)) ?? {})
  const before = await snapshotTenant(theirs)
  for (const route of guardedRoutes)
    for (const { name, origin, headers } of attempts) {
      const { status, body } = await sendRequest(origin, route, asked.get(route.name)!, headers)
      expect([status, body.code], `${route.name} with ${name}`).toEqual([401, 'UNAUTHENTICATED'])
      // A batch says which of its operations is refused.
      expect(body.details).toBeOneOf([undefined, { index: 0 }])
    }
  expect(await snapshotTenant(theirs)).toEqual(before)
})

test('where guests may ask, too, what is no good is refused, or overlooked because it is none of this tenant', async () => {
  const route = routes.find(({ name }) => name === FOR_GUESTS)!
  const asked = (await requests[route.name]?.(theirs, { user: '', email: '', headers: {} })) ?? {}
  const stranger = toComparable(await sendRequest(theirs.origin, route, asked, {}))
  const answers = await Promise.all(attempts.map(({ origin, headers }) => sendRequest(origin, route, asked, headers)))
  const refused = answers.filter(({ body }) => body.code === 'UNAUTHENTICATED')
  for (const answer of answers.filter((one) => !refused.includes(one))) expect(toComparable(answer)).toEqual(stranger)
  expect(refused.length).toBeGreaterThan(answers.length / 2)
})

test('what is open to everybody answers as if they had not come along', async () => {
  for (const route of routes.filter((route) => isOpen(route) && route.method === 'GET')) {
    const asked = (await requests[route.name]?.(theirs, { user: '', email: '', headers: {} })) ?? {}
    const stranger = toComparable(await sendRequest(theirs.origin, route, asked, {}))
    for (const { name, origin, headers } of attempts)
      expect(toComparable(await sendRequest(origin, route, asked, headers)), `${route.name} with ${name}`).toEqual(
        stranger,
      )
  }
})

const credential = ours.device.get((await ours.stranger.post('/signin/passkey/options')).body)

/** What open routes take instead of a credential, and what they say to who has none that is good. */
const tokenRoutes: Record<string, [body: (secret: string) => object, refusal: [number, string]]> = {
  'POST /api/signin': [(challenge) => ({ challenge, code: recovery }), [401, 'INVALID_CHALLENGE']],
  'POST /api/signin/passkey/options': [(challenge) => ({ challenge }), [401, 'INVALID_CHALLENGE']],
  'POST /api/signin/passkey/': [(challenge) => ({ challenge, credential }), [401, 'INVALID_CHALLENGE']],
  'POST /api/token/refresh': [(refreshToken) => ({ refreshToken }), [401, 'UNAUTHENTICATED']],
  'POST /api/email/verify': [(token) => ({ token }), [400, 'INVALID_TOKEN']],
  'POST /api/email/revert': [(token) => ({ token }), [400, 'INVALID_TOKEN']],
  'POST /api/password/reset': [(token) => ({ token, password }), [400, 'INVALID_TOKEN']],
  'POST /api/auth/callback': [(rt) => ({ rt }), [401, 'INVALID_REDIRECT_TOKEN']],
}
/** Open to everybody alike, whatever they bring. */
const forAll = [...['POST /api/signup', 'POST /api/password/forgot'], 'POST /api/payments/webhooks/:providerKind']

test('what is given once is worth nothing to another tenant, wherever it is sent', async () => {
  const open = routes.filter((route) => isOpen(route) && route.method !== 'GET')
  expect(open.map(({ name }) => name).sort()).toEqual([...Object.keys(tokenRoutes), ...forAll].sort())
  const before = await snapshotTenant(theirs)
  for (const [name, [body, refused]] of Object.entries(tokenRoutes)) {
    const [method = '', path] = name.split(' ')
    for (const [kind, secret] of Object.entries(secrets)) {
      const answer = await callApi(method, `${theirs.origin}${path}`, {
        // A long one fits no shape, and is no less a stranger's.
        body: body(secret.slice(0, 200)),
        headers: carriers['as bearer token']!(secret),
      })
      expect(statusAndCode(answer), `${name} with ${kind}`).toEqual(refused)
      expect(answer.headers.has('set-cookie')).toBe(false)
    }
  }
  expect(await snapshotTenant(theirs)).toEqual(before)
})

test('an invitation is worth nothing to another tenant, also to who has the same address there', async () => {
  const email = ours.email('guest')
  const workspace = await ours.inviting(email)
  const guest = (await theirs.as('admin').post('/users', { username: 'guest', email })).body._id
  const asGuest = theirs.as('admin').with({ 'x-impersonate-user': guest })
  expect((await asGuest.get('/invites')).body).toEqual([])
  for (const kind of ['accept', 'decline'])
    expect(statusAndCode(await asGuest.post('/invites', { workspace, kind }))).toEqual([404, 'INVITE_NOT_FOUND'])
})

test('an admin acts as nobody of another tenant, and in no workspace of theirs', async () => {
  const as = (headers: Record<string, string>) => ours.as('admin').get('/me', headers)
  expect(statusAndCode(await as(impersonationHeaders))).toEqual([404, 'USER_NOT_FOUND'])
  const here = { 'x-impersonate-user': ours.users.user, 'x-impersonate-workspace': theirs.workspace }
  expect(statusAndCode(await as(here))).toEqual([404, 'WORKSPACE_NOT_FOUND'])
})

test('after all of that each is as good as before where it was given', async () => {
  const sent = async (name: string, body: object) => (await ours.stranger.post(name, body)).status
  const { 'password reset': reset, verification, redirect, refresh, challenge } = secrets
  expect(await sent('/token/refresh', { refreshToken: refresh })).toBe(200)
  expect(await sent('/email/verify', { token: verification })).toBe(200)
  expect(await sent('/password/reset', { token: reset, password })).toBe(200)
  expect(await sent('/email/revert', { token: secrets['address to have back'] })).toBe(200)
  expect(await sent('/auth/callback', { rt: redirect })).toBe(200)
  expect(await sent('/signin', { challenge, code: secrets.recovery })).toBe(200)
})
