import { FairShare } from '../core/fair-share'
import { originalRequest } from './client-connection'

// Bytes. The number of connections limits smaller bodies.
const MIN_COUNTED_BYTES = 1 << 20
const MAX_BYTES_PER_TENANT = 32 << 20
const MAX_TOTAL_BYTES = 128 << 20

const bodyShare = new FairShare({ running: { total: MAX_TOTAL_BYTES, perTenant: MAX_BYTES_PER_TENANT } })
const reservations = new WeakMap<Request, () => void>()

/**
 * Reserves memory for a large body until its request is answered. `bytes` have arrived or are announced, and `maxBytes`
 * may come. All that may come is reserved, because many started bodies would otherwise block each other. A body beyond
 * the limit is accepted when it is the only one.
 * @throws 503 BUSY when such bodies take 32 MiB of the tenant, or 128 MiB in total
 */
export function reserveBody(request: Request, tenant: string, bytes: number, maxBytes = bytes) {
  const original = originalRequest(request)
  if (bytes <= MIN_COUNTED_BYTES || reservations.has(original)) return
  reservations.set(original, bodyShare.reserve({ tenant, caller: 'bodies' }, maxBytes))
}

/** Releases the reservation at the end of a request. */
export function releaseBody(request: Request) {
  reservations.get(request)?.()
  reservations.delete(request)
}
