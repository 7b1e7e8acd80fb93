import { fetchExternal } from '../../core/http-client'
import { isPrivateNetworkAllowed } from '../url-policy'
import { NotConnected } from './connection-kind'

const PROBE_TIMEOUT_MS = 8_000
const MAX_ANSWER_BYTES = 1 << 20 // bytes read of an answer, such as a list of models

/** Returns `base` and `path` with one slash between them, so that no path leads to another host. */
export const joinUrl = (base: string, path: string) => `${base.replace(/\/+$/, '')}/${path.replace(/^\/+/, '')}`

/** Calls a server and returns a sentence. @throws NotConnected unless it succeeds, 502 OUTSIDE_UNREACHABLE, 503 */
export async function probe(tenant: string, url: string, init: RequestInit = {}): Promise<string> {
  const headers = new Headers(init.headers)
  headers.set('user-agent', 'atoll')
  const limits = {
    tenant,
    timeout: PROBE_TIMEOUT_MS,
    limit: MAX_ANSWER_BYTES,
    truncate: true,
    privateNetwork: isPrivateNetworkAllowed(),
  }
  const { status } = await fetchExternal(url, { ...init, headers }, limits)
  if (status === 401 || status === 403) throw new NotConnected(`The server rejected the credentials (${status}).`)
  if (status >= 300) throw new NotConnected(`The server answered ${status}.`)
  return `The server answered ${status}.`
}

export const toBearerInit = (token: string | undefined): RequestInit => ({
  headers: token ? [['authorization', `Bearer ${token}`]] : [],
})
