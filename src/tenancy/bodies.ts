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
 * Counts a large body, of which so many bytes are known so far, as under way until its request is answered.
 * @throws 503 BUSY when its tenant has 32 MiB of such bodies under way, or all have 128 MiB
 */
export function holdBody(request: Request, tenant: string, bytes: number) {
  if (bytes <= LARGE) return
  const original = originalOf(request)
  const before = bodies.get(original)?.bytes ?? 0
  const more = bytes - before
  const ofTenant = (tenants.get(tenant) ?? 0) + more
  if (ofTenant > Math.max(OF_TENANT, bytes) || all + more > Math.max(OF_ALL, bytes)) throw new Busy()
  bodies.set(original, { tenant, bytes })
  tenants.set(tenant, ofTenant)
  all += more
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
