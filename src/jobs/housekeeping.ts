import { registry } from '../core/extension'
import { logError } from '../core/log'
import { listServedSince, type Tenant } from '../tenancy/tenants'
import { type Lease, withLease } from './with-lease'

/** A task that runs regularly in each tenant. It works in batches, and stops when its signal is aborted. */
export type HousekeepingTask = (tenant: Tenant & Lease) => Promise<unknown>

/** Tasks that regularly clean up, repair or check each tenant. */
export const housekeepingTasks = registry<HousekeepingTask>('housekeeping tasks')

const ROUNDS_PER_INTERVAL = 60 // rounds until a tenant's turn comes again

/**
 * Runs tasks for the tenants that are in use here, one tenant after the other, each at most once in `intervalMs` on all
 * nodes together; never, when that is 0. Returns a function that stops it: no other tenant is started after that.
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
