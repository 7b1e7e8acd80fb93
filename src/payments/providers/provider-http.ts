import { isPrivateNetworkAllowed } from '../../connections/url-policy'
import { fetchExternal, UpstreamUnreachable } from '../../core/http-client'
import { tryParseJson } from '../../core/json'
import { logError } from '../../core/log'
import { providerErrorProblem } from './errors'
import type { ProviderKind } from './provider'

const REQUEST_TIMEOUT_MS = 8_000 // ms; a connection on which nothing moves for ten seconds would be cut
const MAX_RESPONSE_BYTES = 4 << 20 // bytes of an answer

/** What a provider said against it: a status and, where there is one, a code of its own. Its sentences may hold secrets. */
export class ProviderResponseError extends Error {
  constructor(
    readonly provider: ProviderKind,
    readonly status: number,
    readonly code?: unknown,
  ) {
    super(`${provider} answered ${status}${isCode(code) ? ` ${code}` : ''}.`)
  }
}

const isCode = (code: unknown): code is string => typeof code === 'string' && /^[\w.-]{1,64}$/.test(code)

/** Does something by a provider, whose failures are told as 502 PROVIDER_ERROR, and to the log without what it said. */
export async function callProvider<T>(kind: ProviderKind, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    logError('PROVIDER_FAILED', {
      provider: kind,
      cause: error instanceof ProviderResponseError ? error.message : error,
    })
    throw providerErrorProblem(kind, error)
  }
}

/**
 * The idempotency key of what may as well be done twice, such as an end: of each attempt another, for under the same one a
 * provider may answer a failure again for days (https://docs.stripe.com/api/idempotent_requests).
 */
export const attemptKey = (...of: unknown[]) => [...of, Bun.randomUUIDv7()].join(':')

/** What answers nothing where the provider says that there is no such thing. */
export const ignoreStatuses = async <T>(work: Promise<T>, ...statuses: number[]): Promise<T | undefined> =>
  work.catch((error) => {
    if (error instanceof ProviderResponseError && statuses.includes(error.status)) return undefined
    throw error
  })

/** Which provider is asked, and for whom. */
type ProviderTarget = { kind: ProviderKind; tenant: string }

/**
 * Asks a provider, once more when the connection breaks off: each question carries a key by which the provider knows it
 * again, or changes nothing the second time.
 * @throws Unreachable
 */
export async function sendRequest(tenant: string, url: string, init: RequestInit): Promise<Response> {
  const bounds = {
    tenant,
    timeout: REQUEST_TIMEOUT_MS,
    limit: MAX_RESPONSE_BYTES,
    privateNetwork: isPrivateNetworkAllowed(),
  }
  const send = () => fetchExternal(url, init, bounds)
  return send().catch((error) => {
    if (error instanceof UpstreamUnreachable && error.reason === 'unreachable') return send()
    throw error
  })
}

/**
 * The same for a vendor's package to read. What it takes for granted is made sure of: that Stripe's finds anything but an
 * object, nobody could catch, and a failure that does not call itself one it takes for a success.
 * @throws Unreachable, Refusal
 */
export async function requestObject(
  { kind, tenant }: ProviderTarget,
  url: string,
  init: RequestInit,
): Promise<Response> {
  const response = await sendRequest(tenant, url, init)
  const { status, headers, ok } = response
  const text = await response.text()
  const answer = parseJsonObject(text)
  if (!answer) throw new ProviderResponseError(kind, status, 'no_json')
  return new Response(ok || answer.error ? text : UNEXPLAINED_ERROR_BODY, { status, headers })
}

const UNEXPLAINED_ERROR_BODY = JSON.stringify({
  error: { type: 'api_error', message: 'No error details were returned.' },
})

export type ProviderRequest = { method?: string; headers: Record<string, string>; json?: unknown; body?: string }

/**
 * The same in JSON. `codeIn` finds the provider's code in what it answers to a refusal.
 * @throws Unreachable, Refusal
 */
export async function requestJson<Answer>(
  { kind, tenant }: ProviderTarget,
  url: string,
  { headers, json, body = json === undefined ? undefined : JSON.stringify(json), ...init }: ProviderRequest,
  codeIn: (answer: Record<string, unknown>) => unknown,
): Promise<Answer> {
  const type: Record<string, string> = body === undefined ? {} : { 'content-type': 'application/json' }
  const response = await sendRequest(tenant, url, {
    ...init,
    body,
    headers: { 'user-agent': 'atoll', ...type, ...headers },
  })
  const text = await response.text()
  if (!response.ok) throw new ProviderResponseError(kind, response.status, codeIn(parseJsonObject(text) ?? {}))
  const answer = text ? parseJsonObject(text) : {}
  if (answer === undefined) throw new ProviderResponseError(kind, response.status, 'no_json')
  return answer as Answer
}

function parseJsonObject(text: string): Record<string, unknown> | undefined {
  const value = tryParseJson(text)
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined
}
