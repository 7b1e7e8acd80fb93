import { HOUR_MS, now, takeClockChange } from '../core/clock'
import { FairShare } from '../core/fair-share'
import { getErrorChain, logError } from '../core/log'
import { Problem } from '../core/problem'
import { listTenantIds } from '../tenancy/tenant-list'
import { eachOpenServedSince, getTenant, type Tenant } from '../tenancy/tenants'
import { onWake } from './wake'
import { type Lease, withLease } from './with-lease'
import { drainJobs, hasWork, nextRunAt, rescheduleByClock } from './worker'

const JOBS_LEASE_TTL_MS = 6_000 // after so long another process takes over the jobs of one that died
const LEASE_LINGER_MS = 500 // the lease is released after so long without a job
const RETRY_DELAY_MS = 1_000
const SUSPENDED_CHECK_INTERVAL_MS = 5_000 // between two checks of a suspended tenant; resuming it wakes no runner
const USED_TENANTS_CHECK_INTERVAL_MS = 10_000 // between two checks of tenants in use, for jobs of other processes
const SWEEP_INTERVAL_MS = HOUR_MS // between two checks of all tenants
const SWEEP_PAUSE_MS = 20 // for each tenant
const TENANTS_PER_PAGE = 100
const MAX_CONCURRENT_CHECKS = 8 // tenants that are checked for work at once; a hundred schedules may be due together
const BROKEN_TENANT_RETRY_MS = 60_000 // until the next check of a tenant that has to be repaired first
const CLOCK_JUMP_MS = 1_000 // the clock was set when it changed by more; due times by less are near enough
const CLOCK_CHECK_INTERVAL_MS = 1_000
const MAX_TIMER_MS = 2 ** 30 // timers have a maximum delay

/** When a tenant that cannot be served is checked again, by the code of the error, which needs no other log line. */
const RETRY_DELAYS_MS = new Map([
  ['TENANT_NOT_FOUND', undefined],
  ['TENANT_SUSPENDED', SUSPENDED_CHECK_INTERVAL_MS],
  ['RESTORING', RETRY_DELAY_MS],
  ...['TENANT_DAMAGED', 'STORAGE_FULL', 'STORAGE_FAILED'].map((code) => [code, BROKEN_TENANT_RETRY_MS] as const),
])

type TenantWatch = {
  isBusy: boolean
  recheck: boolean
  /** Whether nothing has woken it: tenants that were woken are checked first. */
  isLowPriority: boolean
  /** Whether due times were adjusted to the current clock. */
  isRescheduled?: boolean
  wake?: () => void
  timer?: Timer
}

/** Runs the jobs of all tenants as they become due, each tenant's in one process at a time. */
export class JobRunner {
  #watches = new Map<string, TenantWatch>()
  #checkShare = new FairShare({ running: { total: MAX_CONCURRENT_CHECKS }, waiting: {} })
  #stopping = new AbortController()
  #lastCheckAt = performance.now()
  #timers: Timer[] = []

  start() {
    takeClockChange()
    onWake((id) => this.#checkTenant(id))
    const sweep = this.#orLogFailure(() => this.#sweep())
    const checkUsedTenants = this.#orLogFailure(() => this.#checkUsedTenants())
    sweep()
    this.#timers = [
      setInterval(sweep, SWEEP_INTERVAL_MS).unref(),
      setInterval(checkUsedTenants, USED_TENANTS_CHECK_INTERVAL_MS).unref(),
      setInterval(() => this.#watchClock(), CLOCK_CHECK_INTERVAL_MS).unref(),
    ]
    return this
  }

  /** After this no job is started, and the signal of running work is aborted. */
  stop() {
    this.#stopping.abort()
    onWake(undefined)
    for (const timer of this.#timers) clearInterval(timer)
    for (const { timer, wake } of this.#watches.values()) {
      clearTimeout(timer)
      wake?.()
    }
  }

  get #isStopped(): boolean {
    return this.#stopping.signal.aborted
  }

  #orLogFailure = (work: () => Promise<void>) => () => void work().catch((error) => this.#logFailure(error))

  /** Databases are closed while the last reads of a stopped runner are under way. */
  #logFailure(cause: unknown, tenant?: string) {
    if (!this.#isStopped) logError('JOBS_FAILED', { ...(tenant && { tenant }), cause })
  }

  #checkTenant(id: string, isLowPriority = false) {
    if (this.#isStopped) return
    const watch = this.#watches.get(id) ?? { isBusy: false, recheck: false, isLowPriority }
    this.#watches.set(id, watch)
    watch.recheck = true
    watch.isLowPriority &&= isLowPriority
    watch.wake?.()
    if (!watch.isBusy) void this.#processTenant(id, watch)
  }

  async #processTenant(id: string, watch: TenantWatch) {
    watch.isBusy = true
    clearTimeout(watch.timer)
    let delayMs: number | undefined
    try {
      while (watch.recheck && !this.#isStopped) {
        // Reset first: an error would otherwise repeat the work at once, without end.
        watch.recheck = false
        delayMs = await this.#runTenantJobs(await getTenant(id), watch)
      }
    } catch (error) {
      const { code = 'INTERNAL' } = getErrorChain(error).find((cause) => cause instanceof Problem) ?? {}
      const isExpected = RETRY_DELAYS_MS.has(code)
      if (!isExpected) this.#logFailure(error, id)
      delayMs = isExpected ? RETRY_DELAYS_MS.get(code) : RETRY_DELAY_MS
    }
    watch.isBusy = false
    if (this.#isStopped) return
    if (watch.recheck) void this.#processTenant(id, watch)
    else if (delayMs === undefined) this.#watches.delete(id)
    else watch.timer = setTimeout(() => this.#checkTenant(id), Math.min(delayMs, MAX_TIMER_MS)).unref()
  }

  /** Returns the ms until the next check, or undefined when none is needed. */
  async #runTenantJobs(tenant: Tenant, watch: TenantWatch): Promise<number | undefined> {
    const { isLowPriority } = watch
    watch.isLowPriority = true
    const check = async () => {
      await adjustToClock(tenant, watch)
      return hasWork(tenant)
    }
    if (await this.#checkShare.run({ tenant: tenant.tenant, caller: 'jobs' }, check, { isLowPriority })) {
      const leaseResult = await withJobsLease(tenant, (held) => this.#drainLinger(held, watch))
      if (leaseResult.state !== 'done')
        return Math.min(RETRY_DELAY_MS, 'left' in leaseResult ? leaseResult.left : RETRY_DELAY_MS)
    }
    const next = await nextRunAt(tenant)
    return next === undefined ? undefined : Math.max(0, next - now())
  }

  async #drainLinger(lease: Tenant & Lease, watch: TenantWatch) {
    const tenant = { ...lease, signal: AbortSignal.any([lease.signal, this.#stopping.signal]) }
    const nextWake = () =>
      new Promise<void>((resolve) => {
        watch.wake = resolve
      })
    do {
      watch.recheck = false
      await adjustToClock(tenant, watch)
      await drainJobs(tenant, nextWake)
      if (!watch.recheck && !this.#isStopped) await Promise.race([nextWake(), Bun.sleep(LEASE_LINGER_MS)])
    } while (watch.recheck && !tenant.signal.aborted)
    watch.wake = undefined
  }

  /** Checks all tenants, slowly, for jobs that were left by a process that is gone. */
  async #sweep() {
    let page = await listTenantIds('', TENANTS_PER_PAGE)
    for (; page.length; page = await listTenantIds(page.at(-1)!, TENANTS_PER_PAGE)) {
      for (const id of page) {
        if (this.#isStopped) return
        this.#checkTenant(id, true)
        await Bun.sleep(SWEEP_PAUSE_MS)
        // While all checks are busy, the other tenants wait.
        while (this.#checkShare.isFull && !this.#isStopped) await Bun.sleep(SWEEP_PAUSE_MS)
      }
    }
  }

  /**
   * Checks the tenants in use. A database that was closed meanwhile was checked when it was opened, or is checked by
   * the next sweep.
   */
  async #checkUsedTenants() {
    const since = this.#lastCheckAt
    this.#lastCheckAt = performance.now()
    for await (const { tenant } of eachOpenServedSince(since, USED_TENANTS_CHECK_INTERVAL_MS / 2)) {
      if (this.#isStopped) return
      this.#checkTenant(tenant, true)
    }
  }

  /** Checks all tenants again when the clock was set: timers follow `performance.now()`, due times the clock. */
  #watchClock() {
    if (takeClockChange() < CLOCK_JUMP_MS) return
    for (const [id, watch] of this.#watches) {
      watch.isRescheduled = false
      this.#checkTenant(id)
    }
  }
}

/** Corrects the due times of a tenant once after each change of the clock. */
async function adjustToClock(tenant: Tenant, watch: TenantWatch) {
  if (watch.isRescheduled) return
  // Set first: the clock may be set again meanwhile.
  watch.isRescheduled = true
  await rescheduleByClock(tenant).catch((error) => {
    watch.isRescheduled = false
    throw error
  })
}

const withJobsLease = <T>(tenant: Tenant, work: (held: Tenant & Lease) => Promise<T>) =>
  withLease(tenant, 'jobs', work, { ttlMs: JOBS_LEASE_TTL_MS })

/** Runs all due jobs of a tenant. Returns the number of attempts. */
export async function runDueJobs(tenant: Tenant): Promise<number> {
  let attempts = 0
  await rescheduleByClock(tenant)
  while (await hasWork(tenant)) {
    const leaseResult = await withJobsLease(tenant, (held) => drainJobs(held, () => new Promise(() => {})))
    if (leaseResult.state === 'done') attempts += leaseResult.value
    else await Bun.sleep(Math.min(100, 'left' in leaseResult ? leaseResult.left : 100))
  }
  return attempts
}
