import { report } from '../core/log'
import { servedSince, type Tenant } from '../tenancy/tenants'
import { holding, type Lease } from './holding'

/** What is to be done in each tenant now and then: a slice at a time, and not on after its signal was aborted. */
export type Chore = (tenant: Tenant & Lease) => Promise<unknown>

const ROUNDS = 60 // in the time after which a tenant's turn comes again

/**
 * Does the chores of the tenants that are in use here, one tenant after the other, each at most once in `every` ms
 * whichever node does it; never, when that is 0. Returns what stops it: no tenant's turn comes after that.
 */
export function keepHouse(chores: Chore[], every: number): () => void {
  let stopped = false
  let timer: Timer | undefined
  let last = performance.now()
  const round = async () => {
    const served = servedSince(last)
    last = performance.now()
    for (const tenant of served) {
      if (stopped) return
      const work = async (held: Tenant & Lease) => {
        for (const chore of chores) await chore(held)
      }
      await holding(tenant, 'housekeeping', work, { rest: every }).catch((error) =>
        report('HOUSEKEEPING_FAILED', { tenant: tenant.tenant, cause: error }),
      )
    }
    later()
  }
  const later = () => {
    if (every && !stopped) timer = setTimeout(round, every / ROUNDS).unref()
  }
  later()
  return () => {
    stopped = true
    clearTimeout(timer)
  }
}
