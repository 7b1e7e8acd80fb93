import type { PublicCtx } from '../accounts/context'
import { isJson, malformedBody } from '../core/body'
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
 * @throws 400 MALFORMED_BODY when the content type is JSON and the body is not
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
  const body = parseBody(rawBody, isJson(request) ? throwMalformed : undefined)
  return { method: request.method, path: pathname, query, headers, body, rawBody }
}

/** Returns the parsed JSON, or `onInvalid` of other text; null for an empty body. */
function parseBody(text: string, onInvalid = (text: string): unknown => text): unknown {
  if (!text) return null
  try {
    return JSON.parse(text)
  } catch {
    return onInvalid(text)
  }
}

const throwMalformed = () => {
  throw malformedBody()
}

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
