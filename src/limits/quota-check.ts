import type { Tenant } from '../tenancy/tenants'
import { isQuotaExceeded } from './quota-description'
import { openReservation, type QuotaReservation } from './quota-use'
import { getQuotas } from './quotas'
import type { QuotaKind, Quotas } from './shapes'

type QuotaOwner = Pick<Tenant, 'tenant'>

/** The least that may be left of what is used in fractions. */
const SMALLEST_PART = 1e-6

/**
 * Returns a reservation to which what is added has to be added first; undefined where there is no quota. `expected` is
 * how much that may be, and `earlier` what counts as used besides, such as what a trial would have added.
 */
export function openQuota(
  { tenant }: QuotaOwner,
  kind: QuotaKind,
  expected: number,
  earlier = 0,
): undefined | Promise<QuotaReservation | undefined> {
  const open = ({ [kind]: limit }: Quotas) =>
    limit === undefined ? undefined : openReservation(tenant, kind, { limit, expected, earlier })
  const quotas = getQuotas(tenant)
  return quotas instanceof Promise ? quotas.then(open) : open(quotas)
}

/** Reserves so many of a kind; undefined where there is no quota. @throws 403 QUOTA_EXCEEDED */
export function reserveQuota(
  owner: QuotaOwner,
  kind: QuotaKind,
  count: number,
): undefined | Promise<QuotaReservation | undefined> {
  return openQuota(owner, kind, count)?.then((reservation) => {
    reservation?.add(count)
    return reservation
  })
}

/** Checks that something is left of a quota. @throws 403 QUOTA_EXCEEDED */
export const assertQuotaLeft = (owner: QuotaOwner, kind: QuotaKind): undefined | Promise<void> =>
  openQuota(owner, kind, SMALLEST_PART)?.then((reservation) => reservation?.assertFits(SMALLEST_PART))

/** What a body may have when storage is used up, so that something can still be switched off, restricted or renamed. */
const SMALL_CHANGE_LENGTH = 1_024

/** Checks that storage is left for a change, unless its body is small. @throws 403 QUOTA_EXCEEDED */
export const assertRoomForChange = (owner: QuotaOwner, body: unknown): undefined | Promise<void> =>
  assertQuotaLeft(owner, 'storage')?.catch((error) => {
    if (!isQuotaExceeded(error) || JSON.stringify(body ?? null).length > SMALL_CHANGE_LENGTH) throw error
  })
