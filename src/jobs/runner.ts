import { now } from '../core/clock'
import { causes, report } from '../core/log'
import { Problem } from '../core/problem'
import { listTenants, openServedSince, type Tenant, tenantNamed } from '../tenancy/tenants'
import { Turns } from '../tenancy/turns'
import { holding, type Lease } from './holding'
import { wakesGoTo } from './wake'
import { drain, hasWork, judgeAnew, nextAt } from './work'

const LENGTH = 6_000 // ms; so long nobody goes on with the jobs of a process that died
const LINGER = 500 // ms, after which the lease is given back when nothing comes
const RETRY = 1_000 // ms
const SUSPENDED = 5_000 // ms between two looks whether a tenant was resumed, of which nobody tells
const LOOK = 10_000 // ms between two looks at tenants that are in use, for what other processes may have left there
const SWEEP = 3_600_000 // ms between two looks at all tenants
const RATE = 20 // ms for each of them
const SLICE = 50 // tenants that are looked at together
const LOOKS = 8 // tenants that are asked at once whether they have work; a hundred schedules may be due together
const BROKEN = 60_000 // ms until a tenant is asked again that can't be served before somebody has mended it
const JUMP = 1_000 // ms by which the clock differs from the stopwatch when it was set
const FAR = 2 ** 30 // ms; timers can't be set for later

type Attention = {
  busy: boolean
  again: boolean
  /** Whether nobody told of anything to do there: then those come first of whom somebody did. */
  patient: boolean
  /** Whether what is due was judged by the clock as it is. */
  judged?: boolean
  wake?: () => void
  timer?: Timer
}

/**
 * Does the jobs of all tenants as they become due, each tenant's by one process at a time. Returns what stops it: nothing
 * is begun after that, and what runs is told by its signal.
 */
export function runJobs(): () => void {
  const attended = new Map<string, Attention>()
  const stopping = new AbortController()
  const { signal } = stopping

  const look = (id: string, patient = false) => {
    if (signal.aborted) return
    const attention = attended.get(id) ?? { busy: false, again: false, patient }
    attended.set(id, attention)
    attention.again = true
    attention.patient &&= patient
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
      const problem = causes(error).find((cause) => cause instanceof Problem)
      const { status, code } = problem ?? { status: 500, code: 'INTERNAL' }
      // Whoever serves the tenant has told of these.
      const isTold = ['TENANT_DAMAGED', 'STORAGE_FULL', 'STORAGE_FAILED'].includes(code)
      if (status >= 500 && !isTold) report('JOBS_FAILED', { tenant: id, cause: error })
      wait = isTold ? BROKEN : status >= 500 ? RETRY : status === 403 ? SUSPENDED : undefined
    }
    attention.busy = false
    if (signal.aborted) return
    if (attention.again) void attend(id, attention)
    else if (wait === undefined) attended.delete(id)
    else attention.timer = setTimeout(() => look(id), Math.min(wait, FAR)).unref()
  }

  /** Answers after how many ms to come back, if at all. */
  async function work(tenant: Tenant, attention: Attention): Promise<number | undefined> {
    const asked = attention.patient ? 'takeLater' : 'take'
    attention.patient = true
    const hasSome = await looks[asked](tenant, async () => {
      if (!attention.judged) await judgeAnew(tenant)
      attention.judged = true
      return hasWork(tenant)
    })
    if (hasSome) {
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
      look(id, true)
      await Bun.sleep(RATE)
      // Where all that may be open is in use, the others are looked at later.
      while (looks.isBusy && !signal.aborted) await Bun.sleep(RATE)
    }
  }
  const swept = () => void sweep().catch((error) => report('JOBS_FAILED', { cause: error }))
  let last = performance.now()
  /** What was closed meanwhile was looked at when it was opened, or is looked at by the next sweep. */
  async function lookAround() {
    const served = openServedSince(last)
    last = performance.now()
    for (const [place, { tenant }] of served.entries()) {
      if (signal.aborted) return
      look(tenant, true)
      if (place % SLICE === SLICE - 1) await Bun.sleep(RATE)
    }
  }

  let lead = now() - performance.now()
  /** Timers go by the stopwatch, and what is due by the clock: when that was set, both are judged anew. */
  const watchClock = () => {
    const before = lead
    lead = now() - performance.now()
    if (Math.abs(lead - before) < JUMP) return
    for (const [id, attention] of attended) {
      attention.judged = false
      look(id)
    }
  }

  wakesGoTo(look)
  swept()
  const timers = [
    setInterval(swept, SWEEP).unref(),
    setInterval(() => void lookAround(), LOOK).unref(),
    setInterval(watchClock, JUMP).unref(),
  ]
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

const looks = new Turns(LOOKS, Number.POSITIVE_INFINITY)

/** Does all that is due at a tenant, and answers how many jobs were tried. */
export async function runDue(tenant: Tenant): Promise<number> {
  let tried = 0
  await judgeAnew(tenant)
  while (await hasWork(tenant)) {
    const outcome = await holding(tenant, 'jobs', (held) => drain(held, () => new Promise(() => {})), {
      length: LENGTH,
    })
    if (outcome.state === 'done') tried += outcome.value
    else await Bun.sleep(Math.min(100, 'left' in outcome ? outcome.left : 100))
  }
  return tried
}
