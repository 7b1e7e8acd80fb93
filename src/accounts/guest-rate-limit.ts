import { config } from '../config'
import { tooManyRequests } from '../core/problem'
import { RateLimiter } from '../core/rate-limiter'
import { clientNetwork } from '../tenancy/client-connection'
import type { PublicCtx } from './context'

/** Refuses (429) a guest beyond `most` in any `window` (ms). They have no account to block, so their address answers for them. */
export function createGuestRateLimit(max: number, window: number, message: string) {
  const limiter = new RateLimiter(max, window)
  return ({ tenant, actor }: PublicCtx, action: string, request: Request, count = 1) => {
    if (actor || config.ATOLL_RATE_LIMITS === 'off') return
    const wait = limiter.consume(`${tenant} ${action} ${clientNetwork(request)}`, count)
    if (wait) tooManyRequests(wait / 1000, message)
  }
}
