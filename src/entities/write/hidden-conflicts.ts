import type { Model } from '../../blueprints/model'
import type { Caller } from '../../blueprints/permissions'
import { config } from '../../config'
import { Problem, tooManyRequests } from '../../core/problem'
import { RateLimiter } from '../../core/rate-limiter'

/** Refused values of hidden fields that a caller may meet in an hour: each tells that some entity has the value. */
const conflictLimiter = new RateLimiter(60, 3_600_000)

const limiterKey = ({ tenant }: Model, { user }: Caller) => `${tenant} ${user}`

/**
 * Before a value is compared with those of others in a field that the caller may not read. Guests have limits of their own.
 * @throws 429 RATE_LIMITED for who has met too many of them, whatever the value is
 */
export function assertMayCompare(model: Model, by: Caller | undefined) {
  if (!by || config.ATOLL_RATE_LIMITS === 'off') return
  const wait = conflictLimiter.getWaitMs(limiterKey(model, by))
  if (wait) tooManyRequests(wait / 1000, 'Too many of your writes were rejected. Try again later.')
}

/** The refusal of a value that is taken in such a field: it names neither the field nor the reason. */
export function hiddenConflict(model: Model, by: Caller | undefined): Problem {
  if (by) conflictLimiter.consume(limiterKey(model, by))
  return new Problem(409, 'CONFLICT', 'This entity cannot be saved with these values. Ask an administrator.')
}
