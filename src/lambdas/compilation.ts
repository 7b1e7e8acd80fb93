import type { PublicCtx } from '../accounts/context'
import { toWorkOwner } from '../accounts/work-owner'
import { Problem } from '../core/problem'
import { sandboxPool } from './sandbox/pool'
import type { CompileError } from './sandbox/protocol'

/** Returns the JavaScript of a lambda's code. @throws 400 with each error and its position, 503 LAMBDA_BUSY */
export async function compileCode(ctx: PublicCtx, code: string): Promise<string> {
  const outcome = await sandboxPool.use(toWorkOwner(ctx), (sandbox) => sandbox.compile(code))
  if ('js' in outcome) return outcome.js
  if ('errors' in outcome) return throwCompileErrors(outcome.errors)
  return throwCompileErrors([{ message: 'The code takes too much time or memory to compile.' }])
}

function throwCompileErrors(errors: CompileError[]): never {
  const [first] = errors
  const message = errors.length === 1 ? first!.message : `The code has ${errors.length} errors. ${first!.message}`
  const details = errors.map((error) => ({ path: '/code', ...error }))
  throw new Problem(400, 'INVALID_INPUT', message, { details })
}
