import type { Model } from '../../blueprints/model'
import type { Caller } from '../../blueprints/permissions'
import { config } from '../../config'
import { HOUR_MS } from '../../core/clock'
import { Problem, tooManyRequests } from '../../core/problem'
import { RateLimiter } from '../../core/rate-limiter'

/** Rejected values of hidden fields per caller and hour; each rejection reveals that some entity has the value. */
const conflictLimiter = new RateLimiter(60, HOUR_MS)

const limiterKey = ({ tenant }: Model, { user }: Caller) => `${tenant} ${user}`

/**
 * Checks the limit before a value is compared in a unique field that the caller may not read. Guests have their own
 * limits.
 * @throws 429 RATE_LIMITED when the caller has had too many such conflicts, whatever the value is
 */
export function assertMayCompare(model: Model, by: Caller | undefined) {
  if (!by || config.ATOLL_RATE_LIMITS === 'off') return
  const wait = conflictLimiter.getWaitMs(limiterKey(model, by))
  if (wait) tooManyRequests(wait / 1000, 'Too many of your writes were rejected. Try again later.')
}

/** Returns the error for a duplicate value in a hidden field. It names neither the field nor the reason. */
export function hiddenConflict(model: Model, by: Caller | undefined): Problem {
  if (by) conflictLimiter.consume(limiterKey(model, by))
  return new Problem(409, 'CONFLICT', 'This entity cannot be saved with these values. Ask an administrator.')
}
