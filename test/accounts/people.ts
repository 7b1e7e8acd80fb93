import { begin } from '../../src/accounts/sessions'
import { moveClock, now } from '../../src/core/clock'
import type { Answer, house, Name } from '../house'

type House = Awaited<ReturnType<typeof house>>

/** What a sign-in by `oauth` pays out. */
export type Pair = { token: string; refreshToken: string; expiresIn: number }

export const [SECOND, MINUTE, DAY] = [1000, 60_000, 86_400_000]

/** Lets this much time (ms) pass. */
export const later = (ms: number) => moveClock(now() + ms)
export const backToNow = () => moveClock(Date.now())

export const bearer = (token: string) => ({ authorization: `Bearer ${token}` })

const device = { userAgent: 'a browser', address: '192.0.2.1' }

/** Signs somebody in for tokens, without the time that a password takes. */
export async function pairOf({ tenant, users, stranger }: House, name: Name): Promise<Pair> {
  const { key } = await begin(tenant, users[name], 'oauth', device)
  return (await stranger.post('/token/refresh', { refreshToken: key })).body.payload
}

/** Signs somebody in for a cookie, without the time that a password takes. */
export async function cookieOf({ id, tenant, users }: House, name: Name) {
  const { key } = await begin(tenant, users[name], 'cookie', device)
  return { cookie: `atoll_${id}=${key}` }
}

/** The cookie that an answer gives, as a browser would send it back, and with which attributes it came. */
export function given({ headers }: Answer) {
  // The first is that of the session; a sign-in also gives one of the device.
  const [cookie = '', ...attributes] = (headers.getSetCookie()[0] ?? '').split('; ')
  return { cookie, attributes: attributes.sort() }
}

/** Whether an answer takes the tenant's cookie away. */
export function clears(answer: Answer, { id }: House) {
  const { cookie, attributes } = given(answer)
  return cookie === `atoll_${id}=` && attributes.includes('Max-Age=0') && attributes.includes('Path=/')
}
