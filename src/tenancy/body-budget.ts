import { Busy } from '../storage/errors'
import { originalRequest } from './client-connection'

// Bytes. Smaller bodies are bounded by how many connections there are.
const MIN_COUNTED_BYTES = 1 << 20
const MAX_BYTES_PER_TENANT = 32 << 20
const MAX_TOTAL_BYTES = 128 << 20

type BodyReservation = { tenant: string; bytes: number }
const reservations = new WeakMap<Request, BodyReservation>()
const bytesByTenant = new Map<string, number>()
let totalBytes = 0

/**
 * Counts a large body, of which so many bytes are there or announced and `most` may come, as under way until its request
 * is answered: by all that may come, or else many that have begun would keep each other from their end.
 * @throws 503 BUSY when its tenant has 32 MiB of such bodies under way, or all have 128 MiB
 */
export function reserveBody(request: Request, tenant: string, bytes: number, maxBytes = bytes) {
  const original = originalRequest(request)
  if (bytes <= MIN_COUNTED_BYTES || reservations.has(original)) return
  const ofTenant = (bytesByTenant.get(tenant) ?? 0) + maxBytes
  // One that is larger than that is taken where it is alone.
  if (
    ofTenant > Math.max(MAX_BYTES_PER_TENANT, maxBytes) ||
    totalBytes + maxBytes > Math.max(MAX_TOTAL_BYTES, maxBytes)
  )
    throw new Busy()
  reservations.set(original, { tenant, bytes: maxBytes })
  bytesByTenant.set(tenant, ofTenant)
  totalBytes += maxBytes
}

/** For the end of a request. */
export function releaseBody(request: Request) {
  const reservation = reservations.get(request)
  if (!reservation) return
  reservations.delete(request)
  const remaining = (bytesByTenant.get(reservation.tenant) ?? 0) - reservation.bytes
  if (remaining > 0) bytesByTenant.set(reservation.tenant, remaining)
  else bytesByTenant.delete(reservation.tenant)
  totalBytes -= reservation.bytes
}
