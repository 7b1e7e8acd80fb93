import { costlyWork, type WorkOwner } from '../../tenancy/fair-queue'

/** Thread time (ms) per second that formulas of a tenant may use before the limits of the queue apply. */
const BUDGET_MS_PER_SECOND = 100
const QUEUE_LIMITS = { perTenant: 500, perCaller: 200 }
const MAX_TRACKED_TENANTS = 10_000 // tenants

/** Thread time (ms) used by each tenant, as of `at`; the budget of the time since then is still to be deducted. */
const spentByTenant = new Map<string, { ms: number; at: number }>()

/**
 * Evaluates a formula when it is the caller's turn. `work` may `pause` to let others have theirs. Within the tenant's
 * budget, any number of evaluations may wait; beyond it, at most 200 per caller and 500 per tenant. @throws 503 BUSY
 */
export async function evaluateInTurn<T>(
  payer: WorkOwner,
  work: (pause: () => Promise<void>) => Promise<T>,
): Promise<T> {
  const leave = getSpentMs(payer) < BUDGET_MS_PER_SECOND ? undefined : costlyWork.acquireSlot(payer, QUEUE_LIMITS)
  let endSlice = () => {}
  const pause = async () => {
    endSlice()
    endSlice = await startSlice(payer)
  }
  try {
    await pause()
    return await work(pause)
  } finally {
    endSlice()
    leave?.()
  }
}

/** Waits for the caller's turn. Returns the function that ends it. */
function startSlice(payer: WorkOwner): Promise<() => void> {
  const started = Promise.withResolvers<() => void>()
  const slice = async () => {
    const ended = Promise.withResolvers<void>()
    const began = performance.now()
    started.resolve(ended.resolve)
    await ended.promise
    recordSpentMs(payer, performance.now() - began)
  }
  costlyWork.run(payer, slice, { whole: true }).catch(started.reject)
  return started.promise
}

function recordSpentMs(payer: WorkOwner, ms: number) {
  if (spentByTenant.size >= MAX_TRACKED_TENANTS) spentByTenant.clear()
  spentByTenant.set(payer.tenant, { ms: getSpentMs(payer) + ms, at: performance.now() })
}

function getSpentMs({ tenant }: WorkOwner): number {
  const { ms, at } = spentByTenant.get(tenant) ?? { ms: 0, at: 0 }
  return Math.max(0, ms - ((performance.now() - at) * BUDGET_MS_PER_SECOND) / 1_000)
}
