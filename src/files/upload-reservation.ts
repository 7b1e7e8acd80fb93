import { config } from '../config'
import { openQuota } from '../limits/quota-check'
import type { QuotaReservation } from '../limits/quota-use'
import type { Tenant } from '../tenancy/tenants'

/** Opens a reservation of storage for what a request uploads; undefined where there is no quota. */
export const openUploadReservation = (tenant: Pick<Tenant, 'tenant'>, { headers }: Request) =>
  openQuota(tenant, 'storage', Number(headers.get('content-length')) || config.ATOLL_FILE_LIMIT)

/** Passes chunks on, and reserves their bytes, so that what exceeds a quota is not written. @throws 403 QUOTA_EXCEEDED */
export async function* reserveBytes(chunks: AsyncIterable<Uint8Array>, reservation: QuotaReservation | undefined) {
  for await (const chunk of chunks) {
    reservation?.add(chunk.byteLength)
    yield chunk
  }
}
