import { isPrivateNetworkAllowed } from '../../connections/url-policy'
import { BoundedMap } from '../../core/bounded-map'
import { HOUR_MS, now } from '../../core/clock'
import { fetchExternal, UpstreamUnreachable } from '../../core/http-client'
import { tryParseJson } from '../../core/json'
import { logError } from '../../core/log'
import { parseRetryAfter } from '../../core/retry-after'
import { toProviderProblem } from './errors'
import type { ProviderKind } from './provider'

const REQUEST_TIMEOUT_MS = 8_000 // connections are cut after ten idle seconds
const MAX_RESPONSE_BYTES = 4 << 20

/** A provider refused a request, with a status and perhaps a code. Its messages are left out, for they may hold secrets. */
export class ProviderResponseError extends Error {
  constructor(
    readonly provider: ProviderKind,
    readonly status: number,
    readonly code?: unknown,
    /** How long the provider asks to wait (ms). */
    readonly retryAfter?: number,
  ) {
    super(`${provider} answered ${status}${isCode(code) ? ` ${code}` : ''}.`)
  }
}

const isCode = (code: unknown): code is string => typeof code === 'string' && /^[\w.-]{1,64}$/.test(code)

/**
 * Runs `work`, and logs its failure without the provider's message.
 * @throws 502 PROVIDER_ERROR when `work` fails, 503 PROVIDER_BUSY when the provider asks to wait
 */
export async function callProvider<T>(kind: ProviderKind, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    logError('PROVIDER_FAILED', {
      provider: kind,
      cause: error instanceof ProviderResponseError ? error.message : error,
    })
    throw toProviderProblem(kind, error)
  }
}

/**
 * Returns a new idempotency key for each attempt of a repeatable request, such as a cancellation: for a reused key, a
 * provider may repeat an old failure for days.
 */
export const attemptKey = (...parts: unknown[]) => [...parts, Bun.randomUUIDv7()].join(':')

/** Returns the result of a request, or undefined if the provider refused it with one of the statuses, such as 404. */
export const ignoreStatuses = async <T>(work: Promise<T>, ...statuses: number[]): Promise<T | undefined> =>
  work.catch((error) => {
    if (error instanceof ProviderResponseError && statuses.includes(error.status)) return undefined
    throw error
  })

/** The connection that a request is sent by. */
type ProviderTarget = { _id: string; kind: ProviderKind; tenant: string }

const MAX_WAITING_CONNECTIONS = 10_000
const MAX_WAIT_MS = HOUR_MS

/** Until when (ms) providers want no requests of a connection. */
const waits = new BoundedMap<string, number>(MAX_WAITING_CONNECTIONS)
const waitKey = ({ tenant, _id }: ProviderTarget) => `${tenant} ${_id}`

/** @throws ProviderResponseError while the provider wants no requests */
function assertNotWaiting(target: ProviderTarget) {
  const left = (waits.get(waitKey(target)) ?? 0) - now()
  if (left > 0) throw new ProviderResponseError(target.kind, 429, 'waiting', Math.min(left, MAX_WAIT_MS))
}

/** Returns how long a refused request asks to wait (ms), and remembers it for the other requests of the connection. */
function noteWait(target: ProviderTarget, { status, headers }: Response): number | undefined {
  if (status !== 429 && status !== 503) return
  const wait = parseRetryAfter(headers.get('retry-after'))
  if (wait) waits.set(waitKey(target), now() + Math.min(wait, MAX_WAIT_MS))
  return wait
}

/**
 * Sends a request to a provider, and retries it once if the connection breaks off and it is safe to repeat: it has an
 * idempotency key that the provider knows, or does nothing the second time.
 * @throws UpstreamUnreachable, ProviderResponseError while the provider wants no requests
 */
async function sendRequest(target: ProviderTarget, url: string, init: RequestInit, isRepeatable = true) {
  assertNotWaiting(target)
  const bounds = {
    tenant: target.tenant,
    timeout: REQUEST_TIMEOUT_MS,
    limit: MAX_RESPONSE_BYTES,
    privateNetwork: isPrivateNetworkAllowed(),
  }
  const send = () => fetchExternal(url, init, bounds)
  return send().catch((error) => {
    if (isRepeatable && error instanceof UpstreamUnreachable && error.reason === 'unreachable') return send()
    throw error
  })
}

/**
 * Sends a request for the package of a vendor, and makes sure that it can read the response. A package may throw an
 * uncatchable error for anything but an object, and take a failure without an `error` for a success.
 * @throws UpstreamUnreachable, ProviderResponseError
 */
export async function requestObject(target: ProviderTarget, url: string, init: RequestInit): Promise<Response> {
  const response = await sendRequest(target, url, init)
  const { status, headers, ok } = response
  const wait = noteWait(target, response)
  const text = await response.text()
  const answer = parseJsonObject(text)
  if (!answer) throw new ProviderResponseError(target.kind, status, 'no_json', wait)
  return new Response(ok || answer.error ? text : UNEXPLAINED_ERROR_BODY, { status, headers })
}

const UNEXPLAINED_ERROR_BODY = JSON.stringify({
  error: { type: 'api_error', message: 'No error details were returned.' },
})

export type ProviderRequest = {
  method?: string
  headers: Record<string, string>
  json?: unknown
  body?: string
  /** Whether it may be sent again after the connection broke off (default: true). */
  isRepeatable?: boolean
}

/**
 * Sends a request and returns the JSON of the response. `codeIn` returns the provider's error code from a failed response.
 * @throws UpstreamUnreachable, ProviderResponseError
 */
export async function requestJson<Answer>(
  target: ProviderTarget,
  url: string,
  {
    headers,
    json,
    body = json === undefined ? undefined : JSON.stringify(json),
    isRepeatable,
    ...init
  }: ProviderRequest,
  codeIn: (answer: Record<string, unknown>) => unknown,
): Promise<Answer> {
  const type: Record<string, string> = body === undefined ? {} : { 'content-type': 'application/json' }
  const request = { ...init, body, headers: { 'user-agent': 'atoll', ...type, ...headers } }
  const response = await sendRequest(target, url, request, isRepeatable)
  const wait = noteWait(target, response)
  const text = await response.text()
  const { kind } = target
  if (!response.ok) throw new ProviderResponseError(kind, response.status, codeIn(parseJsonObject(text) ?? {}), wait)
  const answer = text ? parseJsonObject(text) : {}
  if (answer === undefined) throw new ProviderResponseError(kind, response.status, 'no_json')
  return answer as Answer
}

function parseJsonObject(text: string): Record<string, unknown> | undefined {
  const value = tryParseJson(text)
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined
}
