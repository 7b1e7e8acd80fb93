import { costlyWork } from '../../tenancy/fair-queue'
import { ThreadBudget } from '../../tenancy/thread-budget'

/**
 * How many ms a read may take before it counts as costly: on the thread, for tenants that have used much of it lately,
 * and waiting for the database.
 */
export const freeReadMs = { thread: 2.5, threadBeyondBudget: 0.75, waiting: 200 }

/** How many ms a read of PostgreSQL may take on the main thread, in turns, before others of its shape go to a reader thread. */
export const clusterReadMs = { thread: 10 }

/** Many reads below the threshold would keep other tenants waiting like a few costly ones. */
const readBudget = new ThreadBudget(100)

/** Records the thread time (ms) of a read of a tenant that was not costly. */
export function chargeFreeRead(tenant: string, ms: number) {
  readBudget.charge(tenant, ms)
  costlyWork.noteUse(tenant, ms)
}

/** Tells whether cheap reads of a tenant exceed their budget, and its share of the thread. */
export const isFlooding = (tenant: string) => readBudget.isExceeded(tenant) && costlyWork.isAboveShare(tenant)

/** Tells whether a read has taken more of the thread (ms), or waited for the database longer, than cheap reads do. */
export const isCostlyRead = (tenant: string, threadMs: number, waitedMs: number) =>
  waitedMs > freeReadMs.waiting ||
  threadMs > freeReadMs.thread ||
  (threadMs > freeReadMs.threadBeyondBudget && readBudget.isExceeded(tenant))

/** How many costly reads may be under way. */
export const COSTLY_READ_LIMITS = { perTenant: 400, perCaller: 100 }
