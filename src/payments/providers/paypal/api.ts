import type { ResolvedConnection } from '../../../connections/kinds/index'
import { PAYPAL_URLS } from '../../../connections/kinds/paypal'
import { joinUrl } from '../../../connections/kinds/probe'
import { BoundedMap } from '../../../core/bounded-map'
import { sha256 } from '../../../core/crypto'
import { type ProviderRequest, ProviderResponseError, requestJson } from '../provider-http'

export type PaypalConnection = ResolvedConnection<'paypal'>

const TOKEN_EXPIRY_MARGIN_MS = 60_000 // ms before its expiry, from when on a token is no longer used
const MAX_CACHED_TOKENS = 1_000

/** Tokens by connection and secret, so that no token of another tenant or of a changed secret is used. */
const tokens = new BoundedMap<string, { until: number; token: Promise<string> }>(MAX_CACHED_TOKENS)

/**
 * Sends a request to PayPal and returns its answer. `key` is the idempotency key.
 * @throws UpstreamUnreachable, ProviderResponseError
 */
export async function requestPaypal<Answer>(
  connection: PaypalConnection,
  path: string,
  { key, method = 'GET', ...content }: { method?: string; key?: string; json?: unknown; body?: string } = {},
): Promise<Answer> {
  const send = async () => {
    const headers: ProviderRequest['headers'] = { authorization: `Bearer ${await cachedToken(connection)}` }
    if (key) headers['paypal-request-id'] = key
    if (method === 'POST') headers.prefer = 'return=representation'
    return requestJson<Answer>(connection, urlOf(connection, path), { ...content, method, headers }, errorCodeOf)
  }
  return send().catch((error) => {
    // A token may be revoked before it expires.
    if (!(error instanceof ProviderResponseError) || error.status !== 401) throw error
    tokens.delete(tokenCacheKey(connection))
    return send()
  })
}

const errorCodeOf = ({ details, name, error }: { details?: { issue?: string }[]; name?: string; error?: string }) =>
  details?.[0]?.issue ?? name ?? error

const urlOf = (
  { metadata: { environment = 'live', apiUrl = PAYPAL_URLS[environment] } }: PaypalConnection,
  path: string,
) => joinUrl(apiUrl, path)

const tokenCacheKey = (connection: PaypalConnection) =>
  `${connection._id} ${sha256(`${urlOf(connection, '')} ${connection.metadata.clientId} ${connection.authentication.clientSecret}`)}`

/** Returns a token (https://developer.paypal.com/api/rest/authentication). Concurrent callers share one request for it. */
async function cachedToken(connection: PaypalConnection): Promise<string> {
  const name = tokenCacheKey(connection)
  const cachedEntry = tokens.get(name)
  if (cachedEntry && cachedEntry.until > performance.now()) return cachedEntry.token
  const fresh = { until: Number.POSITIVE_INFINITY, token: Promise.resolve('') }
  fresh.token = requestToken(connection).then(({ access_token, expires_in }) => {
    fresh.until = performance.now() + expires_in * 1000 - TOKEN_EXPIRY_MARGIN_MS
    return access_token
  })
  tokens.set(name, fresh)
  return fresh.token.catch((error) => {
    if (tokens.get(name) === fresh) tokens.delete(name)
    throw error
  })
}

async function requestToken(connection: PaypalConnection): Promise<{ access_token: string; expires_in: number }> {
  const { metadata, authentication } = connection
  if (!metadata.clientId || !authentication.clientSecret)
    throw new ProviderResponseError('paypal', 401, 'no_client_secret')
  const basic = Buffer.from(`${metadata.clientId}:${authentication.clientSecret}`).toString('base64')
  const headers = { authorization: `Basic ${basic}`, 'content-type': 'application/x-www-form-urlencoded' }
  const request = { method: 'POST', headers, body: 'grant_type=client_credentials' }
  const answer = await requestJson<{ access_token?: string; expires_in?: number }>(
    connection,
    urlOf(connection, 'v1/oauth2/token'),
    request,
    errorCodeOf,
  )
  if (!answer.access_token) throw new ProviderResponseError('paypal', 200, 'no_token')
  return { access_token: answer.access_token, expires_in: Number(answer.expires_in) || 0 }
}
