import type { OpenCtx } from '../accounts/guard'
import { config } from '../config'
import { Limiter } from '../core/limiter'
import { invalid, tooMany } from '../core/problem'
import { networkOf } from '../tenancy/caller'

const GUESTS = 10 // changes in 5 s
const guests = new Limiter(GUESTS, 5_000)

/** Guests have no account that could be blocked, so their address answers for them. */
export function throttleGuests({ tenant, actor }: OpenCtx, blueprint: string, request: Request, changes = 1) {
  if (actor || config.ATOLL_RATE_LIMITS === 'off') return
  if (changes > GUESTS) invalid({ path: '/operations', message: `A guest makes at most ${GUESTS} changes at once.` })
  const wait = guests.take(`${tenant} ${blueprint} ${networkOf(request)}`, changes)
  if (wait) tooMany(wait / 1000, 'Too many changes by guests.')
}
