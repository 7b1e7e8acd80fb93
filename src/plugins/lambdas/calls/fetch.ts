import { config } from '../../../config'
import { outside } from '../../../core/outside'
import { invalid, Problem } from '../../../core/problem'
import type { Call } from './calls'

const MOST = 50 // of a run
const TIME = 10_000 // ms
const GRACE = 1_000 // ms
const SIZE = 1 << 20 // of what is sent, and of what comes back
const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']
/** What belongs to the connection, or would lead to another server behind the same one. */
const REFUSED = /^(host|connection|content-length|transfer-encoding|upgrade|te|trailer|expect|keep-alive|proxy-.*)$/

/** Asks another server for a lambda. Redirections are not followed. */
export const fetching: Call = async (asking, url, method, pairs, body) => {
  if (++asking.fetches > MOST)
    throw new Problem(429, 'TOO_MANY_FETCHES', `A run of a lambda asks other servers at most ${MOST} times.`)
  const address = typeof url === 'string' ? URL.parse(url) : null
  if (!address || !/^https?:$/.test(address.protocol) || address.username || address.password)
    return invalid({ path: 'url', message: 'Give an address that begins with https://, without a password.' })
  const verb = String(method).toUpperCase()
  if (!METHODS.includes(verb)) invalid({ path: 'method', message: `method must be one of ${METHODS.join(', ')}.` })
  if (typeof body === 'string' && body.length > SIZE)
    invalid({ path: 'body', message: `A lambda sends at most ${SIZE >> 20} MiB.` })
  // It outlives a run whose time is over first: that ends as such, whatever it waits for, and ends this by its signal.
  const left = asking.deadline - performance.now()
  const timeout = left > TIME + GRACE ? TIME : TIME + GRACE
  const response = await outside(
    address.href,
    {
      method: verb,
      headers: headersOf(pairs),
      signal: asking.signal,
      ...(typeof body === 'string' && body && { body }),
    },
    { tenant: asking.ctx.tenant, timeout, limit: SIZE, privateNetwork: config.ATOLL_ALLOW_PRIVATE_NETWORK === 'on' },
  )
  const bytes = Buffer.from(await response.arrayBuffer())
  return { status: response.status, headers: Object.fromEntries(response.headers), body: bytes.toString('base64') }
}

function headersOf(pairs: unknown): Headers {
  const headers = new Headers({ 'user-agent': 'atoll' })
  for (const [name, value] of Array.isArray(pairs) ? pairs.slice(0, 100) : []) {
    if (REFUSED.test(`${name}`.toLowerCase()))
      invalid({ path: 'headers', message: `A lambda cannot send the header "${`${name}`.slice(0, 100)}".` })
    try {
      headers.set(`${name}`, `${value}`)
    } catch {
      invalid({ path: 'headers', message: `The header "${`${name}`.slice(0, 100)}" makes no sense.` })
    }
  }
  return headers
}
