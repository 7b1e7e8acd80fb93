import type { Model } from '../blueprints/model'
import type { Caller } from '../blueprints/rules'
import { config } from '../config'
import { Limiter } from '../core/limiter'
import { Problem, tooMany } from '../core/problem'

/** Refused values of hidden fields that a caller may meet in an hour: each tells that some entity has the value. */
const conflicts = new Limiter(60, 3_600_000)

const keyOf = ({ tenant }: Model, { user }: Caller) => `${tenant} ${user}`

/**
 * Before a value is compared with those of others in a field that the caller may not read. Guests have limits of their own.
 * @throws 429 RATE_LIMITED for who has met too many of them, whatever the value is
 */
export function assertMayCompare(model: Model, by: Caller | undefined) {
  if (!by || config.ATOLL_RATE_LIMITS === 'off') return
  const wait = conflicts.waitFor(keyOf(model, by))
  if (wait) tooMany(wait / 1000, 'Too many of your entities could not be saved.')
}

/** The refusal of a value that is taken in such a field: it names neither the field nor the reason. */
export function hiddenConflict(model: Model, by: Caller | undefined): Problem {
  if (by) conflicts.take(keyOf(model, by))
  return new Problem(409, 'CONFLICT', 'This entity cannot be saved with these values. Ask an administrator.')
}
