import { cached } from '../tenancy/cache'
import type { Tenant } from '../tenancy/tenants'
import { readValues } from './env'
import { getLambda } from './lambdas'
import type { RunLimits } from './sandbox/protocol'

/** What a run needs of a lambda. `env` is JSON. */
export type RunnableLambda = {
  _id: string
  name: string
  version: number
  js: string
  env: string
  bounds: RunLimits
  serviceRole: string | null
}

/** A lambda ready to run, at once when it is known; throws 404. */
export const getRunnable = (tenant: Tenant, id: string): RunnableLambda | Promise<RunnableLambda> =>
  cached(tenant, 'lambdas', id, async () => {
    const { lambda, js } = await getLambda(tenant.db, id)
    const { _id, name, version, timeoutMs, memoryMb, serviceRole, env } = lambda
    const bounds = { time: timeoutMs, memory: memoryMb << 20 }
    return { _id, name, version, js, env: JSON.stringify(await readValues(tenant, id, env)), bounds, serviceRole }
  })
