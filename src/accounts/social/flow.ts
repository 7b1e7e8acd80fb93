import { config } from '../../config'
import { readText } from '../../core/body'
import { badRequest, Problem, tooManyRequests } from '../../core/problem'
import { RateLimiter } from '../../core/rate-limiter'
import { assertSameSite } from '../../http/allowed-origins'
import { getSettings } from '../../platform/settings/tenant-settings'
import { clientNetwork, isHttps, requestAuthority } from '../../tenancy/client-connection'
import type { Tenant } from '../../tenancy/tenants'
import { authSettings } from '../auth-settings'
import type { Ctx } from '../context'
import { consumeOneTimeToken, issueOneTimeToken } from '../one-time-tokens'
import { assertNotApiToken } from '../permissions'
import { requireRecentAuth } from '../reauthentication'
import type { WithCookies } from '../session-headers'
import { completeFirstFactor, type SignInUser, toSignInNotes, withSignInNotes } from '../signin'
import { getUser } from '../users/users'
import { type FlowState, requireFlowState, serializeExpiredFlowCookie, serializeFlowCookie } from './flow-cookie'
import { findOrCreateUser, linkIdentity } from './identity-links'
import { buildAuthorizationUrl, createFlowSecrets, fetchProfile } from './oauth-client'
import { getProvider } from './provider-config'
import type { NewIdentity, RedirectToken, Start } from './shapes'

/** Requests per minute and network, because each may cause a request to a provider. */
const startLimiter = new RateLimiter(60, 60_000)

/** Where a browser goes, and the `Set-Cookie` headers that it gets; `isSignedIn`: they are those of a session. */
export type Redirect = { location: string; cookies: string[]; isSignedIn?: boolean }

/**
 * Returns the redirect of a browser to a provider.
 * @throws 400 PROVIDER_NOT_CONFIGURED, or INVALID_INPUT for a `returnUrl` that is not allowed; 429, 502
 */
export async function start(tenant: Tenant, name: string, input: Start, request: Request): Promise<Redirect> {
  const { address: location, flow } = await prepareFlow(tenant, name, input, request)
  return { location, cookies: [await serializeFlowCookie(request, tenant, flow)] }
}

/**
 * Begins to link an identity to the caller, and returns the URL of the provider. It must be opened in the same browser,
 * which gets a cookie for its return.
 * @throws the errors of `start` and `requireRecentAuth`
 */
export async function startLinking(
  ctx: Ctx,
  { provider, returnUrl, state, ...proof }: NewIdentity,
  request: Request,
): Promise<WithCookies<{ url: string }>> {
  assertNotApiToken(ctx)
  const { address, flow } = await prepareFlow(ctx, provider, { returnUrl, state }, request)
  await requireRecentAuth(ctx, proof, request)
  const { user, session = '' } = ctx.actor
  const link = await ctx.write((tx) => issueOneTimeToken(tx, 'linking', user, { session }))
  return { value: { url: address }, cookies: [await serializeFlowCookie(request, ctx, { ...flow, link })] }
}

async function prepareFlow(tenant: Tenant, name: string, { returnUrl, state }: Start, request: Request) {
  const wait = config.ATOLL_RATE_LIMITS === 'on' && startLimiter.consume(`${tenant.tenant} ${clientNetwork(request)}`)
  if (wait) tooManyRequests(wait / 1000, 'Too many sign-ins were started.')
  const { kind, setup } = await getProvider(tenant, name)
  const allowedReturnUrl = returnUrl && (await findAllowedUrl(tenant, returnUrl))
  if (returnUrl && !allowedReturnUrl)
    badRequest({
      path: 'returnUrl',
      message: 'returnUrl must be an http or https URL whose host is in allowedReturnHosts, or a place below /admin.',
    })
  const secrets = createFlowSecrets()
  const address = await buildAuthorizationUrl(kind, setup, redirectUri(request, name), secrets)
  const flow = {
    provider: name,
    ...secrets,
    ...(allowedReturnUrl && { returnUrl: allowedReturnUrl }),
    ...(state && { passed: state }),
  }
  return { address, flow }
}

/**
 * Completes the flow of a browser that comes back from a provider. It signs the user in by a cookie or, with a
 * `returnUrl`, by a token that the website exchanges. A flow that was begun by `startLinking` only links the identity.
 * With a `returnUrl`, errors are passed to it.
 * @throws 400 INVALID_STATE, PROVIDER_REFUSED; 403, 409, 502
 */
export async function callback(tenant: Tenant, name: string, request: Request): Promise<Redirect> {
  const query = new URLSearchParams(request.url.split('?')[1])
  const flow = await requireFlowState(request, tenant, name, query.get('state'))
  const clearedCookie = serializeExpiredFlowCookie(request, tenant)
  // The URL may have been allowed only when the flow began.
  const returnUrl = flow.returnUrl && (await findAllowedUrl(tenant, flow.returnUrl))
  if (returnUrl) {
    const completed = completeFlow(tenant, name, flow, query, request)
    const outcome: Record<string, string> = await completed.then(
      async (user) => (user ? issueRedirectToken(tenant, user) : { linked: name }),
      (error) => ({ error: toErrorCode(error) }),
    )
    return { location: withQuery(returnUrl, { ...outcome, state: flow.passed }), cookies: [clearedCookie] }
  }
  const user = await completeFlow(tenant, name, flow, query, request)
  const redirect = user ? await signInAtStartPage(tenant, user, request) : { location: '/', cookies: [] }
  return { ...redirect, cookies: [clearedCookie, ...redirect.cookies] }
}

const MAX_FORM_BYTES = 16 << 10
const CALLBACK_PARAMETERS = ['code', 'state', 'error']

/**
 * Sends a browser that a provider returned by a form to the callback. The form comes from another site, so the browser
 * withholds the cookie of the flow, but sends it along with the redirect.
 * @throws 413 BODY_TOO_LARGE
 */
export async function receiveCallbackForm(name: string, request: Request): Promise<Response> {
  const form = new URLSearchParams(await readText(request, MAX_FORM_BYTES))
  const query = new URLSearchParams([...form].filter(([key]) => CALLBACK_PARAMETERS.includes(key)))
  const location = `/api/auth/${encodeURIComponent(name)}/callback?${query}`
  return new Response(null, { status: 303, headers: { location, 'cache-control': 'no-store' } })
}

/**
 * Signs in by the token that was passed to a `returnUrl`. Any page could make a browser send a token that it got for
 * another account, and so sign the user in to that account. So the page must be on this host, on a website of the
 * tenant or on an allowed host.
 * @throws 401 INVALID_REDIRECT_TOKEN, SECOND_FACTOR_REQUIRED; 403 CROSS_SITE
 */
export async function exchangeRedirectToken(tenant: Tenant, { rt, authType }: RedirectToken, request: Request) {
  const origin = request.headers.get('origin')
  if (!(origin && (await findAllowedUrl(tenant, origin)))) await assertSameSite(request, tenant)
  const consumed = await tenant.write((tx) => consumeOneTimeToken(tx, 'redirect', rt ?? ''))
  if (!consumed)
    throw new Problem(401, 'INVALID_REDIRECT_TOKEN', 'The token is invalid or has expired. Start the sign-in again.')
  const user = withSignInNotes(await getUser(tenant, consumed.user), consumed.data)
  return completeFirstFactor(tenant, user, authType, request)
}

/** Returns the user who signs in, or undefined when the flow linked an identity to a signed-in user. */
async function completeFlow(tenant: Tenant, name: string, flow: FlowState, query: URLSearchParams, request: Request) {
  const { kind, setup } = await getProvider(tenant, name)
  const profile = await fetchProfile(kind, setup, redirectUri(request, name), flow, query)
  if (!flow.link) return findOrCreateUser(tenant, name, profile)
  await linkIdentity(tenant, name, profile, flow.link)
}

const issueRedirectToken = async (tenant: Tenant, user: SignInUser) => ({
  rt: await tenant.write((tx) => issueOneTimeToken(tx, 'redirect', user._id, toSignInNotes(user))),
})

/** Starts the session of a user for the page at `/`. With a second factor, the page gets the challenge instead. */
async function signInAtStartPage(tenant: Tenant, user: SignInUser, request: Request): Promise<Redirect> {
  try {
    const { cookies } = await completeFirstFactor(tenant, user, undefined, request)
    return { location: '/', cookies, isSignedIn: true }
  } catch (error) {
    if (error instanceof Problem && error.code === 'SECOND_FACTOR_REQUIRED')
      return { location: withQuery('/', error.more.details as { challenge: string }), cookies: [] }
    throw error
  }
}

function toErrorCode(error: unknown): string {
  if (error instanceof Problem) return error.code
  throw error
}

/** Returns the callback URL of this server, with the host that the browser uses. */
const redirectUri = (request: Request, name: string) =>
  `${isHttps(request) ? 'https' : 'http'}://${requestAuthority(request)}/api/auth/${name}/callback`

/** Places of the admin page of this server, whose host needs no permission. */
const ADMIN_PLACE = /^\/admin(\/[a-z-]+)*$/

/**
 * Returns the normalized form of a URL to which a browser may be redirected, or undefined if it is not allowed. Allowed
 * hosts include the port unless it is the default one.
 */
async function findAllowedUrl(tenant: Tenant, address: string): Promise<string | undefined> {
  if (ADMIN_PLACE.test(address)) return address
  const { allowedReturnHosts } = await getSettings(tenant, authSettings)
  const { protocol = '', host = '', username, password, href } = URL.parse(address) ?? {}
  const names = allowedReturnHosts.map((name) => name.trim().toLowerCase())
  if (/^https?:$/.test(protocol) && !username && !password && names.includes(host)) return href
}

function withQuery(address: string, values: Record<string, string | undefined>): string {
  const [path = '', fragment] = address.split('#')
  const query = new URLSearchParams(Object.entries(values).filter((pair): pair is [string, string] => !!pair[1]))
  return `${path}${path.includes('?') ? '&' : '?'}${query}${fragment === undefined ? '' : `#${fragment}`}`
}
