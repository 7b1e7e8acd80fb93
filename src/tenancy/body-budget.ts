import { Busy } from '../storage/errors'
import { originalRequest } from './client-connection'

// Bytes. The number of connections limits smaller bodies.
const MIN_COUNTED_BYTES = 1 << 20
const MAX_BYTES_PER_TENANT = 32 << 20
const MAX_TOTAL_BYTES = 128 << 20

type BodyReservation = { tenant: string; bytes: number }
const reservations = new WeakMap<Request, BodyReservation>()
const bytesByTenant = new Map<string, number>()
let totalBytes = 0

/**
 * Reserves memory for a large body until its request is answered. `bytes` have arrived or are announced, and `maxBytes`
 * may come. All that may come is reserved, because many started bodies would otherwise block each other.
 * @throws 503 BUSY when such bodies take 32 MiB of the tenant, or 128 MiB in total
 */
export function reserveBody(request: Request, tenant: string, bytes: number, maxBytes = bytes) {
  const original = originalRequest(request)
  if (bytes <= MIN_COUNTED_BYTES || reservations.has(original)) return
  const ofTenant = (bytesByTenant.get(tenant) ?? 0) + maxBytes
  // A body beyond the limit is accepted when it is the only one.
  if (
    ofTenant > Math.max(MAX_BYTES_PER_TENANT, maxBytes) ||
    totalBytes + maxBytes > Math.max(MAX_TOTAL_BYTES, maxBytes)
  )
    throw new Busy()
  reservations.set(original, { tenant, bytes: maxBytes })
  bytesByTenant.set(tenant, ofTenant)
  totalBytes += maxBytes
}

/** Releases the reservation at the end of a request. */
export function releaseBody(request: Request) {
  const reservation = reservations.get(request)
  if (!reservation) return
  reservations.delete(request)
  const remaining = (bytesByTenant.get(reservation.tenant) ?? 0) - reservation.bytes
  if (remaining > 0) bytesByTenant.set(reservation.tenant, remaining)
  else bytesByTenant.delete(reservation.tenant)
  totalBytes -= reservation.bytes
}
