import { createSession } from '../../src/accounts/sessions'
import { moveClock, now } from '../../src/core/clock'
import type { createTestTenant, TestResponse, TestUser } from '../test-tenant'

type House = Awaited<ReturnType<typeof createTestTenant>>

/** What a sign-in by `oauth` pays out. */
export type TokenPair = { token: string; refreshToken: string; expiresIn: number }

export const [SECOND, MINUTE, DAY] = [1000, 60_000, 86_400_000]

/** Lets this much time (ms) pass. */
export const advanceClock = (ms: number) => moveClock(now() + ms)
export const resetClock = () => moveClock(Date.now())

export const bearer = (token: string) => ({ authorization: `Bearer ${token}` })

const device = { userAgent: 'a browser', address: '192.0.2.1' }

/** Signs somebody in for tokens, without the time that a password takes. */
export async function signInForTokens({ tenant, users, stranger }: House, name: TestUser): Promise<TokenPair> {
  const { key } = await createSession(tenant, users[name], 'oauth', device)
  return (await stranger.post('/token/refresh', { refreshToken: key })).body.payload
}

/** Signs somebody in for a cookie, without the time that a password takes. */
export async function signInForCookie({ id, tenant, users }: House, name: TestUser) {
  const { key } = await createSession(tenant, users[name], 'cookie', device)
  return { cookie: `atoll_${id}=${key}` }
}

/** A client of somebody who has just signed in, for what API tokens may not do. */
export const createSignedInClient = async (here: House, name: TestUser) =>
  here.stranger.with(await signInForCookie(here, name))

/** The cookie that an answer gives, as a browser would send it back, and with which attributes it came. */
export function readSetCookie({ headers }: TestResponse) {
  // The first is that of the session; a sign-in also gives one of the device.
  const [cookie = '', ...attributes] = (headers.getSetCookie()[0] ?? '').split('; ')
  return { cookie, attributes: attributes.sort() }
}

/** Whether an answer takes the tenant's cookie away. */
export function clearsSessionCookie(answer: TestResponse, { id }: House) {
  const { cookie, attributes } = readSetCookie(answer)
  return cookie === `atoll_${id}=` && attributes.includes('Max-Age=0') && attributes.includes('Path=/')
}
