import { setTimeout as pause } from 'node:timers/promises'
import { logError } from '../core/log'
import { Problem } from '../core/problem'
import { type Lease, withLease } from '../jobs/with-lease'
import { Busy, StorageFull } from '../storage/errors'
import type { Db } from '../storage/port'
import { costlyWork } from '../tenancy/fair-queue'
import { getTenant, type Tenant } from '../tenancy/tenants'

const LEASE_MS = 10_000 // ms until another process continues after a crash
const RETRY_MS = 1_000 // ms until the next attempt after a failure
/** How long (ms) an index waits for the read that asked for it, which goes on without it. */
export const INDEXING_DELAY_MS = 250
/** How long (ms) the build of an index waits for costly reads, which go on without it and would take longer beside it. */
const COSTLY_READS_WAIT_MS = 3_000
const POLL_MS = 20

type BlueprintWork = (tenant: Tenant, leased: Tenant & Lease, key: string) => Promise<void>

/**
 * Returns a function that starts or continues some work on a blueprint's entities in the background, in one process at a
 * time. It is repeated after a failure, until the blueprint or its tenant is gone. `errorCode` is that of the log. The first
 * attempt begins after `delayMs`.
 */
export function createBlueprintTask(name: string, errorCode: string, run: BlueprintWork, { delayMs = 0 } = {}) {
  const runningByDb = new WeakMap<Db, Set<string>>()

  return function resume(tenant: Tenant, key: string): void {
    const keys = runningByDb.get(tenant.db) ?? new Set()
    runningByDb.set(tenant.db, keys)
    if (keys.has(key)) return
    keys.add(key)
    const settle = (retryAfter?: number) => {
      keys.delete(key)
      if (retryAfter !== undefined) setTimeout(() => resume(tenant, key), Math.min(retryAfter, RETRY_MS)).unref()
    }
    const begun = delayMs ? pause(delayMs, undefined, { ref: false }) : Promise.resolve()
    begun
      .then(() => runUnderLease(tenant, key))
      .then(settle, (error) => {
        // The blueprint was removed meanwhile, or the tenant is no longer accessible.
        const isGone = error instanceof Problem && [403, 404].includes(error.status)
        // The storage itself logs that it is full.
        const isTold = error instanceof Busy || error instanceof StorageFull
        if (!isGone && !isTold) logError(errorCode, { tenant: tenant.tenant, cause: rootCause(error) })
        settle(isGone ? undefined : RETRY_MS)
      })
  }

  /** Returns after how many ms to retry, or undefined when no retry is needed. */
  async function runUnderLease({ tenant: id }: Tenant, key: string): Promise<number | undefined> {
    // Not the tenant of a request, whose writes may be bound to the response.
    const tenant = await getTenant(id)
    const outcome = await withLease(tenant, `${name} ${key}`, (leased) => run(tenant, leased, key), { ttlMs: LEASE_MS })
    return outcome.state === 'done' ? undefined : outcome.state === 'taken' ? outcome.left : RETRY_MS
  }
}

/** Returns a function that waits while costly reads of a tenant run, but no longer than for the first seconds. */
export function createReadsWait(
  tenant: string,
  { signal, maxMs = COSTLY_READS_WAIT_MS }: { signal?: AbortSignal; maxMs?: number } = {},
): () => Promise<void> {
  const deadline = performance.now() + maxMs
  return async () => {
    while (performance.now() < deadline && costlyWork.hasWork(tenant) && !signal?.aborted) await Bun.sleep(POLL_MS)
  }
}

/** Returns only the innermost cause, because the errors around it may quote the data of entities. */
const rootCause = (error: unknown): string =>
  error instanceof Error && error.cause ? rootCause(error.cause) : String(error)
