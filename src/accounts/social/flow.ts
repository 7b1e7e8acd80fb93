import { config } from '../../config'
import { type Answer, forbidKeeping } from '../../core/etag'
import { Limiter } from '../../core/limiter'
import { invalid, Problem, tooMany } from '../../core/problem'
import { authorityOf, isSecure, networkOf } from '../../tenancy/caller'
import type { Tenant } from '../../tenancy/tenants'
import type { Ctx } from '../guard'
import { giveOnce, takeOnce } from '../one-time'
import { refuseForeign } from '../origins'
import { prove } from '../proof'
import { settingsOf } from '../settings'
import { enter } from '../signin'
import { refuseTokens } from '../tokens'
import { find } from '../users'
import { addressFor, newSecrets, profileOf } from './asking'
import { type Journey, journeyOf, packed, unpacked } from './journey'
import { linkTo, userBehind } from './linking'
import { providerOf } from './setup'
import type { NewIdentity, RedirectToken, Start } from './shapes'

/** Each may make us ask a provider where it is, which anybody could have us do. */
const starts = new Limiter(60, 60_000)

/** Sends a browser to a provider. @throws 400 PROVIDER_NOT_CONFIGURED, or for an address that is not allowed; 429, 502 */
export async function start(tenant: Tenant, name: string, input: Start, answer: Answer) {
  const { address, journey } = await begin(tenant, name, input, answer.request)
  return redirected(answer, address, await packed(answer.request, tenant, journey))
}

/**
 * Where the caller goes to be known by a provider, too, in the browser that gets this answer: it has a cookie to come back
 * with. @throws as `start` does, and what `prove` throws
 */
export async function startLinking(ctx: Ctx, { provider, returnUrl, state, ...proof }: NewIdentity, answer: Answer) {
  refuseTokens(ctx)
  forbidKeeping(answer)
  const { address, journey } = await begin(ctx, provider, { returnUrl, state }, answer.request)
  await prove(ctx, proof, answer.request)
  const { user, session = '' } = ctx.actor
  const link = await ctx.write((tx) => giveOnce(tx, 'linking', user, { session }))
  const cookie = await packed(answer.request, ctx, { ...journey, link })
  Object.assign(answer.set.headers as object, { 'set-cookie': cookie })
  return { url: address }
}

async function begin(tenant: Tenant, name: string, { returnUrl, state }: Start, request: Request) {
  const wait = config.ATOLL_RATE_LIMITS === 'on' && starts.take(`${tenant.tenant} ${networkOf(request)}`)
  if (wait) tooMany(wait / 1000, 'Too many sign-ins were begun.')
  const { kind, setup } = await providerOf(tenant, name)
  const back = returnUrl && (await allowed(tenant, returnUrl))
  if (returnUrl && !back)
    invalid({ path: 'returnUrl', message: 'This is no http address at one of the hosts in allowedReturnHosts.' })
  const secrets = newSecrets()
  const address = await addressFor(kind, setup, redirectUri(request, name), secrets)
  const journey = { provider: name, ...secrets, ...(back && { returnUrl: back }), ...(state && { passed: state }) }
  return { address, journey }
}

/**
 * Lets in who comes back from a provider: by a cookie, or at the website that they came from by a token, which that
 * exchanges. Who is signed in already and has asked for it is only linked. @throws 400 INVALID_STATE, PROVIDER_REFUSED; 403,
 * 409, 502; with a `returnUrl` that is told there
 */
export async function callback(tenant: Tenant, name: string, answer: Answer) {
  const { request } = answer
  const query = new URLSearchParams(request.url.split('?')[1])
  const journey = await journeyOf(request, tenant, name, query.get('state'))
  const done = unpacked(request, tenant)
  // It may have been allowed only when the journey began.
  const returnUrl = journey.returnUrl && (await allowed(tenant, journey.returnUrl))
  if (returnUrl) {
    const arrived = arrive(tenant, name, journey, query, request)
    const told: Record<string, string> = await arrived.then(
      async (user) => (user ? tokenFor(tenant, user._id) : { linked: name }),
      (error) => ({ error: codeOf(error) }),
    )
    return redirected(answer, withQuery(returnUrl, { ...told, state: journey.passed }), done)
  }
  const user = await arrive(tenant, name, journey, query, request)
  const { challenge } = user ? await entered(tenant, user, answer) : {}
  return redirected(answer, challenge ? withQuery('/', { challenge }) : '/', done)
}

/**
 * Signs in by the token that came with a `returnUrl`. Any page could have a browser send one that it got for itself, and so
 * sign somebody in as whom it likes; so it has to be ours, or at an allowed host.
 * @throws 401 INVALID_REDIRECT_TOKEN, SECOND_FACTOR_REQUIRED; 403 CROSS_SITE
 */
export async function exchange(tenant: Tenant, { rt, authType }: RedirectToken, answer: Answer) {
  const origin = answer.request.headers.get('origin')
  if (!(origin && (await allowed(tenant, origin)))) await refuseForeign(answer.request, tenant)
  const taken = await tenant.write((tx) => takeOnce(tx, 'redirect', rt ?? ''))
  if (!taken)
    throw new Problem(
      401,
      'INVALID_REDIRECT_TOKEN',
      'This token is not valid, or not any more. Begin the sign-in anew.',
    )
  return enter(tenant, await find(tenant, taken.user), authType, answer)
}

/** Who comes back; nobody when it is somebody who is signed in already, and has another identity now. */
async function arrive(tenant: Tenant, name: string, journey: Journey, query: URLSearchParams, request: Request) {
  const { kind, setup } = await providerOf(tenant, name)
  const profile = await profileOf(kind, setup, redirectUri(request, name), journey, query)
  if (!journey.link) return userBehind(tenant, name, profile)
  await linkTo(tenant, name, profile, journey.link)
}

const tokenFor = async (tenant: Tenant, user: string) => ({
  rt: await tenant.write((tx) => giveOnce(tx, 'redirect', user)),
})

/** A second factor is asked for by the page at `/`. */
async function entered(
  tenant: Tenant,
  user: Parameters<typeof enter>[1],
  answer: Answer,
): Promise<{ challenge?: string }> {
  try {
    await enter(tenant, user, undefined, answer)
    return {}
  } catch (error) {
    if (error instanceof Problem && error.code === 'SECOND_FACTOR_REQUIRED')
      return error.more.details as { challenge: string }
    throw error
  }
}

function codeOf(error: unknown): string {
  if (error instanceof Problem) return error.code
  throw error
}

/** Where the provider sends the browser back to: here, as the browser calls it. */
const redirectUri = (request: Request, name: string) =>
  `${isSecure(request) ? 'https' : 'http'}://${authorityOf(request)}/api/auth/${name}/callback`

/**
 * An address that a browser may be led to, written so that it means the same wherever it stands. Hosts are named with their
 * port, where that is not the usual one.
 */
async function allowed(tenant: Tenant, address: string): Promise<string | undefined> {
  const { allowedReturnHosts } = await settingsOf(tenant, 'auth-configuration')
  const { protocol = '', host = '', username, password, href } = URL.parse(address) ?? {}
  const names = allowedReturnHosts.map((name) => name.trim().toLowerCase())
  if (/^https?:$/.test(protocol) && !username && !password && names.includes(host)) return href
}

function withQuery(address: string, values: Record<string, string | undefined>): string {
  const [path = '', fragment] = address.split('#')
  const query = new URLSearchParams(Object.entries(values).filter((pair): pair is [string, string] => !!pair[1]))
  return `${path}${path.includes('?') ? '&' : '?'}${query}${fragment === undefined ? '' : `#${fragment}`}`
}

/** A Response of its own, for an answer with several cookies. */
function redirected({ set }: Answer, location: string, ...cookies: string[]): Response {
  const headers = new Headers({ location, 'cache-control': 'no-store' })
  const given = set.headers as Record<string, string>
  for (const cookie of [...cookies, given['set-cookie']]) if (cookie) headers.append('set-cookie', cookie)
  delete given['set-cookie']
  return new Response(null, { status: 302, headers })
}
