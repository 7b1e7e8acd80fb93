import { registry } from '../core/extension'
import { logError } from '../core/log'
import { listServedSince, type Tenant } from '../tenancy/tenants'
import { type Lease, withLease } from './with-lease'

/** What is to be done in each tenant now and then: a slice at a time, and not on after its signal was aborted. */
export type HousekeepingTask = (tenant: Tenant & Lease) => Promise<unknown>

/** What is removed from each tenant, undone, put right or checked in it, now and then. */
export const housekeepingTasks = registry<HousekeepingTask>('housekeeping tasks')

const ROUNDS_PER_INTERVAL = 60 // in the time after which a tenant's turn comes again

/**
 * Does the chores of the tenants that are in use here, one tenant after the other, each at most once in `every` ms
 * whichever node does it; never, when that is 0. Returns what stops it: no tenant's turn comes after that.
 */
export function startHousekeeping(tasks: Iterable<HousekeepingTask>, intervalMs: number): () => void {
  let stopped = false
  let timer: Timer | undefined
  let lastRoundAt = performance.now()
  const runRound = async () => {
    const served = listServedSince(lastRoundAt)
    lastRoundAt = performance.now()
    for (const tenant of served) {
      if (stopped) return
      const runTasks = async (held: Tenant & Lease) => {
        for (const task of tasks) await task(held)
      }
      await withLease(tenant, 'housekeeping', runTasks, { rest: intervalMs }).catch((error) =>
        logError('HOUSEKEEPING_FAILED', { tenant: tenant.tenant, cause: error }),
      )
    }
    scheduleNext()
  }
  const scheduleNext = () => {
    if (intervalMs && !stopped) timer = setTimeout(runRound, intervalMs / ROUNDS_PER_INTERVAL).unref()
  }
  scheduleNext()
  return () => {
    stopped = true
    clearTimeout(timer)
  }
}
