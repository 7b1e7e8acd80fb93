import * as oauth from 'oauth4webapi'
import { config } from '../../config'
import { now } from '../../core/clock'
import { TooManyCalls } from '../../core/outgoing-calls'
import { outside } from '../../core/outside'
import { Problem } from '../../core/problem'
import type { Kind, Profile, Setup } from './providers/kind'

const bounds = (tenant: string) => ({
  tenant,
  timeout: 10_000,
  limit: 256 << 10,
  privateNetwork: config.ATOLL_ALLOW_PRIVATE_NETWORK === 'on',
})

const get = ({ tenant }: Setup, url: string, headers: Record<string, string> = {}) =>
  outside(url, { headers: { accept: 'application/json', 'user-agent': 'atoll', ...headers } }, bounds(tenant))

/** By these the library asks; which protocols may be spoken is judged there. */
const by = ({ tenant }: Setup) => ({
  [oauth.allowInsecureRequests]: true,
  [oauth.customFetch]: (url: string, init: object) => outside(url, init, bounds(tenant)),
})

/** What a browser takes along to come back with: none of it is known to anybody else. */
export type Secrets = { state: string; nonce: string; verifier: string }

export const newSecrets = (): Secrets => ({
  state: oauth.generateRandomState(),
  nonce: oauth.generateRandomNonce(),
  verifier: oauth.generateRandomCodeVerifier(),
})

/** Where a browser is sent to (RFC 6749 §4.1.1, with PKCE of RFC 7636). @throws 502 PROVIDER_ERROR */
export async function addressFor(kind: Kind, setup: Setup, redirectUri: string, { state, nonce, verifier }: Secrets) {
  const { authorization_endpoint } = await told(() => kind.server(setup, (url) => get(setup, url)))
  const url = authorization_endpoint ? URL.parse(authorization_endpoint) : null
  if (!url || !/^https?:$/.test(url.protocol)) throw failed()
  const asked = {
    response_type: 'code',
    client_id: setup.clientId,
    redirect_uri: redirectUri,
    scope: kind.scopes,
    state,
    // Who does not know PKCE overlooks it (RFC 6749 §3.1).
    code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
    code_challenge_method: 'S256',
    ...(kind.idToken !== 'ignored' && { nonce }),
  }
  for (const [key, value] of Object.entries(asked)) url.searchParams.set(key, value)
  return url.href
}

/**
 * Who it is that came back from a provider. The state, the id_token's signature, issuer, audience, time and nonce are
 * checked. @throws 400 PROVIDER_REFUSED, 502 PROVIDER_ERROR
 */
export function profileOf(kind: Kind, setup: Setup, redirectUri: string, secrets: Secrets, query: URLSearchParams) {
  return told(async (): Promise<Profile> => {
    const server = await kind.server(setup, (url) => get(setup, url))
    const skew = Math.round((now() - Date.now()) / 1000)
    const client = { client_id: setup.clientId, [oauth.clockSkew]: skew, [oauth.clockTolerance]: 30 }
    const answer = oauth.validateAuthResponse(server, client, query, secrets.state)
    const response = await oauth.authorizationCodeGrantRequest(
      ...([server, client, authenticationOf(setup, server), answer, redirectUri, secrets.verifier] as const),
      by(setup),
    )
    const tokens = await tokensOf(kind, setup, server, client, response, secrets.nonce)
    const claims = oauth.getValidatedIdTokenClaims(tokens)
    const ask = async (url: string) => {
      const found = await get(setup, url, { authorization: `Bearer ${tokens.access_token}` })
      if (found.status !== 200) throw failed(new Error(`${url} answered ${found.status}.`))
      return (await found.json()) as Record<string, unknown>
    }
    const profile = await kind.profile(ask, setup, server, claims)
    if (!profile.subject) throw failed(new Error('The provider does not say who it is.'))
    return profile
  })
}

async function tokensOf(
  kind: Kind,
  setup: Setup,
  server: oauth.AuthorizationServer,
  client: oauth.Client,
  response: Response,
  nonce: string,
) {
  const { id_token, ...rest } = (await response.clone().json()) as Record<string, unknown>
  const checks = kind.idToken === 'required' || (kind.idToken === 'checked' && id_token !== undefined)
  const { status, headers } = response
  if (!checks) return oauth.processAuthorizationCodeResponse(server, client, Response.json(rest, { status, headers }))
  const options = { expectedNonce: nonce, requireIdToken: true }
  const tokens = await oauth.processAuthorizationCodeResponse(server, client, response, options)
  await oauth.validateApplicationLevelSignature(server, response, by(setup))
  return tokens
}

/** As the provider takes it: in the body, unless it says that it takes only a header. */
function authenticationOf({ clientSecret }: Setup, server: oauth.AuthorizationServer): oauth.ClientAuth {
  if (!clientSecret) return oauth.None()
  const methods = server.token_endpoint_auth_methods_supported
  const inHeader = methods && !methods.includes('client_secret_post')
  return inHeader ? oauth.ClientSecretBasic(clientSecret) : oauth.ClientSecretPost(clientSecret)
}

/** Tells callers only that, and the log what, went wrong with a provider. */
async function told<T>(work: () => T | Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof oauth.AuthorizationResponseError || error instanceof oauth.ResponseBodyError)
      throw new Problem(400, 'PROVIDER_REFUSED', 'The provider did not let you in. Try again, or choose another way.', {
        details: { error: error.error.slice(0, 100) },
      })
    if (error instanceof Problem)
      throw error.code === 'PROVIDER_ERROR' || error instanceof TooManyCalls ? error : failed(error)
    // Its own cause is what was answered, with tokens in it.
    throw failed(new Error(String(error)))
  }
}

const failed = (cause?: unknown) =>
  new Problem(502, 'PROVIDER_ERROR', 'The provider did not answer as it should. Try again later.', { cause })
