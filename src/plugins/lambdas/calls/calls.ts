import type { OpenCtx } from '../../../accounts/guard'
import { report } from '../../../core/log'
import { Problem } from '../../../core/problem'
import { Turns } from '../../../tenancy/turns'
import { create, find, get, remove, update } from './entities'
import { fetching } from './fetch'

/** On whose behalf a run asks. */
export type Asking = {
  ctx: OpenCtx
  /** When its time is over, by `performance.now`. */
  deadline: number
  /** Aborted when it has ended. */
  signal?: AbortSignal
  /** The request that it answers. */
  request?: Request
  /** How often it has asked other servers. */
  fetches: number
  /** The role by whose rights a lambda asks, where it has one of its own. */
  serviceRole?: string | null
}

/** Something that a lambda can ask `atoll` for. What comes in is whatever it sent. */
export type Call = (asking: Asking, ...input: unknown[]) => Promise<unknown>

const AT_ONCE = 8 // calls of a run
const ANSWER = 4 << 20 // characters

const calls: Record<string, Call> = {
  'entities.find': find,
  'entities.get': get,
  'entities.create': create,
  'entities.update': update,
  'entities.remove': remove,
  fetch: fetching,
}

/** Says by whom it is answered what lambdas ask of other areas. */
export function lambdasMayAsk(more: Record<string, Call>) {
  Object.assign(calls, more)
}

/** Answers what one run asks, some at a time, until it has ended. */
export function answering(options: Asking) {
  const turns = new Turns(AT_ONCE, Number.POSITIVE_INFINITY)
  const ending = new AbortController()
  const asking = { ...options, signal: ending.signal }
  const call = (name: string, input: string) =>
    turns.take(asking.ctx, async () => {
      // What was still to come when it ended is not done any more.
      if (ending.signal.aborted) return { ok: false, answer: 'null' }
      try {
        return { ok: true, answer: await answered(asking, name, input) }
      } catch (error) {
        return { ok: false, answer: JSON.stringify(refused(asking, error, name, input)) }
      }
    })
  return { call, end: () => ending.abort() }
}

async function answered(asking: Asking, name: string, input: string): Promise<string> {
  const call = Object.hasOwn(calls, name) ? calls[name] : undefined
  if (!call) throw new Problem(404, 'CALL_NOT_FOUND', `A lambda cannot ask for "${name.slice(0, 100)}".`)
  const value = await call(asking, ...(JSON.parse(input) as unknown[]))
  const text = value instanceof Response ? await value.text() : (JSON.stringify(value) ?? 'null')
  if (text.length > ANSWER)
    throw new Problem(413, 'ANSWER_TOO_LARGE', `A lambda is told at most ${ANSWER >> 20} MiB at once. Ask for less.`)
  return text || 'null'
}

function refused(asking: Asking, error: unknown, name: string, input: string) {
  if (error instanceof Problem) {
    const { status, code, more } = error
    return { status, code, message: explained(error, asking, name, input), details: more.details }
  }
  report('LAMBDA_CALL_FAILED', { tenant: asking.ctx.tenant, cause: error })
  return { status: 500, code: 'INTERNAL', message: 'Something went wrong on the side of the platform.' }
}

/** What was refused for want of rights names the call and the way out; other refusals speak for themselves. */
function explained({ status, message }: Problem, { ctx, serviceRole }: Asking, name: string, input: string): string {
  if (status !== 401 && status !== 403) return message
  const call = `${written(name, input)} was refused`
  if (serviceRole) return `${call} to the lambda's serviceRole "${serviceRole}": ${message}`
  const way = 'Give the lambda a serviceRole that may do this'
  if (!ctx.actor) return `${call}, because nobody is signed in. ${way}, or have it called by a user who may.`
  return `${call} to the caller: ${message} ${way}.`
}

/** A call as its lambda has written it: `entities('todos').find`. */
function written(name: string, input: string): string {
  const [area, verb] = name.split('.')
  if (area !== 'entities') return name
  const [blueprint] = JSON.parse(input) as unknown[]
  return `entities('${String(blueprint).slice(0, 100)}').${verb}`
}
