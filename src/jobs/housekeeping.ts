import { registry } from '../core/extension'
import { logError } from '../core/log'
import { repeatWork } from '../core/repeated-work'
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
 * nodes together; never, when that is 0.
 */
export class Housekeeping {
  #rounds?: ReturnType<typeof repeatWork>
  #lastRoundAt = performance.now()

  constructor(
    private tasks: ReadonlyMap<string, HousekeepingTask>,
    private intervalMs: number,
  ) {}

  start() {
    if (this.intervalMs)
      this.#rounds = repeatWork((signal) => this.runRound(signal), this.intervalMs / ROUNDS_PER_INTERVAL)
    return this
  }

  /** After this no other tenant is started. */
  stop = () => this.#rounds?.stop()

  /** Runs the tasks for the tenants that were in use since the last round, without waiting long for any. */
  async runRound(signal?: AbortSignal) {
    const served = listServedSince(this.#lastRoundAt)
    this.#lastRoundAt = performance.now()
    for (const tenant of served) {
      if (signal?.aborted) return
      await Promise.race([this.#runTasks(tenant), Bun.sleep(SLOW_TENANT_MS)])
    }
  }

  /** Runs all tasks for a tenant, unless they have run within `intervalMs`. A failed task does not prevent others. */
  async #runTasks(tenant: Tenant) {
    const logFailure = (cause: unknown, task?: string) =>
      logError('HOUSEKEEPING_FAILED', { tenant: tenant.tenant, task, cause })
    const runAll = async (held: Tenant & Lease) => {
      let hasFailed = false
      for (const [name, task] of this.tasks)
        await task(held).catch((error) => {
          if (error instanceof LeaseLost) throw error
          hasFailed = true
          logFailure(error, name)
        })
      // After an error the lease does not rest, so that the next round repeats the tasks.
      if (hasFailed) throw new TasksFailed()
    }
    await withLease(tenant, 'housekeeping', runAll, { cooldownMs: this.intervalMs }).catch((error) => {
      if (!(error instanceof TasksFailed)) logFailure(error)
    })
  }
}

class TasksFailed extends Error {}
