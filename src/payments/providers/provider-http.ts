import { isPrivateNetworkAllowed } from '../../connections/url-policy'
import { fetchExternal, UpstreamUnreachable } from '../../core/http-client'
import { tryParseJson } from '../../core/json'
import { logError } from '../../core/log'
import { providerErrorProblem } from './errors'
import type { ProviderKind } from './provider'

const REQUEST_TIMEOUT_MS = 8_000 // connections are cut after ten idle seconds
const MAX_RESPONSE_BYTES = 4 << 20

/** A provider refused a request, with a status and perhaps a code. Its messages are left out, for they may hold secrets. */
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

/** Runs `work`, and logs its failure without the provider's message. @throws 502 PROVIDER_ERROR when `work` fails */
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

/** The provider of a request, and the tenant that it is for. */
type ProviderTarget = { kind: ProviderKind; tenant: string }

/**
 * Sends a request to a provider, and retries it once if the connection breaks off. The request must have an idempotency key,
 * or be safe to repeat.
 * @throws UpstreamUnreachable
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
 * Sends a request for the package of a vendor, and makes sure that it can read the response. A package may throw an
 * uncatchable error for anything but an object, and take a failure without an `error` for a success.
 * @throws UpstreamUnreachable, ProviderResponseError
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
 * Sends a request and returns the JSON of the response. `codeIn` returns the provider's error code from a failed response.
 * @throws UpstreamUnreachable, ProviderResponseError
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
