import createClient, { type Middleware } from 'openapi-fetch'
import { connection, noteAnswer } from './connection'
import { ConnectionLost, readProblem } from './problem'
import type { paths } from './schema'
import { commonHeaders, waitForSignIn } from './session'
import { noteSuspension } from './suspension'

/** Here, 401 says that the credentials are wrong, not that a session has ended. */
const SIGN_IN_PATHS = /^\/api\/(signin|signup|setup|password|auth)/

async function readRefusal(response: Response) {
  const problem = await readProblem(response)
  noteSuspension(problem)
  return problem
}

const sentCopies = new Map<string, Request>()

/** Returns the error of a request without an answer, which the page then shows everywhere; a cancelled one stays as it is. */
function toConnectionError(error: unknown): Error {
  if (error instanceof Error && error.name === 'AbortError') return error
  connection.set('lost')
  return new ConnectionLost()
}

const handleSession: Middleware = {
  onRequest({ request, id }) {
    for (const [name, value] of Object.entries(commonHeaders())) request.headers.set(name, value)
    sentCopies.set(id, request.clone())
    return request
  },
  async onResponse({ response, request, schemaPath, id, options }) {
    const copy = sentCopies.get(id)
    sentCopies.delete(id)
    noteAnswer()
    if (response.ok || response.status === 304) return response
    if (response.status !== 401 || SIGN_IN_PATHS.test(schemaPath) || request.headers.has('x-no-sign-in') || !copy)
      throw await readRefusal(response)
    await waitForSignIn()
    // Called as a method of `options`, the browser's fetch refuses to work.
    const { fetch: send } = options
    const retried = await send(copy).catch((error) => {
      throw toConnectionError(error)
    })
    if (!retried.ok) throw await readRefusal(retried)
    return retried
  },
  onError({ error, id }) {
    sentCopies.delete(id)
    return toConnectionError(error)
  },
}

/** The API, typed by its description. A refused request throws an `ApiProblem`; one after the session ended waits for a sign-in. */
export const api = createClient<paths>({
  baseUrl: location.origin,
  credentials: 'same-origin',
  // The query language writes filters as field[operator]=value.
  querySerializer: (query) =>
    Object.entries(query)
      .filter(([, value]) => value !== undefined && value !== '')
      .map(([key, value]) => `${encodeURIComponent(key)}=${encodeURIComponent(String(value))}`)
      .join('&'),
})
api.use(handleSession)

/** Returns the content of an answer. @throws ApiProblem when the server refused the request, ConnectionLost */
export const fetchData = async <Data>(answer: Promise<{ data?: Data }>): Promise<Data> => (await answer).data as Data
