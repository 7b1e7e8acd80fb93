import { config } from '../config'
import { HOUR_MS } from '../core/clock'
import { tooManyRequests } from '../core/problem'
import { RateLimiter } from '../core/rate-limiter'
import { clientNetwork, isLocalRequest, widerNetworks } from '../tenancy/client-connection'
import type { Tenant } from '../tenancy/tenants'
import { slowStrangers } from './stranger-throttle'

const MAX_SIGNUPS = 20 // per hour and network
const limiters = new Map([1, 4, 16].map((factor) => [factor, new RateLimiter(MAX_SIGNUPS * factor, HOUR_MS)]))

/**
 * Counts a sign-up: at most 20 per network in an hour, 80 per IPv6 /56 and 320 per /48. Beyond 500 at a tenant each
 * waits a moment. Local requests are not limited, for development.
 * @throws 429 RATE_LIMITED
 */
export async function countSignup(tenant: Tenant, request: Request) {
  if (config.ATOLL_RATE_LIMITS === 'off' || isLocalRequest(request)) return
  const network = clientNetwork(request)
  for (const each of [{ network, factor: 1 }, ...widerNetworks(network)]) {
    const wait = limiters.get(each.factor)!.consume(`${tenant.tenant} ${each.network}`)
    if (wait) tooManyRequests(wait / 1000, 'Too many accounts were created.')
  }
  await slowStrangers(tenant, 'sign-up')
}
