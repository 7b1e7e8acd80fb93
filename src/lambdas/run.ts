import type { PublicCtx } from '../accounts/context'
import { toWorkOwner } from '../accounts/work-owner'
import { now, toIsoString } from '../core/clock'
import { bindTrace } from '../core/trace'
import { assertQuotaLeft } from '../limits/quota-check'
import { addUse } from '../limits/quota-use'
import { disableIdleTimeout } from '../tenancy/client-connection'
import { serveCalls } from './host-api/host-api'
import { getRunnable, type RunnableLambda } from './lambda-cache'
import { inputToLambdaRequest, type LambdaRequest } from './request'
import { JSON_CONTENT_TYPE, type LambdaResponse, type RunFailure, toLambdaResponse, toProblem } from './response'
import { recordRun } from './runs'
import { sandboxPool } from './sandbox/pool'
import type { LogLine, RunResult } from './sandbox/protocol'
import type { SandboxCrash, SandboxProcess } from './sandbox/sandbox-process'
import { toRunContext } from './service-role'
import type { Input } from './shapes'

/** Why and for which request a lambda runs. */
export type RunOptions = {
  /** The trigger in the log: `execute`, `webhook`, `event`, `schedule`, `chat`, `tool`. */
  trigger: string
  /** The event that triggered the run. */
  event?: unknown
  /** The request that waits for the run. */
  request?: Request
}

/**
 * Runs a lambda for a caller (`ctx.actor`; anonymous without one), with the caller's rights unless it has a
 * `serviceRole`.
 * @throws 403 QUOTA_EXCEEDED, 404 LAMBDA_NOT_FOUND, 503 LAMBDA_BUSY, 504 LAMBDA_TIMEOUT, 500 LAMBDA_OUT_OF_MEMORY, 500 LAMBDA_FAILED, whose
 * reason only a privileged caller sees
 */
export async function runLambda(
  ctx: PublicCtx,
  lambdaId: string,
  lambdaRequest: LambdaRequest,
  options: RunOptions,
): Promise<LambdaResponse> {
  const { answer, failed } = await runInPool(ctx, lambdaId, lambdaRequest, options)
  if (failed) throw toProblem(failed, !!ctx.actor?.privileged)
  return answer!
}

/** Runs a lambda manually, with all its side effects, and returns its result and log. @throws 403 QUOTA_EXCEEDED, 404, 503 */
export async function executeLambda(
  ctx: PublicCtx,
  id: string,
  input: Input | null,
  request: Request,
): Promise<Response> {
  const lambdaRequest = inputToLambdaRequest(input ?? {})
  const outcome = await runInPool(ctx, id, lambdaRequest, { trigger: 'execute', event: input?.event, request })
  const { value, failed, logs, durationMs } = outcome
  const resultJson = failed
    ? JSON.stringify({ code: failed.code, message: failed.message, stack: failed.stack })
    : value
  // The value of a lambda may be nested so deeply that it is better not parsed here.
  const text = `{"${failed ? 'error' : 'result'}":${resultJson},"logs":${JSON.stringify(logs)},"durationMs":${durationMs}}`
  return new Response(text, { headers: { 'content-type': JSON_CONTENT_TYPE } })
}

type RunOutcome = { value?: string; answer?: LambdaResponse; failed?: RunFailure; logs: LogLine[]; durationMs: number }

async function runInPool(
  ctx: PublicCtx,
  id: string,
  lambdaRequest: LambdaRequest,
  options: RunOptions,
): Promise<RunOutcome> {
  const cached = getRunnable(ctx, id)
  const lambda = cached instanceof Promise ? await cached : cached
  await assertQuotaLeft(ctx, 'lambdaSeconds')
  // The end of the request restores the timeout. The run may be only a part of it, such as a tool of an agent.
  if (options.request) disableIdleTimeout(options.request)
  const done = await sandboxPool.use(toWorkOwner(ctx, options.request), (sandbox) =>
    runInSandbox(sandbox, ctx, lambda, lambdaRequest, options),
  )
  addUse(ctx, 'lambdaSeconds', done.durationMs / 1_000)
  logRun(ctx, lambda, options, done)
  return done
}

async function runInSandbox(
  sandbox: SandboxProcess,
  ctx: PublicCtx,
  lambda: RunnableLambda,
  lambdaRequest: LambdaRequest,
  options: RunOptions,
) {
  const [startedAt, startTime] = [now(), performance.now()]
  const logs: LogLine[] = []
  const deadline = startTime + lambda.limits.time
  const { serviceRole } = lambda
  const context = { ctx: toRunContext(ctx, lambda), deadline, request: options.request, fetchCount: 0, serviceRole }
  const { call, end } = serveCalls(context)
  const job = {
    js: lambda.js,
    request: toRequestJson(ctx, lambdaRequest, options),
    env: lambda.env,
    limits: lambda.limits,
  }
  // Messages of the process arrive outside of the trace.
  const result = await sandbox.run(job, { call: bindTrace(call), line: (line) => void logs.push(line) })
  end()
  return { started: startedAt, logs, durationMs: Math.round(performance.now() - startTime), ...toOutcome(result) }
}

/** Returns the JSON of the lambda's parameter `request`. */
function toRequestJson({ actor }: PublicCtx, lambdaRequest: LambdaRequest, { event }: RunOptions) {
  const user = actor ? { _id: actor.user, username: actor.username, roles: actor.roles } : null
  return JSON.stringify({
    ...lambdaRequest,
    user,
    workspace: actor?.workspace ?? null,
    ...(event !== undefined && { event }),
  })
}

function toOutcome(result: RunResult | SandboxCrash): Pick<RunOutcome, 'value' | 'answer' | 'failed'> {
  if ('value' in result)
    try {
      return { value: result.value, answer: toLambdaResponse(result) }
    } catch (error) {
      return { failed: toFailure((error as Error).message) }
    }
  if ('error' in result)
    return { failed: toFailure(`${result.error.name}: ${result.error.message}`, result.error.stack) }
  if (result.failure === 'timeout')
    return { failed: { status: 504, code: 'LAMBDA_TIMEOUT', message: 'The lambda exceeded its time limit.' } }
  if (result.failure === 'memory')
    return { failed: { status: 500, code: 'LAMBDA_OUT_OF_MEMORY', message: 'The lambda exceeded its memory limit.' } }
  return { failed: toFailure('The lambda crashed its sandbox process.') }
}

const toFailure = (message: string, stack?: string): RunFailure => ({
  status: 500,
  code: 'LAMBDA_FAILED',
  message,
  stack,
})

/** Records the run in the background. */
function logRun(
  ctx: PublicCtx,
  { _id, name, version }: RunnableLambda,
  options: RunOptions,
  done: RunOutcome & { started: number },
) {
  const { answer, failed, logs, started, durationMs: duration } = done
  const status = failed?.status ?? answer!.status
  const error = failed ? { code: failed.code, message: failed.message, stack: failed.stack } : null
  const user = ctx.actor?.user ?? null
  const run = {
    lambda: _id,
    version,
    trigger: options.trigger,
    status,
    error,
    started: toIsoString(started),
    duration,
    user,
    logs,
  }
  recordRun(ctx, run, name)
}
