import { logError } from '../core/log'
import { repeatWork } from '../core/repeated-work'
import { cached } from '../tenancy/cache'
import { eachOpenServedSince, type Tenant } from '../tenancy/tenants'
import { sandboxPool } from './sandbox/pool'

const CHECK_INTERVAL_MS = 3_000

/**
 * Keeps a sandbox process started while tenants that have lambdas are in use: a start takes longer than most runs.
 * Returns a function that stops this.
 */
export function startPrewarming(): () => void {
  let lastCheck = 0
  const prewarm = async () => {
    const since = lastCheck
    lastCheck = performance.now()
    for await (const tenant of eachOpenServedSince(since, CHECK_INTERVAL_MS / 2))
      if (await hasLambdas(tenant)) return sandboxPool.prewarm()
  }
  return repeatWork(() => prewarm().catch((cause) => logError('LAMBDAS_NOT_WARMED', { cause })), CHECK_INTERVAL_MS).stop
}

const hasLambdas = (tenant: Tenant) =>
  cached(tenant, 'lambdas', 'some', async () => (await tenant.db.query('select 1 from lambdas limit 1')).length > 0)
