import { tryParseJson } from '../core/json'
import { Problem } from '../core/problem'

/** A server, an API token of one of its tenants, and the tenant, if its host does not lead to it. */
export type ServerAddress = { url: string; token: string; tenant?: string }

/** Sends a request to the API of a server. @throws what the server refuses, 502 SERVER_UNREACHABLE */
export async function fetchFromServer({ url, token, tenant }: ServerAddress, path: string, init: RequestInit = {}) {
  const headers = { 'x-api-key': token, ...(tenant && { tenant }), ...(init.headers as Record<string, string>) }
  const response = await fetch(`${url.replace(/\/+$/, '')}${path}`, { ...init, headers }).catch((cause) => {
    throw new Problem(502, 'SERVER_UNREACHABLE', `Cannot reach ${url}: ${cause.message}`, { cause })
  })
  if (response.ok) return response
  const answer = tryParseJson(await response.text()) as
    | { code?: string; message?: string; details?: unknown }
    | undefined
  const { code, message = '', details } = answer ?? {}
  if (!code) throw unexpectedAnswer(url, response.status)
  throw new Problem(response.status, code, message, details === undefined ? {} : { details })
}

/** Returns the error of an answer that is not that of Atoll. */
export const unexpectedAnswer = (url: string, status: number) =>
  new Problem(
    status < 400 ? 502 : status,
    'UNEXPECTED_ANSWER',
    `${url} returned ${status}, but not from Atoll. Check the URL and the proxy in front of the server.`,
  )
