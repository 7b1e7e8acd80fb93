import { Problem } from '../core/problem'
import type { Tenant } from '../tenancy/tenants'
import { sandboxPool } from './sandbox/pool'
import type { CompileError } from './sandbox/protocol'

/** Returns the JavaScript of a lambda's code. @throws 400 with each error and its position, 503 LAMBDA_BUSY */
export async function compileCode(tenant: Pick<Tenant, 'tenant'>, code: string): Promise<string> {
  const outcome = await sandboxPool.use(tenant, (sandbox) => sandbox.compile(code))
  if ('js' in outcome) return outcome.js
  if ('flaws' in outcome) return throwCompileErrors(outcome.flaws)
  return throwCompileErrors([{ message: 'The code takes too much time or memory to compile.' }])
}

function throwCompileErrors(flaws: CompileError[]): never {
  const [first] = flaws
  const message = flaws.length === 1 ? first!.message : `The code has ${flaws.length} errors. ${first!.message}`
  const details = flaws.map((flaw) => ({ path: '/code', ...flaw }))
  throw new Problem(400, 'INVALID_INPUT', message, { details })
}
