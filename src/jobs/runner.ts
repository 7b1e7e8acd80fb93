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

/**
 * Runs the jobs of all tenants as they become due, each tenant's in one process at a time. Returns a function that
 * stops it: no job is started after that, and the signal of running work is aborted.
 */
export function startRunner(): () => void {
  const watches = new Map<string, TenantWatch>()
  const stopping = new AbortController()
  const { signal } = stopping

  /** Databases are closed while the last reads of a stopped runner are under way. */
  const logFailure = (cause: unknown, tenant?: string) => {
    if (!signal.aborted) logError('JOBS_FAILED', { ...(tenant && { tenant }), cause })
  }

  const checkTenant = (id: string, isLowPriority = false) => {
    if (signal.aborted) return
    const watch = watches.get(id) ?? { isBusy: false, recheck: false, isLowPriority }
    watches.set(id, watch)
    watch.recheck = true
    watch.isLowPriority &&= isLowPriority
    watch.wake?.()
    if (!watch.isBusy) void processTenant(id, watch)
  }

  async function processTenant(id: string, watch: TenantWatch) {
    watch.isBusy = true
    clearTimeout(watch.timer)
    let delayMs: number | undefined
    try {
      while (watch.recheck && !signal.aborted) {
        // Reset first: an error would otherwise repeat the work at once, without end.
        watch.recheck = false
        delayMs = await runTenantJobs(await getTenant(id), watch)
      }
    } catch (error) {
      const { code = 'INTERNAL' } = getErrorChain(error).find((cause) => cause instanceof Problem) ?? {}
      const isExpected = RETRY_DELAYS_MS.has(code)
      if (!isExpected) logFailure(error, id)
      delayMs = isExpected ? RETRY_DELAYS_MS.get(code) : RETRY_DELAY_MS
    }
    watch.isBusy = false
    if (signal.aborted) return
    if (watch.recheck) void processTenant(id, watch)
    else if (delayMs === undefined) watches.delete(id)
    else watch.timer = setTimeout(() => checkTenant(id), Math.min(delayMs, MAX_TIMER_MS)).unref()
  }

  /** Returns the ms until the next check, or undefined when none is needed. */
  async function runTenantJobs(tenant: Tenant, watch: TenantWatch): Promise<number | undefined> {
    const { isLowPriority } = watch
    watch.isLowPriority = true
    const check = async () => {
      await adjustToClock(tenant, watch)
      return hasWork(tenant)
    }
    const hasJobs = await checkShare.run({ tenant: tenant.tenant, caller: 'jobs' }, check, { isLowPriority })
    if (hasJobs) {
      const leaseResult = await withLease(tenant, 'jobs', (held) => drainLinger(held, watch), {
        ttlMs: JOBS_LEASE_TTL_MS,
      })
      if (leaseResult.state !== 'done')
        return Math.min(RETRY_DELAY_MS, 'left' in leaseResult ? leaseResult.left : RETRY_DELAY_MS)
    }
    const next = await nextRunAt(tenant)
    return next === undefined ? undefined : Math.max(0, next - now())
  }

  /** Corrects the due times of a tenant once after each change of the clock. */
  async function adjustToClock(tenant: Tenant, watch: TenantWatch) {
    if (watch.isRescheduled) return
    // Set first: the clock may be set again meanwhile.
    watch.isRescheduled = true
    try {
      await rescheduleByClock(tenant)
    } catch (error) {
      watch.isRescheduled = false
      throw error
    }
  }

  async function drainLinger(lease: Tenant & Lease, watch: TenantWatch) {
    const tenant = { ...lease, signal: AbortSignal.any([lease.signal, signal]) }
    const nextWake = () =>
      new Promise<void>((resolve) => {
        watch.wake = resolve
      })
    do {
      watch.recheck = false
      await adjustToClock(tenant, watch)
      await drainJobs(tenant, nextWake)
      if (!watch.recheck && !signal.aborted) await Promise.race([nextWake(), Bun.sleep(LEASE_LINGER_MS)])
    } while (watch.recheck && !tenant.signal.aborted)
    watch.wake = undefined
  }

  /** Checks all tenants, slowly, for jobs that were left by a process that is gone. */
  async function sweep() {
    let page = await listTenantIds('', TENANTS_PER_PAGE)
    for (; page.length; page = await listTenantIds(page.at(-1)!, TENANTS_PER_PAGE)) {
      for (const id of page) {
        if (signal.aborted) return
        checkTenant(id, true)
        await Bun.sleep(SWEEP_PAUSE_MS)
        // While all checks are busy, the other tenants wait.
        while (checkShare.isFull && !signal.aborted) await Bun.sleep(SWEEP_PAUSE_MS)
      }
    }
  }
  const startSweep = () => void sweep().catch((error) => logFailure(error))
  let lastCheckAt = performance.now()
  /**
   * Checks the tenants in use. A database that was closed meanwhile was checked when it was opened, or is checked by
   * the next sweep.
   */
  async function checkUsedTenants() {
    const since = lastCheckAt
    lastCheckAt = performance.now()
    for await (const { tenant } of eachOpenServedSince(since, USED_TENANTS_CHECK_INTERVAL_MS / 2)) {
      if (signal.aborted) return
      checkTenant(tenant, true)
    }
  }

  takeClockChange()
  /** Checks all tenants again when the clock was set: timers follow `performance.now()`, due times the clock. */
  const watchClock = () => {
    if (takeClockChange() < CLOCK_JUMP_MS) return
    for (const [id, watch] of watches) {
      watch.isRescheduled = false
      checkTenant(id)
    }
  }

  onWake(checkTenant)
  startSweep()
  const timers = [
    setInterval(startSweep, SWEEP_INTERVAL_MS).unref(),
    setInterval(
      () => void checkUsedTenants().catch((error) => logFailure(error)),
      USED_TENANTS_CHECK_INTERVAL_MS,
    ).unref(),
    setInterval(watchClock, CLOCK_CHECK_INTERVAL_MS).unref(),
  ]
  return () => {
    stopping.abort()
    onWake(undefined)
    for (const timer of timers) clearInterval(timer)
    for (const { timer, wake } of watches.values()) {
      clearTimeout(timer)
      wake?.()
    }
  }
}

const checkShare = new FairShare({ running: { total: MAX_CONCURRENT_CHECKS }, waiting: {} })

/** Runs all due jobs of a tenant. Returns the number of attempts. */
export async function runDueJobs(tenant: Tenant): Promise<number> {
  let attempts = 0
  await rescheduleByClock(tenant)
  while (await hasWork(tenant)) {
    const leaseResult = await withLease(tenant, 'jobs', (held) => drainJobs(held, () => new Promise(() => {})), {
      ttlMs: JOBS_LEASE_TTL_MS,
    })
    if (leaseResult.state === 'done') attempts += leaseResult.value
    else await Bun.sleep(Math.min(100, 'left' in leaseResult ? leaseResult.left : 100))
  }
  return attempts
}
