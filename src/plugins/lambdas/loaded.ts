import { recall } from '../../tenancy/memory'
import type { Tenant } from '../../tenancy/tenants'
import { valuesOf } from './env'
import { named } from './lambdas'
import type { Bounds } from './sandbox/protocol'

/** What a run needs of a lambda. `env` is JSON. */
export type Running = {
  _id: string
  name: string
  version: number
  js: string
  env: string
  bounds: Bounds
  serviceRole: string | null
}

/** A lambda ready to run, at once when it is known; throws 404. */
export const loaded = (tenant: Tenant, id: string): Running | Promise<Running> =>
  recall(tenant, 'lambdas', id, async () => {
    const { lambda, js } = await named(tenant.db, id)
    const { _id, name, version, timeoutMs, memoryMb, serviceRole, env } = lambda
    const bounds = { time: timeoutMs, memory: memoryMb << 20 }
    return { _id, name, version, js, env: JSON.stringify(await valuesOf(tenant, id, env)), bounds, serviceRole }
  })
