import type { PublicCtx } from '../../accounts/context'
import { toWorkOwner } from '../../accounts/work-owner'
import { registry } from '../../core/extension'
import { FairShare } from '../../core/fair-share'
import { logError } from '../../core/log'
import { Problem } from '../../core/problem'

/** The context of the host calls of one run. */
export type CallContext = {
  ctx: PublicCtx
  /** When the run times out, as a value of `performance.now()`. */
  deadline: number
  /** Aborted when the run has ended. */
  signal?: AbortSignal
  /** The request that the run answers. */
  request?: Request
  /** The number of `fetch` calls so far. */
  fetchCount: number
  /** The role whose rights replace those of the caller. */
  serviceRole?: string | null
}

/** A function of `atoll` in lambdas. The lambda's input is not validated yet. */
export type HostCall = (context: CallContext, ...input: unknown[]) => Promise<unknown>

const MAX_CONCURRENT_CALLS = 8 // calls of one run
const MAX_ANSWER_LENGTH = 4 << 20 // characters

/** The functions that lambdas can call, by name. */
export const hostCalls = registry<HostCall>('host calls of lambdas')

/** Returns a function that answers the host calls of one run, at most 8 at a time, and one that ends them. */
export function serveCalls(options: CallContext) {
  const share = new FairShare({ running: { total: MAX_CONCURRENT_CALLS }, waiting: {} })
  const abort = new AbortController()
  const context = { ...options, signal: abort.signal }
  const owner = toWorkOwner(context.ctx)
  const call = (name: string, input: string) =>
    share.run(owner, async () => {
      // Calls that still waited when the run ended are not executed.
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

/** Adds the call and a remedy to the message of a 401 or 403; other messages stay as they are. */
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

/** Returns a call as the lambda wrote it: `entities('todos').find`. */
function formatCall(name: string, input: string): string {
  const [area, verb] = name.split('.')
  if (area !== 'entities') return name
  const [blueprint] = JSON.parse(input) as unknown[]
  return `entities('${String(blueprint).slice(0, 100)}').${verb}`
}
