import { outside } from '../../../core/outside'
import { privateNetwork } from '../../addresses'
import { NotConnected } from './kind'

const TIMEOUT = 8_000
const LIMIT = 1 << 20 // bytes of an answer; of a list of models nobody reads more

/** `base` and what follows it, with one stroke between: whatever the path says, it stays on that server. */
export const joined = (base: string, path: string) => `${base.replace(/\/+$/, '')}/${path.replace(/^\/+/, '')}`

/** Asks a server for nothing in particular. @throws NotConnected with what it said, 502 OUTSIDE_UNREACHABLE, 503 */
export async function greet(tenant: string, url: string, init: RequestInit = {}): Promise<string> {
  const headers = new Headers(init.headers)
  headers.set('user-agent', 'atoll')
  const bounds = { tenant, timeout: TIMEOUT, limit: LIMIT, cut: true, privateNetwork: privateNetwork() }
  const { status } = await outside(url, { ...init, headers }, bounds)
  if (status === 401 || status === 403) throw new NotConnected(`It refuses our authentication (${status}).`)
  if (status >= 300) throw new NotConnected(`It answered ${status}.`)
  return `It answered ${status}.`
}

export const bearer = (token: string | undefined): RequestInit => ({
  headers: token ? [['authorization', `Bearer ${token}`]] : [],
})
