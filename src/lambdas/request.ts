import type { PublicCtx } from '../accounts/context'
import { isJson, malformedBody } from '../core/body'
import { tryParseJson } from '../core/json'
import { Problem } from '../core/problem'
import type { Input } from './shapes'

/** The request that a lambda receives. */
export type LambdaRequest = {
  method: string
  path: string
  query: Record<string, unknown>
  headers: Record<string, string>
  body: unknown
  rawBody: string
}

/** Headers with the caller's credentials, which a lambda must not see. */
const CREDENTIAL_HEADERS = ['cookie', 'x-api-key']

/**
 * Returns the request of a lambda for an HTTP request whose body was read as text. Several query values of one name
 * become a list. An anonymous caller's `authorization` is kept, for lambdas that check it themselves.
 * @throws 400 MALFORMED_BODY when the content type is JSON and the body is not, INVALID_INPUT when it is nested too deeply
 */
export function httpToLambdaRequest(
  { actor }: Pick<PublicCtx, 'actor'>,
  request: Request,
  rawBody: string,
): LambdaRequest {
  const { pathname, searchParams } = new URL(request.url)
  const headers = Object.fromEntries(request.headers)
  for (const name of [...CREDENTIAL_HEADERS, ...(actor ? ['authorization'] : [])]) delete headers[name]
  const names = [...new Set(searchParams.keys())].map((name) => {
    const values = searchParams.getAll(name)
    return [name, values.length > 1 ? values : values[0]] as const
  })
  const query = Object.fromEntries(names)
  const body = isJson(request) ? requireJson(rawBody) : parseBody(rawBody)
  return { method: request.method, path: pathname, query, headers, body, rawBody }
}

function requireJson(text: string): unknown {
  if (!text) return null
  const body = tryParseJson(text)
  if (body === undefined) throw malformedBody()
  if (isDeeperThan(body, MAX_BODY_DEPTH))
    throw new Problem(400, 'INVALID_INPUT', `The body is nested more than ${MAX_BODY_DEPTH} levels deep.`)
  return body
}

/** Returns the parsed JSON, or the text if it is not JSON or nested too deeply; null for an empty body. */
function parseBody(text: string): unknown {
  if (!text) return null
  const body = tryParseJson(text, text)
  return isDeeperThan(body, MAX_BODY_DEPTH) ? text : body
}

const MAX_BODY_DEPTH = 1_000 // levels; much deeper values cannot be serialized again

const isDeeperThan = (value: unknown, depth: number): boolean =>
  value !== null &&
  typeof value === 'object' &&
  (depth === 0 || Object.values(value).some((part) => isDeeperThan(part, depth - 1)))

/** Returns the request of a lambda for a manual run, or a run by an event. */
export function inputToLambdaRequest({
  method = 'POST',
  path = '/',
  query = {},
  headers = {},
  body,
  rawBody,
}: Input): LambdaRequest {
  const raw = rawBody ?? (body === undefined || body === null ? '' : JSON.stringify(body))
  return { method, path, query, headers, body: body === undefined ? parseBody(raw) : body, rawBody: raw }
}
