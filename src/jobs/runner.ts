import { now } from '../core/clock'
import { report } from '../core/log'
import { Problem } from '../core/problem'
import { listTenants, servedSince, type Tenant, tenantNamed } from '../tenancy/tenants'
import { holding, type Lease } from './holding'
import { wakesGoTo } from './wake'
import { drain, hasWork, nextAt } from './work'

const LENGTH = 6_000 // ms; so long nobody goes on with the jobs of a process that died
const LINGER = 500 // ms, after which the lease is given back when nothing comes
const RETRY = 1_000 // ms
const SUSPENDED = 2_000 // ms between two looks whether a tenant was resumed, of which nobody tells
const LOOK = 10_000 // ms between two looks at tenants that are in use, for what other processes may have left there
const SWEEP = 3_600_000 // ms between two looks at all tenants
const RATE = 20 // ms for each of them
const FAR = 2 ** 30 // ms; timers can't be set for later

type Attention = { busy: boolean; again: boolean; wake?: () => void; timer?: Timer }

/**
 * Does the jobs of all tenants as they become due, each tenant's by one process at a time. Returns what stops it: nothing
 * is begun after that, and what runs is told by its signal.
 */
export function runJobs(): () => void {
  const attended = new Map<string, Attention>()
  const stopping = new AbortController()
  const { signal } = stopping

  const look = (id: string) => {
    if (signal.aborted) return
    const attention = attended.get(id) ?? { busy: false, again: false }
    attended.set(id, attention)
    attention.again = true
    attention.wake?.()
    if (!attention.busy) void attend(id, attention)
  }

  async function attend(id: string, attention: Attention) {
    attention.busy = true
    clearTimeout(attention.timer)
    let wait: number | undefined
    try {
      while (attention.again && !signal.aborted) {
        // Before anything can fail: it would be tried again at once, without end.
        attention.again = false
        wait = await work(await tenantNamed(id), attention)
      }
    } catch (error) {
      const status = error instanceof Problem ? error.status : 500
      if (status >= 500) report('JOBS_FAILED', { tenant: id, cause: error })
      wait = status >= 500 ? RETRY : status === 403 ? SUSPENDED : undefined
    }
    attention.busy = false
    if (signal.aborted) return
    if (attention.again) void attend(id, attention)
    else if (wait === undefined) attended.delete(id)
    else attention.timer = setTimeout(() => look(id), Math.min(wait, FAR)).unref()
  }

  /** Answers after how many ms to come back, if at all. */
  async function work(tenant: Tenant, attention: Attention): Promise<number | undefined> {
    if (await hasWork(tenant)) {
      const outcome = await holding(tenant, 'jobs', (held) => drainLinger(held, attention), { length: LENGTH })
      if (outcome.state !== 'done') return Math.min(RETRY, 'left' in outcome ? outcome.left : RETRY)
    }
    const next = await nextAt(tenant)
    return next === undefined ? undefined : Math.max(0, next - now())
  }

  async function drainLinger(lease: Tenant & Lease, attention: Attention) {
    const held = { ...lease, signal: AbortSignal.any([lease.signal, signal]) }
    const woken = () =>
      new Promise<void>((resolve) => {
        attention.wake = resolve
      })
    do {
      attention.again = false
      await drain(held, woken)
      if (!attention.again && !signal.aborted) await Promise.race([woken(), Bun.sleep(LINGER)])
    } while (attention.again && !held.signal.aborted)
    attention.wake = undefined
  }

  /** All tenants, slowly, for what a process left that is no more. */
  async function sweep() {
    for (const { id } of await listTenants()) {
      if (signal.aborted) return
      look(id)
      await Bun.sleep(RATE)
    }
  }
  const swept = () => void sweep().catch((error) => report('JOBS_FAILED', { cause: error }))
  let last = performance.now()
  const lookAround = () => {
    const served = servedSince(last)
    last = performance.now()
    for (const { tenant } of served) look(tenant)
  }

  wakesGoTo(look)
  swept()
  const timers = [setInterval(swept, SWEEP).unref(), setInterval(lookAround, LOOK).unref()]
  return () => {
    stopping.abort()
    wakesGoTo(undefined)
    for (const timer of timers) clearInterval(timer)
    for (const { timer, wake } of attended.values()) {
      clearTimeout(timer)
      wake?.()
    }
  }
}

/** Does all that is due at a tenant, and answers how many jobs were tried. */
export async function runDue(tenant: Tenant): Promise<number> {
  let tried = 0
  while (await hasWork(tenant)) {
    const outcome = await holding(tenant, 'jobs', (held) => drain(held, () => new Promise(() => {})), {
      length: LENGTH,
    })
    if (outcome.state === 'done') tried += outcome.value
    else await Bun.sleep(Math.min(100, 'left' in outcome ? outcome.left : 100))
  }
  return tried
}
