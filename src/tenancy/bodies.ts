import { Busy } from '../storage/errors'
import { originalOf } from './caller'

// Bytes. Smaller bodies are bounded by how many connections there are.
const LARGE = 1 << 20
const OF_TENANT = 32 << 20
const OF_ALL = 128 << 20

type Held = { tenant: string; bytes: number }
const bodies = new WeakMap<Request, Held>()
const tenants = new Map<string, number>()
let all = 0

/**
 * Counts a large body, of which so many bytes are there or announced and `most` may come, as under way until its request
 * is answered: by all that may come, or else many that have begun would keep each other from their end.
 * @throws 503 BUSY when its tenant has 32 MiB of such bodies under way, or all have 128 MiB
 */
export function holdBody(request: Request, tenant: string, bytes: number, most = bytes) {
  const original = originalOf(request)
  if (bytes <= LARGE || bodies.has(original)) return
  const ofTenant = (tenants.get(tenant) ?? 0) + most
  // One that is larger than that is taken where it is alone.
  if (ofTenant > Math.max(OF_TENANT, most) || all + most > Math.max(OF_ALL, most)) throw new Busy()
  bodies.set(original, { tenant, bytes: most })
  tenants.set(tenant, ofTenant)
  all += most
}

/** For the end of a request. */
export function releaseBody(request: Request) {
  const held = bodies.get(request)
  if (!held) return
  bodies.delete(request)
  const left = (tenants.get(held.tenant) ?? 0) - held.bytes
  if (left > 0) tenants.set(held.tenant, left)
  else tenants.delete(held.tenant)
  all -= held.bytes
}
