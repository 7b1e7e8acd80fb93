import { config } from '../config'
import { tooManyRequests } from '../core/problem'
import { RateLimiter } from '../core/rate-limiter'
import { clientNetwork } from '../tenancy/client-connection'
import type { PublicCtx } from './context'

/**
 * Returns a function that limits guests to `max` actions per network in any `window` (ms). Guests have no account to
 * limit.
 * @throws 429 RATE_LIMITED
 */
export function createGuestRateLimit(max: number, window: number, message: string) {
  const limiter = new RateLimiter(max, window)
  return ({ tenant, actor }: PublicCtx, action: string, request: Request, count = 1) => {
    if (actor || config.ATOLL_RATE_LIMITS === 'off') return
    const wait = limiter.consume(`${tenant} ${action} ${clientNetwork(request)}`, count)
    if (wait) tooManyRequests(wait / 1000, message)
  }
}
