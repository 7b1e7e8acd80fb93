import { logError } from '../core/log'
import { cached } from '../tenancy/cache'
import { listOpenServedSince, type Tenant } from '../tenancy/tenants'
import { sandboxPool } from './sandbox/pool'

const CHECK_INTERVAL_MS = 3_000 // ms

/**
 * Has a process wait for lambdas while tenants are in use that have some: to start one takes longer than most of them run.
 * Returns what stops it.
 */
export function startPrewarming(): () => void {
  let lastCheck = 0
  const prewarm = async () => {
    const served = listOpenServedSince(lastCheck)
    lastCheck = performance.now()
    for (const tenant of served) if (await hasLambdas(tenant)) return sandboxPool.prewarm()
  }
  const timer = setInterval(
    () => prewarm().catch((cause) => logError('LAMBDAS_NOT_WARMED', { cause })),
    CHECK_INTERVAL_MS,
  ).unref()
  return () => clearInterval(timer)
}

const hasLambdas = (tenant: Tenant) =>
  cached(tenant, 'lambdas', 'some', async () => (await tenant.db.query('select 1 from lambdas limit 1')).length > 0)
