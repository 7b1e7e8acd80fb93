import type { OpenCtx } from '../../accounts/guard'
import { iso, now } from '../../core/clock'
import { waitsLong, waitsNoLonger } from '../../tenancy/caller'
import { answerOf, type Failed, JSON_TYPE, type LambdaAnswer, problemOf } from './answer'
import { type Asked, askedFor } from './asked'
import { answering } from './calls/calls'
import { loaded, type Running } from './loaded'
import { actingFor } from './rights'
import { note } from './runs'
import type { Broken, Child } from './sandbox/child'
import { pool } from './sandbox/pool'
import type { Ending, Line } from './sandbox/protocol'
import type { Input } from './shapes'

/** Why a lambda runs. */
export type How = {
  /** What it is run by, as its log tells: `webhook`, `event`, `schedule`, `chat`, `tool`. */
  trigger: string
  /** What has happened, where that is why. */
  event?: unknown
  /** The request that waits for it. */
  request?: Request
  /** Nobody waits for it: that it fails is told as an event. */
  unattended?: boolean
}

/**
 * Runs a lambda for a caller (`ctx.actor`, or nobody), by whose rights it asks unless it has a role of its own.
 * @throws 404 LAMBDA_NOT_FOUND, 503 LAMBDA_BUSY, 504 LAMBDA_TIMEOUT, 500 LAMBDA_OUT_OF_MEMORY and LAMBDA_FAILED, whose
 * reason only privileged callers are told
 */
export async function run(ctx: OpenCtx, lambdaId: string, asked: Asked, how: How): Promise<LambdaAnswer> {
  const { answer, failed } = await perform(ctx, lambdaId, asked, how)
  if (failed) throw problemOf(failed, !!ctx.actor?.privileged)
  return answer!
}

/** Runs a lambda by hand. It really runs: what it writes stays. @throws 404, 503 LAMBDA_BUSY */
export async function execute(ctx: OpenCtx, id: string, input: Input | null, request: Request): Promise<Response> {
  const asked = askedFor(input ?? {})
  const done = await perform(ctx, id, asked, { trigger: 'execute', event: input?.event, request })
  const { value, failed, logs, durationMs } = done
  const told = failed ? JSON.stringify({ code: failed.code, message: failed.message, stack: failed.stack }) : value
  // What a lambda returned may be nested so deeply that nobody should read it on the way.
  const text = `{"${failed ? 'error' : 'result'}":${told},"logs":${JSON.stringify(logs)},"durationMs":${durationMs}}`
  return new Response(text, { headers: { 'content-type': JSON_TYPE } })
}

type Done = { value?: string; answer?: LambdaAnswer; failed?: Failed; logs: Line[]; durationMs: number }

async function perform(ctx: OpenCtx, id: string, asked: Asked, how: How): Promise<Done> {
  const known = loaded(ctx, id)
  const lambda = known instanceof Promise ? await known : known
  // A connection on which nothing moves for ten seconds would be cut.
  if (how.request) waitsLong(how.request)
  const running = pool.use(ctx, (sandbox) => performIn(sandbox, ctx, lambda, asked, how))
  const done = await running.finally(() => how.request && waitsNoLonger(how.request))
  logged(ctx, lambda, how, done)
  return done
}

async function performIn(sandbox: Child, ctx: OpenCtx, lambda: Running, asked: Asked, how: How) {
  const [started, began] = [now(), performance.now()]
  const logs: Line[] = []
  const deadline = began + lambda.bounds.time
  const { serviceRole } = lambda
  const asking = { ctx: actingFor(ctx, lambda), deadline, request: how.request, fetches: 0, serviceRole }
  const { call, end } = answering(asking)
  const job = { js: lambda.js, request: requestText(ctx, asked, how), env: lambda.env, bounds: lambda.bounds }
  const ending = await sandbox.run(job, { call, line: (line) => void logs.push(line) })
  end()
  return { started, logs, durationMs: Math.round(performance.now() - began), ...outcome(ending) }
}

/** What the lambda sees as `request`. */
function requestText({ actor }: OpenCtx, asked: Asked, { event }: How) {
  const user = actor ? { _id: actor.user, roles: actor.roles } : null
  return JSON.stringify({ ...asked, user, workspace: actor?.workspace ?? null, ...(event !== undefined && { event }) })
}

function outcome(ending: Ending | Broken): Pick<Done, 'value' | 'answer' | 'failed'> {
  if ('value' in ending)
    try {
      return { value: ending.value, answer: answerOf(ending) }
    } catch (error) {
      return { failed: failing((error as Error).message) }
    }
  if ('error' in ending) return { failed: failing(`${ending.error.name}: ${ending.error.message}`, ending.error.stack) }
  if (ending.failure === 'timeout')
    return { failed: { status: 504, code: 'LAMBDA_TIMEOUT', message: 'The lambda took too long.' } }
  if (ending.failure === 'memory')
    return { failed: { status: 500, code: 'LAMBDA_OUT_OF_MEMORY', message: 'The lambda took too much memory.' } }
  return { failed: failing('The lambda broke the process that it ran in.') }
}

const failing = (message: string, stack?: string): Failed => ({ status: 500, code: 'LAMBDA_FAILED', message, stack })

/** Nobody waits for it. */
function logged(ctx: OpenCtx, { _id, name, version }: Running, how: How, done: Done & { started: number }) {
  const { answer, failed, logs, started, durationMs: duration } = done
  const status = failed?.status ?? answer!.status
  const error = failed ? { code: failed.code, message: failed.message, stack: failed.stack } : null
  const { trigger, unattended = false } = how
  const user = ctx.actor?.user ?? null
  const run = { lambda: _id, version, trigger, status, error, started: iso(started), duration, user, logs }
  note(ctx, run, name, unattended)
}
