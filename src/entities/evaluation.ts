import { costlyWork, type Payer } from '../tenancy/fair-queue'

/** What formulas of a tenant may take of each second before those who wait for more are counted, in ms of the thread. */
const BUDGET = 100
const LIMITS = { perTenant: 500, perCaller: 200 }
const TENANTS = 10_000 // that are remembered

/** Thread time (ms) beyond the budget of the time since, by tenant. */
const spent = new Map<string, { ms: number; at: number }>()

/**
 * Evaluates a formula when it is the caller's turn, and others get theirs before the next. Within its tenant's budget as
 * many may wait as there are; beyond it, 200 of a caller and 500 of a tenant.
 * @throws 503 BUSY
 */
export async function evaluateInTurn<T>(payer: Payer, work: () => Promise<T>): Promise<T> {
  const leave = spentBy(payer) < BUDGET ? undefined : costlyWork.enter(payer, LIMITS)
  try {
    return await costlyWork.run(payer, () => measured(payer, work), { whole: true })
  } finally {
    leave?.()
  }
}

async function measured<T>(payer: Payer, work: () => Promise<T>): Promise<T> {
  const began = performance.now()
  try {
    return await work()
  } finally {
    const at = performance.now()
    if (spent.size >= TENANTS) spent.clear()
    spent.set(payer.tenant, { ms: spentBy(payer) + at - began, at })
  }
}

function spentBy({ tenant }: Payer): number {
  const { ms, at } = spent.get(tenant) ?? { ms: 0, at: 0 }
  return Math.max(0, ms - ((performance.now() - at) * BUDGET) / 1_000)
}
