import type { PublicCtx } from '../../accounts/context'
import { registry } from '../../core/extension'
import { logError } from '../../core/log'
import { Problem } from '../../core/problem'
import { FairSemaphore } from '../../tenancy/fair-semaphore'

/** On whose behalf a run asks. */
export type CallContext = {
  ctx: PublicCtx
  /** When its time is over, by `performance.now`. */
  deadline: number
  /** Aborted when it has ended. */
  signal?: AbortSignal
  /** The request that it answers. */
  request?: Request
  /** How often it has asked other servers. */
  fetchCount: number
  /** The role by whose rights a lambda asks, where it has one of its own. */
  serviceRole?: string | null
}

/** Something that a lambda can ask `atoll` for. What comes in is whatever it sent. */
export type HostCall = (asking: CallContext, ...input: unknown[]) => Promise<unknown>

const MAX_CONCURRENT_CALLS = 8 // calls of a run
const MAX_ANSWER_LENGTH = 4 << 20 // characters

/** What lambdas can ask of the server, by the name of the call. */
export const hostCalls = registry<HostCall>('host calls of lambdas')

/** Answers what one run asks, some at a time, until it has ended. */
export function serveCalls(options: CallContext) {
  const semaphore = new FairSemaphore(MAX_CONCURRENT_CALLS, Number.POSITIVE_INFINITY)
  const abort = new AbortController()
  const context = { ...options, signal: abort.signal }
  const call = (name: string, input: string) =>
    semaphore.run(context.ctx, async () => {
      // What was still to come when it ended is not done any more.
      if (abort.signal.aborted) return { ok: false, answer: 'null' }
      try {
        return { ok: true, answer: await executeCall(context, name, input) }
      } catch (error) {
        return { ok: false, answer: JSON.stringify(toCallError(context, error, name, input)) }
      }
    })
  return { call, end: () => abort.abort() }
}

async function executeCall(context: CallContext, name: string, input: string): Promise<string> {
  const call = hostCalls().get(name)
  if (!call) throw new Problem(404, 'CALL_NOT_FOUND', `Unknown call "${name.slice(0, 100)}".`)
  const value = await call(context, ...(JSON.parse(input) as unknown[]))
  const text = value instanceof Response ? await value.text() : (JSON.stringify(value) ?? 'null')
  if (text.length > MAX_ANSWER_LENGTH)
    throw new Problem(
      413,
      'ANSWER_TOO_LARGE',
      `The result is larger than ${MAX_ANSWER_LENGTH >> 20} MiB. Request less.`,
    )
  return text || 'null'
}

function toCallError(context: CallContext, error: unknown, name: string, input: string) {
  if (error instanceof Problem) {
    const { status, code, more } = error
    return { status, code, message: explainRefusal(error, context, name, input), details: more.details }
  }
  logError('LAMBDA_CALL_FAILED', { tenant: context.ctx.tenant, cause: error })
  return { status: 500, code: 'INTERNAL', message: 'An internal error occurred.' }
}

/** What was refused for want of rights names the call and the way out; other refusals speak for themselves. */
function explainRefusal(
  { status, message }: Problem,
  { ctx, serviceRole }: CallContext,
  name: string,
  input: string,
): string {
  if (status !== 401 && status !== 403) return message
  const call = `${formatCall(name, input)} was refused`
  if (serviceRole) return `${call} to the lambda's serviceRole "${serviceRole}": ${message}`
  const remedy = 'Give the lambda a serviceRole that may do this'
  if (!ctx.actor) return `${call}, because the caller is anonymous. ${remedy}, or call it as a user who may.`
  return `${call} to the caller: ${message} ${remedy}.`
}

/** A call as its lambda has written it: `entities('todos').find`. */
function formatCall(name: string, input: string): string {
  const [area, verb] = name.split('.')
  if (area !== 'entities') return name
  const [blueprint] = JSON.parse(input) as unknown[]
  return `entities('${String(blueprint).slice(0, 100)}').${verb}`
}
