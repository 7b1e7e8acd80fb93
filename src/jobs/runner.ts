import { now } from '../core/clock'
import { getErrorChain, logError } from '../core/log'
import { Problem } from '../core/problem'
import { FairSemaphore } from '../tenancy/fair-semaphore'
import { getTenant, listOpenServedSince, listTenants, type Tenant } from '../tenancy/tenants'
import { onWake } from './wake'
import { type Lease, withLease } from './with-lease'
import { drainJobs, hasWork, nextRunAt, rescheduleByClock } from './worker'

const JOBS_LEASE_TTL_MS = 6_000 // ms; so long nobody goes on with the jobs of a process that died
const LEASE_LINGER_MS = 500 // ms, after which the lease is given back when nothing comes
const RETRY_DELAY_MS = 1_000 // ms
const SUSPENDED_CHECK_INTERVAL_MS = 5_000 // ms between two looks whether a tenant was resumed, of which nobody tells
const USED_TENANTS_CHECK_INTERVAL_MS = 10_000 // ms between two looks at tenants that are in use, for what other processes may have left there
const SWEEP_INTERVAL_MS = 3_600_000 // ms between two looks at all tenants
const SWEEP_PAUSE_MS = 20 // ms for each of them
const TENANTS_PER_BATCH = 50 // tenants that are looked at together
const MAX_CONCURRENT_CHECKS = 8 // tenants that are asked at once whether they have work; a hundred schedules may be due together
const BROKEN_TENANT_RETRY_MS = 60_000 // ms until a tenant is asked again that can't be served before somebody has mended it
const CLOCK_JUMP_MS = 1_000 // ms by which the clock differs from the stopwatch when it was set
const MAX_TIMER_MS = 2 ** 30 // ms; timers can't be set for later

type TenantWatch = {
  isBusy: boolean
  recheck: boolean
  /** Whether nobody told of anything to do there: then those come first of whom somebody did. */
  isLowPriority: boolean
  /** Whether what is due was judged by the clock as it is. */
  isRescheduled?: boolean
  wake?: () => void
  timer?: Timer
}

/**
 * Does the jobs of all tenants as they become due, each tenant's by one process at a time. Returns what stops it: nothing
 * is begun after that, and what runs is told by its signal.
 */
export function startRunner(): () => void {
  const watches = new Map<string, TenantWatch>()
  const stopping = new AbortController()
  const { signal } = stopping

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
        // Before anything can fail: it would be tried again at once, without end.
        watch.recheck = false
        delayMs = await runTenantJobs(await getTenant(id), watch)
      }
    } catch (error) {
      const problem = getErrorChain(error).find((cause) => cause instanceof Problem)
      const { status, code } = problem ?? { status: 500, code: 'INTERNAL' }
      // Whoever serves the tenant has told of these.
      const isReported = ['TENANT_DAMAGED', 'STORAGE_FULL', 'STORAGE_FAILED'].includes(code)
      if (status >= 500 && !isReported) logError('JOBS_FAILED', { tenant: id, cause: error })
      delayMs = isReported
        ? BROKEN_TENANT_RETRY_MS
        : status >= 500
          ? RETRY_DELAY_MS
          : status === 403
            ? SUSPENDED_CHECK_INTERVAL_MS
            : undefined
    }
    watch.isBusy = false
    if (signal.aborted) return
    if (watch.recheck) void processTenant(id, watch)
    else if (delayMs === undefined) watches.delete(id)
    else watch.timer = setTimeout(() => checkTenant(id), Math.min(delayMs, MAX_TIMER_MS)).unref()
  }

  /** Answers after how many ms to come back, if at all. */
  async function runTenantJobs(tenant: Tenant, watch: TenantWatch): Promise<number | undefined> {
    const method = watch.isLowPriority ? 'runLowPriority' : 'run'
    watch.isLowPriority = true
    const hasJobs = await checkSemaphore[method](tenant, async () => {
      if (!watch.isRescheduled) await rescheduleByClock(tenant)
      watch.isRescheduled = true
      return hasWork(tenant)
    })
    if (hasJobs) {
      const leaseResult = await withLease(tenant, 'jobs', (held) => drainLinger(held, watch), {
        length: JOBS_LEASE_TTL_MS,
      })
      if (leaseResult.state !== 'done')
        return Math.min(RETRY_DELAY_MS, 'left' in leaseResult ? leaseResult.left : RETRY_DELAY_MS)
    }
    const next = await nextRunAt(tenant)
    return next === undefined ? undefined : Math.max(0, next - now())
  }

  async function drainLinger(lease: Tenant & Lease, watch: TenantWatch) {
    const held = { ...lease, signal: AbortSignal.any([lease.signal, signal]) }
    const nextWake = () =>
      new Promise<void>((resolve) => {
        watch.wake = resolve
      })
    do {
      watch.recheck = false
      await drainJobs(held, nextWake)
      if (!watch.recheck && !signal.aborted) await Promise.race([nextWake(), Bun.sleep(LEASE_LINGER_MS)])
    } while (watch.recheck && !held.signal.aborted)
    watch.wake = undefined
  }

  /** All tenants, slowly, for what a process left that is no more. */
  async function sweep() {
    for (const { id } of await listTenants()) {
      if (signal.aborted) return
      checkTenant(id, true)
      await Bun.sleep(SWEEP_PAUSE_MS)
      // Where all that may be open is in use, the others are looked at later.
      while (checkSemaphore.isBusy && !signal.aborted) await Bun.sleep(SWEEP_PAUSE_MS)
    }
  }
  const startSweep = () => void sweep().catch((error) => logError('JOBS_FAILED', { cause: error }))
  let lastCheckAt = performance.now()
  /** What was closed meanwhile was looked at when it was opened, or is looked at by the next sweep. */
  async function checkUsedTenants() {
    const served = listOpenServedSince(lastCheckAt)
    lastCheckAt = performance.now()
    for (const [index, { tenant }] of served.entries()) {
      if (signal.aborted) return
      checkTenant(tenant, true)
      if (index % TENANTS_PER_BATCH === TENANTS_PER_BATCH - 1) await Bun.sleep(SWEEP_PAUSE_MS)
    }
  }

  let clockOffset = now() - performance.now()
  /** Timers go by the stopwatch, and what is due by the clock: when that was set, both are judged anew. */
  const watchClock = () => {
    const before = clockOffset
    clockOffset = now() - performance.now()
    if (Math.abs(clockOffset - before) < CLOCK_JUMP_MS) return
    for (const [id, watch] of watches) {
      watch.isRescheduled = false
      checkTenant(id)
    }
  }

  onWake(checkTenant)
  startSweep()
  const timers = [
    setInterval(startSweep, SWEEP_INTERVAL_MS).unref(),
    setInterval(() => void checkUsedTenants(), USED_TENANTS_CHECK_INTERVAL_MS).unref(),
    setInterval(watchClock, CLOCK_JUMP_MS).unref(),
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

const checkSemaphore = new FairSemaphore(MAX_CONCURRENT_CHECKS, Number.POSITIVE_INFINITY)

/** Does all that is due at a tenant, and answers how many jobs were tried. */
export async function runDueJobs(tenant: Tenant): Promise<number> {
  let attempts = 0
  await rescheduleByClock(tenant)
  while (await hasWork(tenant)) {
    const leaseResult = await withLease(tenant, 'jobs', (held) => drainJobs(held, () => new Promise(() => {})), {
      length: JOBS_LEASE_TTL_MS,
    })
    if (leaseResult.state === 'done') attempts += leaseResult.value
    else await Bun.sleep(Math.min(100, 'left' in leaseResult ? leaseResult.left : 100))
  }
  return attempts
}
