import { report } from '../../core/log'
import { recall } from '../../tenancy/memory'
import { openServedSince, type Tenant } from '../../tenancy/tenants'
import { pool } from './sandbox/pool'

const OFTEN = 3_000 // ms

/**
 * Has a process wait for lambdas while tenants are in use that have some: to start one takes longer than most of them run.
 * Returns what stops it.
 */
export function keepWarm(): () => void {
  let last = 0
  const look = async () => {
    const served = openServedSince(last)
    last = performance.now()
    for (const tenant of served) if (await hasLambdas(tenant)) return pool.ready()
  }
  const timer = setInterval(() => look().catch((cause) => report('LAMBDAS_NOT_WARMED', { cause })), OFTEN).unref()
  return () => clearInterval(timer)
}

const hasLambdas = (tenant: Tenant) =>
  recall(tenant, 'lambdas', 'some', async () => (await tenant.db.ask('select 1 from lambdas limit 1')).length > 0)
