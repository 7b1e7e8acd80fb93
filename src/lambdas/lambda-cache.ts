import { cached } from '../tenancy/cache'
import type { Tenant } from '../tenancy/tenants'
import { readValues } from './env'
import { getLambda } from './lambdas'
import type { RunLimits } from './sandbox/protocol'

/** The parts of a lambda that a run needs. `env` is JSON. */
export type RunnableLambda = {
  _id: string
  name: string
  version: number
  js: string
  env: string
  limits: RunLimits
  serviceRole: string | null
}

/** Returns a lambda that is ready to run, synchronously when it is cached. @throws 404 LAMBDA_NOT_FOUND */
export const getRunnable = (tenant: Tenant, id: string): RunnableLambda | Promise<RunnableLambda> =>
  cached(tenant, 'lambdas', id, async () => {
    const { lambda, js } = await getLambda(tenant.db, id)
    const { _id, name, version, timeoutMs, memoryMb, serviceRole, env } = lambda
    const limits = { time: timeoutMs, memory: memoryMb << 20 }
    return { _id, name, version, js, env: JSON.stringify(await readValues(tenant, id, env)), limits, serviceRole }
  })
