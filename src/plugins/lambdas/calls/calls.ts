import type { OpenCtx } from '../../../accounts/guard'
import { report } from '../../../core/log'
import { Problem } from '../../../core/problem'
import { Turns } from '../../../tenancy/turns'
import { create, find, get, remove, update } from './entities'
import { fetching } from './fetch'

/** On whose behalf a run asks, and until when (by `performance.now`). `request` is the one that it answers. */
export type Asking = { ctx: OpenCtx; deadline: number; request?: Request; fetches: number }

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
export function answering(asking: Asking) {
  const turns = new Turns(AT_ONCE, Number.POSITIVE_INFINITY)
  let over = false
  const call = (name: string, input: string) =>
    turns.take(asking.ctx, async () => {
      // What was still to come when it ended is not done any more.
      if (over) return { ok: false, answer: 'null' }
      try {
        return { ok: true, answer: await answered(asking, name, input) }
      } catch (error) {
        return { ok: false, answer: JSON.stringify(refused(asking.ctx, error)) }
      }
    })
  const end = () => {
    over = true
  }
  return { call, end }
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

function refused({ tenant }: OpenCtx, error: unknown) {
  if (error instanceof Problem) {
    const { status, code, message, more } = error
    return { status, code, message, details: more.details }
  }
  report('LAMBDA_CALL_FAILED', { tenant, cause: error })
  return { status: 500, code: 'INTERNAL', message: 'Something went wrong on the side of the platform.' }
}
