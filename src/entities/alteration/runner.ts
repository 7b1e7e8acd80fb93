import { setTimeout as pause } from 'node:timers/promises'
import { getModel } from '../../blueprints/blueprints'
import { isAltering, pendingModelOf } from '../../blueprints/model'
import { sharesData } from '../../config'
import { yieldToEventLoop } from '../../core/event-loop'
import { logError } from '../../core/log'
import { Problem } from '../../core/problem'
import { type Lease, withLease } from '../../jobs/with-lease'
import { Busy } from '../../storage/errors'
import type { Db } from '../../storage/port'
import { invalidate } from '../../tenancy/cache'
import { getTenant, type Tenant } from '../../tenancy/tenants'
import { backfill } from './backfill'
import { cleanUp } from './cleanup'

const LEASE_MS = 10_000 // ms until another process continues after a crash
const RETRY_MS = 1_000 // ms until the next attempt after a failure
const CACHE_PROPAGATION_MS = 1_500 // ms; longer than another server trusts its cache

const runningAlterations = new WeakMap<Db, Set<string>>()

/**
 * Continues the alteration of a blueprint's entities in the background, slice by slice, in one process at a time. After
 * an interruption, requests still see the form in force, and the next use of the blueprint resumes the alteration.
 */
export function resumeAlteration(tenant: Tenant, key: string): void {
  const keys = runningAlterations.get(tenant.db) ?? new Set()
  runningAlterations.set(tenant.db, keys)
  if (keys.has(key)) return
  keys.add(key)
  const settle = (retryAfter?: number) => {
    keys.delete(key)
    if (retryAfter !== undefined)
      setTimeout(() => resumeAlteration(tenant, key), Math.min(retryAfter, RETRY_MS)).unref()
  }
  runUnderLease(tenant, key).then(settle, (error) => {
    // The blueprint was removed meanwhile, or the tenant is no longer accessible.
    const isGone = error instanceof Problem && [403, 404].includes(error.status)
    if (!isGone && !(error instanceof Busy))
      logError('ALTERATION_INTERRUPTED', { tenant: tenant.tenant, cause: rootCause(error) })
    settle(isGone ? undefined : RETRY_MS)
  })
}

/** Returns only the innermost cause, because the errors around it may quote the data of entities. */
const rootCause = (error: unknown): string =>
  error instanceof Error && error.cause ? rootCause(error.cause) : String(error)

/** Returns after how many ms to retry, or undefined when no retry is needed. */
async function runUnderLease({ tenant: id }: Tenant, key: string): Promise<number | undefined> {
  // Not the tenant of a request, whose writes may be bound to the response.
  const tenant = await getTenant(id)
  const outcome = await withLease(tenant, `alteration ${key}`, (leased) => runSteps(tenant, leased, key), {
    ttlMs: LEASE_MS,
  })
  return outcome.state === 'done' ? undefined : outcome.state === 'taken' ? outcome.left : RETRY_MS
}

async function runSteps(tenant: Tenant, leased: Tenant & Lease, key: string) {
  for (let waitedFor = 0; ; ) {
    leased.signal.throwIfAborted()
    const model = await getModel(tenant, key)
    const { alteration } = model
    if (!alteration || !isAltering(model)) return
    const pending = pendingModelOf(model)
    if (!pending && waitedFor !== alteration.form && sharesData) {
      // Other processes may read with the previous form until they have learned of the change.
      // Aborted: the loop checks the signal.
      await pause(CACHE_PROPAGATION_MS, undefined, { signal: leased.signal }).catch(() => {})
      waitedFor = alteration.form
      continue
    }
    const hasMore = await (pending ? backfill(leased, model, pending) : cleanUp(leased, model, alteration.form))
    if (!hasMore) invalidate(tenant, 'blueprints')
    await yieldToEventLoop()
  }
}
