import { registry } from '../core/extension'
import { logError } from '../core/log'
import { listServedSince, type Tenant } from '../tenancy/tenants'
import { LeaseLost } from './leases'
import { type Lease, withLease } from './with-lease'

/** A task that runs regularly in each tenant. It works in batches, and stops when its signal is aborted. */
export type HousekeepingTask = (tenant: Tenant & Lease) => Promise<unknown>

/** Tasks that regularly clean up, repair or check each tenant. */
export const housekeepingTasks = registry<HousekeepingTask>('housekeeping tasks')

const ROUNDS_PER_INTERVAL = 60 // rounds until a tenant's turn comes again
const SLOW_TENANT_MS = 1_000 // after so long the tasks of the next tenant begin as well

/**
 * Runs tasks for the tenants that are in use here, one tenant after the other, each at most once in `intervalMs` on all
 * nodes together; never, when that is 0. Returns a function that stops it: no other tenant is started after that.
 */
export function startHousekeeping(tasks: ReadonlyMap<string, HousekeepingTask>, intervalMs: number): () => void {
  let stopped = false
  let timer: Timer | undefined
  let lastRoundAt = performance.now()
  const runRound = async () => {
    const served = listServedSince(lastRoundAt)
    lastRoundAt = performance.now()
    for (const tenant of served) {
      if (stopped) return
      await Promise.race([runTasks(tenant, tasks, intervalMs), Bun.sleep(SLOW_TENANT_MS)])
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

/** Runs all tasks for a tenant, unless they have run within `intervalMs`. A failed task does not prevent others. */
async function runTasks(tenant: Tenant, tasks: ReadonlyMap<string, HousekeepingTask>, intervalMs: number) {
  const logFailure = (cause: unknown, task?: string) =>
    logError('HOUSEKEEPING_FAILED', { tenant: tenant.tenant, task, cause })
  const runAll = async (held: Tenant & Lease) => {
    let hasFailed = false
    for (const [name, task] of tasks)
      await task(held).catch((error) => {
        if (error instanceof LeaseLost) throw error
        hasFailed = true
        logFailure(error, name)
      })
    // After an error the lease does not rest, so that the next round repeats the tasks.
    if (hasFailed) throw new TasksFailed()
  }
  await withLease(tenant, 'housekeeping', runAll, { cooldownMs: intervalMs }).catch((error) => {
    if (!(error instanceof TasksFailed)) logFailure(error)
  })
}

class TasksFailed extends Error {}
