import * as oauth from 'oauth4webapi'
import { config } from '../../config'
import { now } from '../../core/clock'
import { fetchExternal } from '../../core/http-client'
import { TooManyCalls } from '../../core/outbound-calls'
import { Problem } from '../../core/problem'
import type { OAuthProvider, Profile, ProviderConfig } from './providers/provider'

const toFetchLimits = (tenant: string) => ({
  tenant,
  timeout: 10_000,
  limit: 256 << 10,
  privateNetwork: config.ATOLL_ALLOW_PRIVATE_NETWORK === 'on',
})

const fetchFromProvider = ({ tenant }: ProviderConfig, url: string, headers: Record<string, string> = {}) =>
  fetchExternal(
    url,
    { headers: { accept: 'application/json', 'user-agent': 'atoll', ...headers } },
    toFetchLimits(tenant),
  )

/** Makes the library send its requests by `fetchExternal`, which checks the protocol of each URL. */
const toOAuthOptions = ({ tenant }: ProviderConfig) => ({
  [oauth.allowInsecureRequests]: true,
  [oauth.customFetch]: (url: string, init: object) => fetchExternal(url, init, toFetchLimits(tenant)),
})

/** The secrets of a flow, which nobody but the browser knows. */
export type FlowSecrets = { state: string; nonce: string; verifier: string }

/** Returns new random secrets for a flow. */
export const createFlowSecrets = (): FlowSecrets => ({
  state: oauth.generateRandomState(),
  nonce: oauth.generateRandomNonce(),
  verifier: oauth.generateRandomCodeVerifier(),
})

/**
 * Returns the URL to which a browser is redirected (RFC 6749 §4.1.1, with PKCE of RFC 7636).
 * @throws 502 PROVIDER_ERROR
 */
export async function buildAuthorizationUrl(
  kind: OAuthProvider,
  setup: ProviderConfig,
  redirectUri: string,
  { state, nonce, verifier }: FlowSecrets,
) {
  const { authorization_endpoint } = await translateErrors(() =>
    kind.server(setup, (url) => fetchFromProvider(setup, url)),
  )
  const url = authorization_endpoint ? URL.parse(authorization_endpoint) : null
  if (!url || !/^https?:$/.test(url.protocol)) throw providerError()
  const parameters = {
    response_type: 'code',
    client_id: setup.clientId,
    redirect_uri: redirectUri,
    scope: kind.scopes,
    state,
    // A provider without PKCE ignores it (RFC 6749 §3.1).
    code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
    code_challenge_method: 'S256',
    ...(kind.idToken !== 'ignored' && { nonce }),
    ...(kind.responseMode && { response_mode: kind.responseMode }),
  }
  for (const [key, value] of Object.entries(parameters)) url.searchParams.set(key, value)
  return url.href
}

/**
 * Returns the profile of a user who comes back from a provider. The state, and the signature, issuer, audience, time
 * and nonce of the id_token are checked.
 * @throws 400 PROVIDER_REFUSED, 502 PROVIDER_ERROR
 */
export function fetchProfile(
  kind: OAuthProvider,
  setup: ProviderConfig,
  redirectUri: string,
  secrets: FlowSecrets,
  query: URLSearchParams,
) {
  return translateErrors(async (): Promise<Profile> => {
    const server = await kind.server(setup, (url) => fetchFromProvider(setup, url))
    const skew = Math.round((now() - Date.now()) / 1000)
    const client = { client_id: setup.clientId, [oauth.clockSkew]: skew, [oauth.clockTolerance]: 30 }
    const answer = oauth.validateAuthResponse(server, client, query, secrets.state)
    const response = await oauth.authorizationCodeGrantRequest(
      ...([
        server,
        client,
        await selectClientAuth(kind, setup, server),
        answer,
        redirectUri,
        secrets.verifier,
      ] as const),
      toOAuthOptions(setup),
    )
    const tokens = await processTokenResponse(kind, setup, server, client, response, secrets.nonce)
    const claims = oauth.getValidatedIdTokenClaims(tokens)
    const getJson = async (url: string) => {
      const reply = await fetchFromProvider(setup, url, { authorization: `Bearer ${tokens.access_token}` })
      if (reply.status !== 200) throw providerError(new Error(`${url} answered ${reply.status}.`))
      return (await reply.json()) as Record<string, unknown>
    }
    const profile = await kind.profile(getJson, setup, server, claims)
    if (!profile.subject) throw providerError(new Error('The provider returned no subject.'))
    return profile
  })
}

async function processTokenResponse(
  kind: OAuthProvider,
  setup: ProviderConfig,
  server: oauth.AuthorizationServer,
  client: oauth.Client,
  response: Response,
  nonce: string,
) {
  const { id_token, ...rest } = (await response.clone().json()) as Record<string, unknown>
  const checksIdToken = kind.idToken === 'required' || (kind.idToken === 'checked' && id_token !== undefined)
  const { status, headers } = response
  if (!checksIdToken)
    return oauth.processAuthorizationCodeResponse(server, client, Response.json(rest, { status, headers }))
  const options = { expectedNonce: nonce, requireIdToken: true }
  const tokens = await oauth.processAuthorizationCodeResponse(server, client, response, options)
  await oauth.validateApplicationLevelSignature(server, response, toOAuthOptions(setup))
  return tokens
}

/** Sends the secret in the body, unless the provider says that it only takes a header. */
async function selectClientAuth(
  kind: OAuthProvider,
  setup: ProviderConfig,
  server: oauth.AuthorizationServer,
): Promise<oauth.ClientAuth> {
  const { clientSecret } = setup
  if (!clientSecret) return oauth.None()
  if (kind.signSecret) return oauth.ClientSecretPost(await kind.signSecret(setup, server))
  const methods = server.token_endpoint_auth_methods_supported
  const inHeader = methods && !methods.includes('client_secret_post')
  return inHeader ? oauth.ClientSecretBasic(clientSecret) : oauth.ClientSecretPost(clientSecret)
}

/**
 * Turns any failure into a Problem that does not tell callers what went wrong with the provider; the log gets the
 * cause.
 */
async function translateErrors<T>(work: () => T | Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof oauth.AuthorizationResponseError || error instanceof oauth.ResponseBodyError)
      throw new Problem(
        400,
        'PROVIDER_REFUSED',
        'The provider rejected the sign-in. Try again or use another sign-in method.',
        { details: { error: error.error.slice(0, 100) } },
      )
    if (error instanceof Problem)
      throw error.code === 'PROVIDER_ERROR' || error instanceof TooManyCalls ? error : providerError(error)
    // The cause of the error itself is the response, which contains tokens.
    throw providerError(new Error(String(error)))
  }
}

const providerError = (cause?: unknown) =>
  new Problem(502, 'PROVIDER_ERROR', 'The provider returned an unexpected response. Try again later.', { cause })
