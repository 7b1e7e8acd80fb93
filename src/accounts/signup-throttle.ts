import { config } from '../config'
import { HOUR_MS } from '../core/clock'
import { tooManyRequests } from '../core/problem'
import { RateLimiter } from '../core/rate-limiter'
import { clientNetwork, isLocalRequest } from '../tenancy/client-connection'
import type { Tenant } from '../tenancy/tenants'

const signupsByAddress = new RateLimiter(20, HOUR_MS)
const signupsByTenant = new RateLimiter(500, HOUR_MS)

/**
 * Counts a sign-up: at most 20 per network and 500 per tenant in an hour. Local requests are not limited, for
 * development.
 * @throws 429 RATE_LIMITED
 */
export function countSignup({ tenant }: Pick<Tenant, 'tenant'>, request: Request) {
  if (config.ATOLL_RATE_LIMITS === 'off' || isLocalRequest(request)) return
  const wait = signupsByAddress.consume(`${tenant} ${clientNetwork(request)}`) || signupsByTenant.consume(tenant)
  if (wait) tooManyRequests(wait / 1000, 'Too many accounts were created.')
}
