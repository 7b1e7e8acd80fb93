import { extensions, registry } from '../core/extension'
import { logError } from '../core/log'
import { getTenantAnyStatus, type Tenant } from '../tenancy/tenants'
import { quotaExceededProblem } from './quota-description'
import { type QuotaLevel, recordLevel, toNextLevel } from './quota-levels'
import { currentPeriod } from './quota-periods'
import type { QuotaKind } from './shapes'

/** Returns how much a tenant uses of something now, or has used in the current day or month. */
export type UseMeasure = (tenant: Tenant) => Promise<number>

/** How the use of each kind of quota is measured. A kind that no area provides is not used. */
export const useMeasures = registry<UseMeasure>('measures of use')

/** What adds to the bytes that a tenant stores. */
export const storedBytes = extensions<UseMeasure>('stored bytes')

const MIN_INTERVAL_MS = 1_000 // between two measurements
// For so many times as long as a measurement took, its result counts: in the background, and where it is waited for.
const COST_FACTOR = { background: 100, awaited: 20 }
const MAX_WAIT_MS = { request: 1_000, overview: 5_000 } // for a measurement; what takes longer is done in the background
const IDLE_MS = 600_000 // after so long without being asked for, use is forgotten

/**
 * What this process knows of the use of one kind by one tenant: the latest measurement, what was added here since, and
 * what is being added.
 */
class KnownUse {
  #measured = 0
  #measuredAt = Number.NEGATIVE_INFINITY
  #costMs = 0
  #measuring: Promise<void> | undefined
  #added = 0
  #level: QuotaLevel | undefined
  #isRecording = false
  pending = 0
  askedAt = performance.now()

  constructor(
    readonly tenant: string,
    readonly kind: QuotaKind,
    readonly period: string,
  ) {}

  get used() {
    return Math.max(0, this.#measured + this.#added)
  }

  isFresh(factor: number, minIntervalMs = 0) {
    return performance.now() - this.#measuredAt <= Math.max(minIntervalMs, factor * this.#costMs)
  }

  isMeasured = () => this.#measuredAt !== Number.NEGATIVE_INFINITY

  add(count: number) {
    this.#added += count
  }

  /** Measures the use, unless that is under way. What is added meanwhile counts besides the result. */
  measure(): Promise<void> {
    this.#measuring ??= this.#measureNow().finally(() => {
      this.#measuring = undefined
    })
    return this.#measuring
  }

  /** Measures the use, but waits no longer than this. @throws what the measurement throws meanwhile */
  async measureWithin(ms: number) {
    const waited = Promise.withResolvers<void>()
    const timer = setTimeout(waited.resolve, ms)
    await Promise.race([this.measure(), waited.promise]).finally(() => clearTimeout(timer))
  }

  async #measureNow() {
    const measure = useMeasures().get(this.kind)
    const [began, addedBefore] = [performance.now(), this.#added]
    const measured = measure ? await measure(await getTenantAnyStatus(this.tenant)) : 0
    this.#measuredAt = performance.now()
    this.#costMs = this.#measuredAt - began
    this.#measured = measured
    this.#added -= addedBefore
  }

  /** Tells the tenant and the operator, in the background, when the use has reached a level. */
  checkLevel(limit: number) {
    if (!this.isMeasured() || this.#isRecording || this.#level === toNextLevel(this.#level ?? 0, this.used, limit))
      return
    this.#isRecording = true
    recordLevel(this.tenant, { kind: this.kind, period: this.period, used: this.used, limit })
      .then((level) => {
        this.#level = level
      })
      .catch((cause) => logError('QUOTA_LEVEL_FAILED', { tenant: this.tenant, quota: this.kind, cause }))
      .finally(() => {
        this.#isRecording = false
      })
  }
}

const knownUses = new Map<string, KnownUse>()

function knownUseOf(tenant: string, kind: QuotaKind): KnownUse {
  const key = `${tenant} ${kind}`
  const existing = knownUses.get(key)
  const period = currentPeriod(kind)
  if (existing?.period === period) return existing
  const created = new KnownUse(tenant, kind, period)
  knownUses.set(key, created)
  return created
}

/** Forgets what nobody asked for lately. */
export function forgetIdleUse() {
  for (const [key, { askedAt, pending }] of knownUses)
    if (!pending && performance.now() - askedAt > IDLE_MS) knownUses.delete(key)
}

/**
 * Returns the current use of a kind, at most a second old, or older where measuring it takes long; null when measuring it
 * for the first time takes too long.
 */
export async function getUse(tenant: string, kind: QuotaKind, limit?: number): Promise<number | null> {
  const use = knownUseOf(tenant, kind)
  use.askedAt = performance.now()
  if (!use.isFresh(COST_FACTOR.awaited, MIN_INTERVAL_MS)) await use.measureWithin(MAX_WAIT_MS.overview)
  if (!use.isMeasured()) return null
  if (limit !== undefined) use.checkLevel(limit)
  return use.used
}

/** Adds what was used without a reservation, so that it counts before the next measurement. */
export function addUse({ tenant }: Pick<Tenant, 'tenant'>, kind: QuotaKind, count: number) {
  knownUses.get(`${tenant} ${kind}`)?.add(count)
}

/**
 * What is going to be added under a quota. Dispose of it when that has ended; what is not kept by then is free again.
 */
export class QuotaReservation {
  #held = 0

  constructor(
    private use: KnownUse,
    private limit: number,
    private earlier: number,
  ) {}

  /** How much is reserved. */
  get held() {
    return this.#held
  }

  /** Checks that not everything is used already. @throws 403 QUOTA_EXCEEDED */
  assertNotUsedUp() {
    const { use, limit } = this
    if (use.used >= limit) throw quotaExceededProblem(use.kind, limit, use.used)
  }

  /** Tells whether so much can be added besides what is used and what is being added. */
  fits(count: number): boolean {
    const { use, limit, earlier } = this
    return use.used + use.pending + earlier + count <= limit
  }

  /** Checks that so much can be added, without reserving it. @throws 403 QUOTA_EXCEEDED */
  assertFits(count: number) {
    const { use, limit } = this
    if (!this.fits(count)) throw quotaExceededProblem(use.kind, limit, use.used)
  }

  /** Reserves some more; fewer, when `count` is negative. @throws 403 QUOTA_EXCEEDED */
  add(count: number) {
    if (count > 0) this.assertFits(count)
    this.hold(count)
  }

  /** Reserves some more without checking that it fits. */
  hold(count: number) {
    this.use.pending += count
    this.#held += count
  }

  /** Starts again, for work that is repeated from its beginning. */
  reset() {
    this.use.pending -= this.#held
    this.#held = 0
  }

  /** Turns what is reserved into use. */
  keep() {
    this.use.add(this.#held)
    this.reset()
    this.use.checkLevel(this.limit)
  }

  [Symbol.dispose]() {
    this.reset()
  }
}

/**
 * Returns a reservation without anything in it. When `expected` may not fit, the use is measured again, so that what was
 * deleted meanwhile counts; otherwise this happens in the background. Until the first measurement has ended, for which a
 * request waits only for some time, the use counts as none. `earlier` counts as used for this reservation alone.
 */
export async function openReservation(
  tenant: string,
  kind: QuotaKind,
  { limit, expected, earlier }: { limit: number; expected: number; earlier: number },
) {
  const use = knownUseOf(tenant, kind)
  use.askedAt = performance.now()
  const mayExceed = () => use.used + use.pending + earlier + expected > limit
  if (!use.isMeasured() || (mayExceed() && !use.isFresh(COST_FACTOR.awaited)))
    await use.measureWithin(MAX_WAIT_MS.request)
  else if (!use.isFresh(COST_FACTOR.background, MIN_INTERVAL_MS))
    use
      .measure()
      .then(() => use.checkLevel(limit))
      .catch((cause) => logError('QUOTA_USE_UNKNOWN', { tenant, quota: kind, cause }))
  use.checkLevel(limit)
  return new QuotaReservation(use, limit, earlier)
}
