import { config } from '../config'
import { HOUR_MS } from '../core/clock'
import { log } from '../core/log'
import { RateLimiter } from '../core/rate-limiter'
import { emit } from '../jobs/outbox'
import type { Tenant } from '../tenancy/tenants'

/** How long a request of a stranger waits once its limit is reached. */
export const STRANGER_DELAY_MS = 3_000

const MAX_PER_HOUR = { 'sign-up': 500, 'e-mail sign-in': 2_000, 'forgotten password': 2_000 }

/** What people do before the tenant knows who they are. */
type StrangerAction = keyof typeof MAX_PER_HOUR

const limiters = Object.fromEntries(
  Object.entries(MAX_PER_HOUR).map(([action, max]) => [action, new RateLimiter(max, HOUR_MS)]),
) as Record<StrangerAction, RateLimiter>
const eventLimiter = new RateLimiter(1, HOUR_MS)

/**
 * Counts a request of somebody whom the tenant does not know. Beyond the limit of the tenant each waits a moment, with
 * the same answer for everybody, because a limit that rejected would let a few strangers lock out everybody else. Emits
 * an event for the admins, once an hour.
 */
export async function slowStrangers(tenant: Tenant, action: StrangerAction) {
  if (config.ATOLL_RATE_LIMITS === 'off' || !limiters[action].consume(tenant.tenant)) return
  if (!eventLimiter.consume(`${tenant.tenant} ${action}`)) {
    log.warn({ what: 'STRANGERS_SLOWED', tenant: tenant.tenant, action })
    await tenant.write((tx) =>
      emit(tenant, tx, {
        ...{ source: 'accounts', kind: 'signin', eventName: 'strangers-slowed' },
        metadata: { action, requests: MAX_PER_HOUR[action] },
      }),
    )
  }
  await Bun.sleep(STRANGER_DELAY_MS)
}
