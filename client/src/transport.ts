import { toAtollError } from './errors'
import { platform, type TokenStorage, waitFor } from './platform'
import { toListText } from './queries'
import { createSession, type SessionPayload } from './session'
import { canFetchStreams, sendByXhr, type TextAnswer, type UploadProgress, withChunks } from './streams'
import { createVersionCheck, type Versions } from './version'

/** The headers and the signal of a single request. */
export type Init = { headers?: Record<string, string>; signal?: AbortSignal }

export type Options = {
  /** Where the server is, such as `https://data.example.com`. */
  url: string
  /** The id of the tenant, if the host does not identify it. */
  tenant?: string
  /** `token`: sessions have tokens in the storage (default). `cookie`: the browser has them, out of reach of scripts. */
  mode?: 'token' | 'cookie'
  /** Where tokens are kept; default: `localStorage` in browsers, in memory elsewhere. */
  storage?: TokenStorage
  /** An access token from elsewhere, or a function that returns one for each request. */
  token?: string | (() => string | Promise<string>)
  apiKey?: string
  fetch?: (input: string, init: RequestInit) => Promise<Response>
  /** Called once when the server has another version than the client; default: a warning on the console. */
  onVersionMismatch?: (versions: Versions) => void
}

/** A request: its body is `json`, or anything that `fetch` takes. */
export type Call = Init & {
  query?: string
  json?: unknown
  body?: unknown
  /** No credentials are sent. */
  isOpen?: boolean
  isStreamed?: boolean
  onProgress?: ((progress: UploadProgress) => void) | undefined
}

const MAX_RETRIES = 3
const MAX_RETRY_WAIT_S = 20

export type Transport = ReturnType<typeof createTransport>

export function createTransport(options: Options) {
  const { url, tenant, mode = 'token', storage, apiKey } = options
  const origin = url.replace(/\/+$/, '')
  const checkVersion = createVersionCheck(options.onVersionMismatch)
  const hasOwnSession = mode === 'token' && options.token === undefined && !apiKey
  const session = createSession({
    key: `atoll ${origin} ${tenant ?? ''}`.trim(),
    isKept: hasOwnSession,
    ...(storage && { storage }),
    refresh: (refreshToken) => sendOnce('POST', '/api/token/refresh', { json: { refreshToken } }),
  })

  async function sendOnce(method: string, path: string, call: Call, token?: string): Promise<TextAnswer> {
    const { query = '', json, signal, onProgress, isStreamed } = call
    const body = json === undefined ? call.body : JSON.stringify(json)
    const headers: Record<string, string> = {
      ...(tenant && { tenant }),
      ...(token && { authorization: `Bearer ${token}` }),
      ...(apiKey && !call.isOpen && { 'x-api-key': apiKey }),
      ...(json !== undefined && { 'content-type': 'application/json' }),
      ...call.headers,
    }
    const request = {
      ...{ method, headers },
      ...(body !== undefined && { body }),
      ...(signal && { signal }),
      ...(mode === 'cookie' && { credentials: 'include' as const }),
    }
    const needsXhr = onProgress || (isStreamed && !canFetchStreams())
    const answer =
      needsXhr && platform.XMLHttpRequest && !options.fetch
        ? await sendByXhr(origin + path + query, request, onProgress)
        : withChunks(await (options.fetch ?? fetch)(origin + path + query, request as RequestInit))
    checkVersion(answer.headers.get('x-atoll-version'))
    return answer
  }

  const getGivenToken = async () => (typeof options.token === 'function' ? options.token() : options.token)

  /** @throws AtollError when the server refuses the request */
  async function send(method: string, path: string, call: Call = {}): Promise<TextAnswer> {
    let token: string | undefined
    if (!call.isOpen) token = hasOwnSession ? await session.getToken() : await getGivenToken()
    let isRenewed = !hasOwnSession
    for (let retries = 0; ; ) {
      const answer = await sendOnce(method, path, call, token)
      if (answer.ok) return answer
      const error = await toAtollError(answer)
      if (error.code === 'UNAUTHENTICATED' && !call.isOpen) {
        const other = isRenewed ? undefined : await session.replace(token)
        if (!other && mode === 'cookie') await session.end()
        if (!other) throw error
        ;[token, isRenewed] = [other, true]
        continue
      }
      const seconds = isRepeatable(method, call) && error.status === 503 ? answer.headers.get('retry-after') : null
      if (seconds === null || !(Number(seconds) <= MAX_RETRY_WAIT_S) || retries++ === MAX_RETRIES) throw error
      await waitFor(Number(seconds) * 1000, call.signal)
    }
  }

  /** Returns the content of the answer. */
  const request = async <Content>(method: string, path: string, call?: Call) =>
    JSON.parse(await (await send(method, path, call)).text()) as Content

  return {
    origin,
    mode,
    session,
    send,
    request,
    get: <Content>(path: string, query: object = {}, init: Init = {}) =>
      request<Content>('GET', path, { ...init, query: toSearch(query) }),
    post: <Content>(path: string, json: unknown, init: Init = {}) => request<Content>('POST', path, { ...init, json }),
    put: <Content>(path: string, json: unknown, init: Init = {}) => request<Content>('PUT', path, { ...init, json }),
    remove: <Content = { success: true }>(path: string, init: Init = {}) => request<Content>('DELETE', path, init),
    /** Signs in: keeps the session that the server answers. */
    startSession: async (path: string, json: object, init: Init) => {
      const body = { ...json, ...(mode === 'token' && { authType: 'oauth' }) }
      const call = { ...init, json: body, isOpen: true }
      return session.accept((await request<{ payload: SessionPayload }>('POST', path, call)).payload)
    },
  }
}

const isRepeatable = (method: string, { headers = {} }: Call) =>
  method === 'GET' || Object.keys(headers).some((name) => name.toLowerCase() === 'idempotency-key')

/** Returns the query of a path: nothing for what is undefined. */
export function toSearch(query: object): string {
  const parameters = new URLSearchParams()
  for (const [name, value] of Object.entries(query))
    if (value !== undefined) parameters.append(name, Array.isArray(value) ? toListText(value) : String(value))
  const text = String(parameters)
  return text && `?${text}`
}

/** Returns a part of a path. An empty or dotted one would change the path, and so the request. */
export function toSegment(identifier: string) {
  if (['', '.', '..'].includes(identifier)) throw new TypeError(`"${identifier}" is not a valid identifier.`)
  return encodeURIComponent(identifier)
}
