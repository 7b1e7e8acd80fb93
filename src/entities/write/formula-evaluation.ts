import { costlyWork, type WorkOwner } from '../../tenancy/fair-queue'
import { ThreadBudget } from '../../tenancy/thread-budget'

/** What formulas of a tenant may use before the limits of the queue apply. */
const formulaBudget = new ThreadBudget(100)
const QUEUE_LIMITS = { perTenant: 500, perCaller: 200 }

/**
 * Evaluates a formula when it is the caller's turn. `work` may `pause` to let others have theirs. Within the tenant's
 * budget, any number of evaluations may wait; beyond it, at most 200 per caller and 500 per tenant. @throws 503 BUSY
 */
export async function evaluateInTurn<T>(
  payer: WorkOwner,
  work: (pause: () => Promise<void>) => Promise<T>,
): Promise<T> {
  const leave = formulaBudget.isExceeded(payer.tenant) ? costlyWork.acquireSlot(payer, QUEUE_LIMITS) : undefined
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
    formulaBudget.charge(payer.tenant, performance.now() - began)
  }
  costlyWork.run(payer, slice, { whole: true }).catch(started.reject)
  return started.promise
}
