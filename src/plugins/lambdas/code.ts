import { Problem } from '../../core/problem'
import type { Tenant } from '../../tenancy/tenants'
import { pool } from './sandbox/pool'
import type { Place } from './sandbox/protocol'

/** What runs of a code. @throws 400 with what is wrong with it, and where; 503 LAMBDA_BUSY */
export async function compiled(tenant: Pick<Tenant, 'tenant'>, code: string): Promise<string> {
  const outcome = await pool.use(tenant, (sandbox) => sandbox.compile(code))
  if ('js' in outcome) return outcome.js
  if ('flaws' in outcome) return refuse(outcome.flaws)
  return refuse([{ message: 'It takes too much time or memory to compile.' }])
}

function refuse(flaws: Place[]): never {
  const [first] = flaws
  const message = flaws.length === 1 ? first!.message : `The code has ${flaws.length} errors. ${first!.message}`
  const details = flaws.map((flaw) => ({ path: '/code', ...flaw }))
  throw new Problem(400, 'INVALID_INPUT', message, { details })
}
