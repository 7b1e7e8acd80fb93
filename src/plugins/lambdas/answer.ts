import { Problem } from '../../core/problem'
import { isHarmlessCookie, PROXY_ORDERS } from '../headers'
import type { Shape } from './sandbox/protocol'

/** What a lambda answers. `body` is text, JSON unless the headers say otherwise, or bytes; null where there is none. */
export type LambdaAnswer = {
  status: number
  headers: Record<string, string>
  body: string | Uint8Array<ArrayBuffer> | null
}

export const JSON_TYPE = 'application/json;charset=utf-8'
const EMPTY = [204, 205, 304]
const HEADERS = 8 << 10 // characters

/** What is between us and the next in line (RFC 9110 §7.6.1), ours to say, or about more than this answer. */
const REFUSED = new Set([
  ...['connection', 'content-length', 'keep-alive', 'proxy-authenticate', 'proxy-connection', 'te', 'trailer'],
  ...['transfer-encoding', 'upgrade', 'x-request-id', 'x-api-version', 'alt-svc', 'clear-site-data'],
  ...['service-worker-allowed', 'strict-transport-security', 'nel', 'report-to', ...PROXY_ORDERS],
])

/**
 * The answer that a lambda's value stands for: any JSON is the body of a 200, `{status, headers, body}` says it all.
 * @throws Error with a sentence about what makes no sense
 */
export function answerOf({ value, shape }: { value: string; shape: Shape }): LambdaAnswer {
  if (shape === 'value') return { status: 200, headers: { 'content-type': JSON_TYPE }, body: value }
  const {
    status,
    headers: given = {},
    body,
  } = JSON.parse(value) as { status: unknown; headers?: unknown; body?: unknown }
  if (!Number.isInteger(status) || Number(status) < 200 || Number(status) > 599)
    throw new Error('A lambda answers a status from 200 to 599.')
  const headers = checked(given)
  if (EMPTY.includes(Number(status)) || body === undefined) return { status: Number(status), headers, body: null }
  if (shape === 'bytes') {
    headers['content-type'] ??= 'application/octet-stream'
    return { status: Number(status), headers, body: new Uint8Array(Buffer.from(`${body}`, 'base64')) }
  }
  headers['content-type'] ??= typeof body === 'string' ? 'text/plain;charset=utf-8' : JSON_TYPE
  return { status: Number(status), headers, body: typeof body === 'string' ? body : JSON.stringify(body) }
}

function checked(given: unknown): Record<string, string> {
  if (given === null || typeof given !== 'object' || Array.isArray(given))
    throw new Error('The headers of an answer are an object.')
  const headers: Record<string, string> = {}
  let size = 0
  for (const [name, value] of Object.entries(given)) {
    const known = name.toLowerCase()
    if (!/^[!#$%&'*+.^_`|~0-9a-z-]{1,100}$/.test(known)) throw new Error('The name of a header makes no sense.')
    if (REFUSED.has(known)) throw new Error(`A lambda cannot set the header "${known}".`)
    if (!['string', 'number'].includes(typeof value) || !/^[\t\x20-\x7e\x80-\xff]*$/.test(`${value}`))
      throw new Error(`The header "${known}" must be a text of one line.`)
    // What a browser is told here counts for the whole API: no answer may sign somebody in.
    if (known === 'set-cookie' && !isHarmlessCookie(`${value}`))
      throw new Error('A lambda can only set cookies that have a name, not like "atoll_…", and no Domain.')
    headers[known] = `${value}`
    size += name.length + headers[known].length
  }
  if (size > HEADERS) throw new Error(`The headers of an answer have at most ${HEADERS} characters.`)
  return headers
}

/** It as a response. */
export const responseOf = ({ body, ...init }: LambdaAnswer) => new Response(body, init)

/** Why a run has no answer. */
export type Failed = { status: number; code: string; message: string; stack?: string }

const FAILED = 'The lambda failed. Its log tells why (admins: GET /api/lambdas/:id/logs).'

/** The same for callers: what a lambda has thrown is told only to those who may read its log. */
export function problemOf({ status, code, message, stack }: Failed, privileged: boolean) {
  if (code !== 'LAMBDA_FAILED') return new Problem(status, code, message)
  if (!privileged) return new Problem(status, code, FAILED)
  return new Problem(status, code, message, { details: { stack } })
}
