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

// Rate limits would reject these requests before the authentication does.
config.ATOLL_RATE_LIMITS = 'off'
afterAll(() => {
  config.ATOLL_RATE_LIMITS = 'on'
})

const device = { userAgent: 'a browser', address: '192.0.2.1' }
const [ours, theirs] = [await createTenantFixture(), await createTenantFixture()]

/** A user of our tenant with TOTP. */
const twoFactorUser = { id: ours.users.other, emailKey: ours.email('other') }
const me = apiClient(ours.origin, bearer((await signInForTokens(ours, 'other')).token))
const code = codeAt(decodeBase32((await me.post('/me/totp')).body.secret), stepAt(now()))
const [recovery] = (await me.post('/me/totp/confirm', { code })).body.recoveryCodes

const issueToken = async (purpose: TokenPurpose, someone?: typeof twoFactorUser) => {
  const { id, emailKey } = someone ?? (await ours.someone())
  return ours.tenant.write((tx) => issueOneTimeToken(tx, purpose, id, { emailKey }))
}
const pair = await signInForTokens(ours, 'admin')

/** Every kind of credential of our tenant, of an admin where possible. */
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

/** The ways to send a secret. */
const carriers: Record<string, (secret: string) => Record<string, string>> = {
  'as our cookie': (secret) => ({ cookie: `atoll_${ours.id}=${secret}` }),
  'as their cookie': (secret) => ({ cookie: `atoll_${theirs.id}=${secret}` }),
  'as bearer token': bearer,
  'as API token': (secret) => ({ 'x-api-key': secret }),
}

/** Headers that impersonate a user of their tenant. */
const impersonationHeaders = { 'x-impersonate-user': theirs.users.user, 'x-impersonate-workspace': theirs.workspace }

/** Every credential of ours, sent in every way to their tenant: by their host, or by the tenant header at ours. */
const attempts = Object.entries(secrets).flatMap(([kind, secret]) =>
  Object.entries(carriers).map(([how, carry], n) => ({
    name: `${kind} ${how}`,
    // Our hosts reject a cookie for another tenant, so it is sent to localhost.
    origin: n % 2 ? (how.includes('cookie') ? 'http://localhost' : ours.origin) : theirs.origin,
    headers: { ...(n % 2 && { tenant: theirs.id }), ...carry(secret) } as Record<string, string>,
  })),
)
const impersonatedAttempts = attempts
  .filter(({ name }) => /^(session|access|API token)/.test(name))
  .map((attempt) => ({
    ...attempt,
    name: `${attempt.name}, with impersonation`,
    headers: { ...attempt.headers, ...impersonationHeaders },
  }))
attempts.push(...impersonatedAttempts)

/** Headers are left out because redirects differ each time. */
const toComparable = ({ status, body }: TestResponse) => [status, body]

test('each credential is accepted at its own tenant', async () => {
  const usernameBy = async (headers: Record<string, string>) => (await ours.anonymous.get('/me', headers)).body.username
  expect(await usernameBy(carriers['as our cookie']!(secrets.session))).toBe('admin')
  expect(await usernameBy(carriers['as bearer token']!(secrets.access))).toBe('admin')
  expect(await usernameBy(carriers['as API token']!(secrets['API token']))).toBe('admin')
})

/** Integrations decide who may call their webhooks; those of this test admit no guests. */
const isOpen = ({ access, name }: (typeof routes)[number]) => access === 'open' && !name.includes(' /api/webhooks/')
/** The guarded route that admits guests, too. */
const FOR_GUESTS = 'POST /api/coupons/validate'
const guardedRoutes = routes.filter((route) => !isOpen(route) && route.name !== FOR_GUESTS)

test('a credential of one tenant, however it is sent, gets 401 at every guarded route of another and changes nothing', async () => {
  // The requests name existing resources, and our admin is even invited there.
  const requester = { user: theirs.users.user, email: ours.email('admin'), headers: {} }
  const requestsByRoute = new Map<string, RouteRequest>()
  for (const { name } of guardedRoutes) requestsByRoute.set(name, (await requests[name]?.(theirs, requester)) ?? {})
  const before = await snapshotTenant(theirs)
  for (const route of guardedRoutes)
    for (const { name, origin, headers } of attempts) {
      const { status, body } = await sendRequest(origin, route, requestsByRoute.get(route.name)!, headers)
      expect([status, body.code], `${route.name} with ${name}`).toEqual([401, 'UNAUTHENTICATED'])
      // A batch returns the index of the rejected operation.
      expect(body.details).toBeOneOf([undefined, { index: 0 }])
    }
  expect(await snapshotTenant(theirs)).toEqual(before)
})

test('POST /api/coupons/validate rejects a foreign credential with 401 or treats its caller as anonymous', async () => {
  const route = routes.find(({ name }) => name === FOR_GUESTS)!
  const routeRequest = (await requests[route.name]?.(theirs, { user: '', email: '', headers: {} })) ?? {}
  const anonymousResponse = toComparable(await sendRequest(theirs.origin, route, routeRequest, {}))
  const answers = await Promise.all(
    attempts.map(({ origin, headers }) => sendRequest(origin, route, routeRequest, headers)),
  )
  const refused = answers.filter(({ body }) => body.code === 'UNAUTHENTICATED')
  for (const answer of answers.filter((one) => !refused.includes(one)))
    expect(toComparable(answer)).toEqual(anonymousResponse)
  expect(refused.length).toBeGreaterThan(answers.length / 2)
})

test('open routes respond to foreign credentials as to anonymous requests', async () => {
  for (const route of routes.filter((route) => isOpen(route) && route.method === 'GET')) {
    const routeRequest = (await requests[route.name]?.(theirs, { user: '', email: '', headers: {} })) ?? {}
    const anonymousResponse = toComparable(await sendRequest(theirs.origin, route, routeRequest, {}))
    for (const { name, origin, headers } of attempts)
      expect(
        toComparable(await sendRequest(origin, route, routeRequest, headers)),
        `${route.name} with ${name}`,
      ).toEqual(anonymousResponse)
  }
})

const credential = ours.device.get((await ours.anonymous.post('/signin/passkey/options')).body)

/** The body by which an open route takes a token, and its response to an invalid token. */
const tokenRoutes: Record<string, [body: (secret: string) => object, refusal: [number, string]]> = {
  'POST /api/signin': [(challenge) => ({ challenge, code: recovery }), [401, 'INVALID_CHALLENGE']],
  'POST /api/signin/passkey/options': [(challenge) => ({ challenge }), [401, 'INVALID_CHALLENGE']],
  'POST /api/signin/passkey/': [(challenge) => ({ challenge, credential }), [401, 'INVALID_CHALLENGE']],
  'POST /api/token/refresh': [(refreshToken) => ({ refreshToken }), [401, 'UNAUTHENTICATED']],
  'POST /api/email/verify': [(token) => ({ token }), [400, 'INVALID_TOKEN']],
  'POST /api/email/revert': [(token) => ({ token }), [400, 'INVALID_TOKEN']],
  'POST /api/password/reset': [(token) => ({ token, password }), [400, 'INVALID_TOKEN']],
  'POST /api/setup': [(token) => ({ token, username: 'eve', password }), [400, 'INVALID_TOKEN']],
  'POST /api/signin/link': [(token) => ({ token }), [400, 'INVALID_TOKEN']],
  'POST /api/signin/email/code': [(request) => ({ request, code: '12345678' }), [401, 'INVALID_CODE']],
  'POST /api/signin/email/link': [(token) => ({ token }), [400, 'INVALID_TOKEN']],
  'POST /api/auth/callback': [(rt) => ({ rt }), [401, 'INVALID_REDIRECT_TOKEN']],
}
/** Open routes that take no token. */
const forAll = [
  ...['POST /api/signup', 'POST /api/password/forgot', 'POST /api/signin/email'],
  'POST /api/auth/:provider/callback',
  'POST /api/payments/webhooks/:providerKind',
]

test('a one-time token of one tenant is rejected by every route of another that takes a token, and nothing changes', async () => {
  const open = routes.filter((route) => isOpen(route) && route.method !== 'GET')
  expect(open.map(({ name }) => name).sort()).toEqual([...Object.keys(tokenRoutes), ...forAll].sort())
  const before = await snapshotTenant(theirs)
  for (const [name, [body, rejection]] of Object.entries(tokenRoutes)) {
    const [method = '', path] = name.split(' ')
    for (const [kind, secret] of Object.entries(secrets)) {
      const answer = await callApi(method, `${theirs.origin}${path}`, {
        // A longer token would fail the validation of the body.
        body: body(secret.slice(0, 200)),
        headers: carriers['as bearer token']!(secret),
      })
      expect(statusAndCode(answer), `${name} with ${kind}`).toEqual(rejection)
      expect(answer.headers.has('set-cookie')).toBe(false)
    }
  }
  expect(await snapshotTenant(theirs)).toEqual(before)
})

test('an invitation is invisible to a user with the same address at another tenant, who gets 404 INVITE_NOT_FOUND', async () => {
  const email = ours.email('guest')
  const workspace = await ours.inviting(email)
  const guest = (await theirs.as('admin').post('/users', { username: 'guest', email })).body._id
  const asGuest = theirs.as('admin').with({ 'x-impersonate-user': guest })
  expect((await asGuest.get('/invites')).body).toEqual([])
  for (const kind of ['accept', 'decline'])
    expect(statusAndCode(await asGuest.post('/invites', { workspace, kind }))).toEqual([404, 'INVITE_NOT_FOUND'])
})

test('an admin cannot impersonate users or enter workspaces of another tenant and gets 404', async () => {
  const getProfile = (headers: Record<string, string>) => ours.as('admin').get('/me', headers)
  expect(statusAndCode(await getProfile(impersonationHeaders))).toEqual([404, 'USER_NOT_FOUND'])
  const here = { 'x-impersonate-user': ours.users.user, 'x-impersonate-workspace': theirs.workspace }
  expect(statusAndCode(await getProfile(here))).toEqual([404, 'WORKSPACE_NOT_FOUND'])
})

test('tokens are still valid at their own tenant after the rejected attempts at another', async () => {
  const statusOf = async (name: string, body: object) => (await ours.anonymous.post(name, body)).status
  const { 'password reset': reset, verification, redirect, refresh, challenge } = secrets
  expect(await statusOf('/token/refresh', { refreshToken: refresh })).toBe(200)
  expect(await statusOf('/email/verify', { token: verification })).toBe(200)
  expect(await statusOf('/password/reset', { token: reset, password })).toBe(200)
  expect(await statusOf('/email/revert', { token: secrets['address to have back'] })).toBe(200)
  expect(await statusOf('/auth/callback', { rt: redirect })).toBe(200)
  expect(await statusOf('/signin', { challenge, code: secrets.recovery })).toBe(200)
})
