import type { PublicCtx } from '../../accounts/context'
import { createGuestRateLimit } from '../../accounts/guest-rate-limit'
import { config } from '../../config'
import { badRequest } from '../../core/problem'

const MAX_GUEST_WRITES = 10 // changes per 5 s
const limitWrites = createGuestRateLimit(MAX_GUEST_WRITES, 5_000, 'Too many changes by guests. Try again later.')

/** Limits the writes of guests. @throws 429; 400 for a batch that exceeds the limit by itself */
export function limitGuestWrites(ctx: PublicCtx, blueprint: string, request: Request, changes = 1) {
  if (!ctx.actor && config.ATOLL_RATE_LIMITS === 'on' && changes > MAX_GUEST_WRITES)
    badRequest({ path: '/operations', message: `Guests can make at most ${MAX_GUEST_WRITES} changes per request.` })
  limitWrites(ctx, blueprint, request, changes)
}
