import { version } from '../../package.json'
import type { Awaitable } from '../core/awaitable'
import { type HttpContext, sendSecret } from '../core/response-headers'

/** Tell clients the version of the server. Responses with a session or a profile have them, so others need not. */
export const VERSION_HEADERS = { 'x-atoll-version': version }

/** A value, and the `Set-Cookie` headers that are sent with it. */
export type WithCookies<Value> = { value: Value; cookies: string[] }

/** Sends the cookies, and returns the value. */
export async function sendCookies<Value>({ headers }: HttpContext['set'], answer: Awaitable<WithCookies<Value>>) {
  const { value, cookies } = await answer
  if (cookies.length) headers['set-cookie'] = cookies
  return value
}

/** Sends the cookies of a session, and returns its payload, which nobody may store. */
export async function sendSession<Payload>(set: HttpContext['set'], session: Awaitable<WithCookies<Payload>>) {
  const payload = await sendCookies(set, session)
  Object.assign(set.headers, VERSION_HEADERS)
  return sendSecret(set, { payload })
}
