import { config } from '../config'
import { Limiter } from '../core/limiter'
import { tooMany } from '../core/problem'
import { isLocal, networkOf } from '../tenancy/caller'
import type { Tenant } from '../tenancy/tenants'

const HOUR = 3_600_000 // ms
const byAddress = new Limiter(20, HOUR)
const byTenant = new Limiter(500, HOUR)

/** Counts a sign-up; a developer's own machine signs up as often as it likes. @throws 429 RATE_LIMITED */
export function countSignup({ tenant }: Pick<Tenant, 'tenant'>, request: Request) {
  if (config.ATOLL_RATE_LIMITS === 'off' || isLocal(request)) return
  const wait = byAddress.take(`${tenant} ${networkOf(request)}`) || byTenant.take(tenant)
  if (wait) tooMany(wait / 1000, 'Too many accounts were created.')
}
