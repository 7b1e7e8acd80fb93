import type { PublicCtx } from '../accounts/context'
import { isJson, malformedBody } from '../core/body'
import type { Input } from './shapes'

/** What a lambda sees of the request that it answers. */
export type LambdaRequest = {
  method: string
  path: string
  query: Record<string, unknown>
  headers: Record<string, string>
  body: unknown
  rawBody: string
}

/** What callers sign in with is nobody else's to see. */
const CREDENTIAL_HEADERS = ['cookie', 'x-api-key']

/**
 * What a lambda sees of a request that came by HTTP, whose body was read as text already. Of several values of one name
 * in the query it sees the list. Where nobody signed in, `authorization` is the sender's and the lambda's own matter.
 * @throws 400 MALFORMED_BODY when what calls itself JSON is none
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

/** JSON where it is that, else the text; null for nothing. */
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

/** The same of what somebody runs a lambda with by hand, or what has happened. */
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
