import type { OpenCtx } from '../accounts/guard'
import { throttling } from '../accounts/guests'
import { config } from '../config'
import { invalid } from '../core/problem'

const GUESTS = 10 // changes in 5 s
const throttle = throttling(GUESTS, 5_000, 'Too many changes by guests.')

/** A batch that could never pass is refused at once (400). */
export function throttleGuests(ctx: OpenCtx, blueprint: string, request: Request, changes = 1) {
  if (!ctx.actor && config.ATOLL_RATE_LIMITS === 'on' && changes > GUESTS)
    invalid({ path: '/operations', message: `A guest makes at most ${GUESTS} changes at once.` })
  throttle(ctx, blueprint, request, changes)
}
