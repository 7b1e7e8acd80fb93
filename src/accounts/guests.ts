import { config } from '../config'
import { Limiter } from '../core/limiter'
import { tooMany } from '../core/problem'
import { networkOf } from '../tenancy/caller'
import type { OpenCtx } from './guard'

/** Refuses (429) a guest beyond `most` in any `window` (ms). They have no account to block, so their address answers for them. */
export function throttling(most: number, window: number, message: string) {
  const limiter = new Limiter(most, window)
  return ({ tenant, actor }: OpenCtx, what: string, request: Request, several = 1) => {
    if (actor || config.ATOLL_RATE_LIMITS === 'off') return
    const wait = limiter.take(`${tenant} ${what} ${networkOf(request)}`, several)
    if (wait) tooMany(wait / 1000, message)
  }
}
