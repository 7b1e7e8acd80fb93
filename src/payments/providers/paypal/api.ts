import { hashed } from '../../../core/secret'
import type { Opened } from '../../../plugins/connections/kinds'
import { joined } from '../../../plugins/connections/kinds/asking'
import { PAYPAL } from '../../../plugins/connections/kinds/paypal'
import { type Question, Refusal, reachJson } from '../asking'

export type Connected = Opened<'paypal'>

const EARLY = 60_000 // ms before its end from which a token is not used any more
const MOST = 1_000

/** Tokens by connection and secret, so that one of another tenant or of a secret that was changed is never used. */
const tokens = new Map<string, { until: number; token: Promise<string> }>()

/**
 * Asks PayPal. `key` is by what it knows a question again.
 * @throws Unreachable, Refusal
 */
export async function paypalAnswers<Answer>(
  opened: Connected,
  path: string,
  { key, method = 'GET', ...question }: { method?: string; key?: string; json?: unknown; body?: string } = {},
): Promise<Answer> {
  const asking = async () => {
    const headers: Question['headers'] = { authorization: `Bearer ${await tokenOf(opened)}` }
    if (key) headers['paypal-request-id'] = key
    if (method === 'POST') headers.prefer = 'return=representation'
    return reachJson<Answer>(opened, urlOf(opened, path), { ...question, method, headers }, codeIn)
  }
  return asking().catch((error) => {
    // A token may be taken back before its time.
    if (!(error instanceof Refusal) || error.status !== 401) throw error
    tokens.delete(nameOf(opened))
    return asking()
  })
}

const codeIn = ({ details, name, error }: { details?: { issue?: string }[]; name?: string; error?: string }) =>
  details?.[0]?.issue ?? name ?? error

const urlOf = ({ metadata: { environment = 'live', apiUrl = PAYPAL[environment] } }: Connected, path: string) =>
  joined(apiUrl, path)

const nameOf = (opened: Connected) =>
  `${opened._id} ${hashed(`${urlOf(opened, '')} ${opened.metadata.clientId} ${opened.authentication.clientSecret}`)}`

/** https://developer.paypal.com/api/rest/authentication. Those who ask at the same time share one. */
async function tokenOf(opened: Connected): Promise<string> {
  const name = nameOf(opened)
  const kept = tokens.get(name)
  if (kept && kept.until > performance.now()) return kept.token
  const fresh = { until: Number.POSITIVE_INFINITY, token: Promise.resolve('') }
  fresh.token = grant(opened).then(({ access_token, expires_in }) => {
    fresh.until = performance.now() + expires_in * 1000 - EARLY
    return access_token
  })
  tokens.set(name, fresh)
  if (tokens.size > MOST) tokens.delete(tokens.keys().next().value!)
  return fresh.token.catch((error) => {
    if (tokens.get(name) === fresh) tokens.delete(name)
    throw error
  })
}

async function grant(opened: Connected): Promise<{ access_token: string; expires_in: number }> {
  const { metadata, authentication } = opened
  if (!metadata.clientId || !authentication.clientSecret) throw new Refusal('paypal', 401, 'no_client_secret')
  const basic = Buffer.from(`${metadata.clientId}:${authentication.clientSecret}`).toString('base64')
  const headers = { authorization: `Basic ${basic}`, 'content-type': 'application/x-www-form-urlencoded' }
  const question = { method: 'POST', headers, body: 'grant_type=client_credentials' }
  const granted = await reachJson<{ access_token?: string; expires_in?: number }>(
    opened,
    urlOf(opened, 'v1/oauth2/token'),
    question,
    codeIn,
  )
  if (!granted.access_token) throw new Refusal('paypal', 200, 'no_token')
  return { access_token: granted.access_token, expires_in: Number(granted.expires_in) || 0 }
}
