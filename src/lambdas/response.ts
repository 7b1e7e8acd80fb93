import { HOP_BY_HOP_HEADERS } from '../core/hop-by-hop'
import { Problem } from '../core/problem'
import { isHarmlessCookie, PROXY_CONTROL_HEADERS } from '../core/proxy-headers'
import type { ResultFormat } from './sandbox/protocol'

/** The response of a lambda. `body` is text (JSON unless the headers say otherwise), bytes, or null for no body. */
export type LambdaResponse = {
  status: number
  headers: Record<string, string>
  body: string | Uint8Array<ArrayBuffer> | null
}

export const JSON_CONTENT_TYPE = 'application/json;charset=utf-8'
const EMPTY_BODY_STATUSES = [204, 205, 304]
const MAX_HEADERS_LENGTH = 8 << 10 // characters

/**
 * Hop-by-hop headers (RFC 9110 §7.6.1), headers that the server sets, and headers that affect more than one response.
 */
const FORBIDDEN_HEADERS = new Set([
  ...HOP_BY_HOP_HEADERS,
  ...['content-length', 'x-request-id', 'x-api-version', 'alt-svc', 'clear-site-data'],
  ...['service-worker-allowed', 'strict-transport-security', 'nel', 'report-to', ...PROXY_CONTROL_HEADERS],
])

/**
 * Returns the response for a lambda's value: `{status, headers, body}` is a whole response, other JSON the body of a
 * 200.
 * @throws Error with a sentence about an invalid response
 */
export function toLambdaResponse({ value, format }: { value: string; format: ResultFormat }): LambdaResponse {
  if (format === 'value') return { status: 200, headers: { 'content-type': JSON_CONTENT_TYPE }, body: value }
  const {
    status,
    headers: rawHeaders = {},
    body,
  } = JSON.parse(value) as { status: unknown; headers?: unknown; body?: unknown }
  if (!Number.isInteger(status) || Number(status) < 200 || Number(status) > 599)
    throw new Error('The status of a response must be from 200 to 599.')
  const headers = parseHeaders(rawHeaders)
  if (EMPTY_BODY_STATUSES.includes(Number(status)) || body === undefined)
    return { status: Number(status), headers, body: null }
  if (format === 'bytes') {
    headers['content-type'] ??= 'application/octet-stream'
    return { status: Number(status), headers, body: new Uint8Array(Buffer.from(`${body}`, 'base64')) }
  }
  headers['content-type'] ??= typeof body === 'string' ? 'text/plain;charset=utf-8' : JSON_CONTENT_TYPE
  return { status: Number(status), headers, body: typeof body === 'string' ? body : JSON.stringify(body) }
}

function parseHeaders(rawHeaders: unknown): Record<string, string> {
  if (rawHeaders === null || typeof rawHeaders !== 'object' || Array.isArray(rawHeaders))
    throw new Error('The headers of a response must be an object.')
  // Without a prototype, because a header may be called `__proto__`.
  const headers: Record<string, string> = Object.create(null)
  let size = 0
  for (const [name, value] of Object.entries(rawHeaders)) {
    const lowerName = name.toLowerCase()
    if (!/^[!#$%&'*+.^_`|~0-9a-z-]{1,100}$/.test(lowerName)) throw new Error('The name of a header is invalid.')
    if (FORBIDDEN_HEADERS.has(lowerName)) throw new Error(`A lambda cannot set the header "${lowerName}".`)
    if (!['string', 'number'].includes(typeof value) || !/^[\t\x20-\x7e\x80-\xff]*$/.test(`${value}`))
      throw new Error(`The header "${lowerName}" must be a single line of text.`)
    // A cookie applies to the whole API: a lambda must not be able to sign in a browser.
    if (lowerName === 'set-cookie' && !isHarmlessCookie(`${value}`))
      throw new Error('A cookie set by a lambda needs a name that does not begin with "atoll_", and no Domain.')
    headers[lowerName] = `${value}`
    size += name.length + headers[lowerName].length
  }
  if (size > MAX_HEADERS_LENGTH)
    throw new Error(`The headers of a response can have at most ${MAX_HEADERS_LENGTH} characters.`)
  return headers
}

/** Returns the response of a lambda for HTTP. */
export const toResponse = ({ body, ...init }: LambdaResponse) => new Response(body, init)

/** Why a run has no response. */
export type RunFailure = { status: number; code: string; message: string; stack?: string }

const FAILED_MESSAGE = 'The lambda failed. Admins find details in its log (GET /api/lambdas/:id/logs).'

/** Returns the problem for the caller. Only a caller who may read the log sees what the lambda has thrown. */
export function toProblem({ status, code, message, stack }: RunFailure, isPrivileged: boolean) {
  if (code !== 'LAMBDA_FAILED') return new Problem(status, code, message)
  if (!isPrivileged) return new Problem(status, code, FAILED_MESSAGE)
  return new Problem(status, code, message, { details: { stack } })
}
