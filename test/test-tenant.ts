import { issueApiToken } from '../src/accounts/api-tokens'
import { registerUser } from '../src/accounts/users/users'
import { config } from '../src/config'
import { handleRequest } from '../src/gateway'
import { createTenant } from '../src/tenancy/tenants'

/** An answer: `body` is the parsed JSON, or the text where it is not JSON. */
// biome-ignore lint/suspicious/noExplicitAny: an answer can be anything, and expectations say what it is
export type TestResponse = { status: number; headers: Headers; body: any }

export type TestRequest = {
  headers?: Record<string, string>
  body?: unknown
  raw?: string | Uint8Array | ReadableStream
}

/** Sends a request through the complete gateway. `raw` is a body that is sent unchanged. */
export async function callApi(
  method: string,
  url: string,
  { headers = {}, body, raw }: TestRequest = {},
): Promise<TestResponse> {
  const sent = body === undefined ? raw : JSON.stringify(body)
  const json: Record<string, string> = body === undefined ? {} : { 'content-type': 'application/json' }
  const { host } = new URL(url)
  const response = await handleRequest(new Request(url, { method, headers: { host, ...json, ...headers }, body: sent }))
  const text = await response.text()
  return { status: response.status, headers: response.headers, body: parseBody(text) }
}

function parseBody(text: string) {
  try {
    return text ? JSON.parse(text) : undefined
  } catch {
    return text
  }
}

/** Returns the status and the error code of an answer: `[status, code]`. */
export const statusAndCode = ({ status, body }: TestResponse) => [status, body?.code]

/** Returns a client of one tenant, with these headers on every request. Paths are relative to `/api`. */
export function apiClient(origin: string, headers: Record<string, string> = {}) {
  const send =
    (method: string) =>
    (path: string, body?: unknown, more: Record<string, string> = {}) =>
      callApi(method, `${origin}/api${path}`, { headers: { ...headers, ...more }, body })
  return {
    get: (path: string, more: Record<string, string> = {}) => send('GET')(path, undefined, more),
    post: send('POST'),
    put: send('PUT'),
    patch: send('PATCH'),
    delete: (path: string, more: Record<string, string> = {}) => send('DELETE')(path, undefined, more),
    with: (more: Record<string, string>) => apiClient(origin, { ...headers, ...more }),
  }
}
export type ApiClient = ReturnType<typeof apiClient>

const ROLES_BY_USER = { admin: ['admin', 'user'], editor: ['plugin'], user: ['user'], other: ['user'] }
export type TestUser = keyof typeof ROLES_BY_USER

let otherTenant: Promise<unknown> | undefined

/**
 * Creates a tenant with one user per name. `as('admin')` is an API client with that user's API token. The users have no
 * passwords, because hashing one takes longer than most tests; sign up a user that has to sign in.
 */
export async function createTestTenant() {
  // An only tenant would answer at every host.
  otherTenant ??= createTenant(`t${crypto.randomUUID()}`)
  await otherTenant
  const id = `t${crypto.randomUUID()}`
  const tenant = await createTenant(id, [`${id}.test`])
  const users = {} as Record<TestUser, string>
  const tokens = {} as Record<TestUser, string>
  for (const name of Object.keys(ROLES_BY_USER) as TestUser[]) {
    const user = await registerUser(tenant, { username: name, email: `${name}@${id}.test` }, ROLES_BY_USER[name])
    users[name] = user._id
    tokens[name] = (await issueApiToken(tenant, user._id, { nickname: 'test' })).token
  }
  const origin = `http://${id}.test`
  return {
    id,
    tenant,
    origin,
    users,
    tokens,
    as: (name: TestUser) => apiClient(origin, { 'x-api-key': tokens[name] }),
    anonymous: apiClient(origin),
  }
}

/** Switches all rate limits off until the end of the block, for tests with many requests of one caller. */
export function withoutRateLimits(): Disposable {
  const original = config.ATOLL_RATE_LIMITS
  config.ATOLL_RATE_LIMITS = 'off'
  return {
    [Symbol.dispose]: () => {
      config.ATOLL_RATE_LIMITS = original
    },
  }
}

/** Permissions that grant every operation in the scope to all users with one of the roles. */
export const fullAccessRules = (scope: 'user' | 'tenant', ...roleBased: string[]) =>
  ['create', 'read', 'update', 'delete'].map((operation) => ({ operation, scope, roleBased }))
