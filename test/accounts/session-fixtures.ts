import { createSession } from '../../src/accounts/sessions'
import { moveClock, now } from '../../src/core/clock'
import type { createTestTenant, TestResponse, TestUser } from '../test-tenant'

type TestTenant = Awaited<ReturnType<typeof createTestTenant>>

/** The payload of a sign-in with `authType: 'oauth'`. */
export type TokenPair = { token: string; refreshToken: string; expiresIn: number }

export const [SECOND, MINUTE, DAY] = [1000, 60_000, 86_400_000]

/** Advances the clock by this many milliseconds. */
export const advanceClock = (ms: number) => moveClock(now() + ms)
export const resetClock = () => moveClock()

export const bearer = (token: string) => ({ authorization: `Bearer ${token}` })

const device = { userAgent: 'a browser', address: '192.0.2.1' }

/** Signs a user in for tokens without hashing a password. */
export async function signInForTokens({ tenant, users, anonymous }: TestTenant, name: TestUser): Promise<TokenPair> {
  const { key } = await createSession(tenant, users[name], 'oauth', device)
  return (await anonymous.post('/token/refresh', { refreshToken: key })).body.payload
}

/** Signs a user in for a cookie without hashing a password. */
export async function signInForCookie({ id, tenant, users }: TestTenant, name: TestUser) {
  const { key } = await createSession(tenant, users[name], 'cookie', device)
  return { cookie: `atoll_${id}=${key}` }
}

/** Returns a client with a fresh session, for requests that API tokens may not make. */
export const createSignedInClient = async (tenant: TestTenant, name: TestUser) =>
  tenant.anonymous.with(await signInForCookie(tenant, name))

/** Returns the session cookie of a response as a browser sends it back, and its attributes. */
export function readSetCookie({ headers }: TestResponse) {
  // The session cookie comes first; a sign-in also sets one for the device.
  const [cookie = '', ...attributes] = (headers.getSetCookie()[0] ?? '').split('; ')
  return { cookie, attributes: attributes.sort() }
}

/** Whether a response deletes the session cookie of the tenant. */
export function clearsSessionCookie(answer: TestResponse, { id }: TestTenant) {
  const { cookie, attributes } = readSetCookie(answer)
  return cookie === `atoll_${id}=` && attributes.includes('Max-Age=0') && attributes.includes('Path=/')
}
