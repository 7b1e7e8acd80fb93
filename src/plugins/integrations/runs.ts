import { and, eq } from 'drizzle-orm'
import type { Ctx } from '../../accounts/guard'
import { iso } from '../../core/clock'
import { type Answer, forbidKeeping } from '../../core/etag'
import { missing } from '../../core/problem'
import { given } from '../../core/shapes'
import { type Job, replay as tryAgain } from '../../jobs/queue'
import { jobs } from '../../jobs/tables'
import { answerGrowingPage, type GrowingListing, paged, pageOf } from '../../storage/lists'
import { found } from './integrations'
import { type Load, laneOf } from './running'
import type { Run } from './shapes'

const { _id, attempts, created, finished, state } = jobs
const sortable = { _id, attempts, created, finished }

/** A page of what waits to be run, and what was given up, the newest first. What succeeded is not kept. @throws 404 */
export async function list(
  ctx: Ctx,
  id: string,
  query: GrowingListing & { state?: string },
  answer: Answer,
): Promise<Run[]> {
  await found(ctx.db, id)
  forbidKeeping(answer)
  const page = pageOf(query, sortable)
  const wanted = given(query.state) as Job['state'] | undefined
  const those = and(eq(jobs.lane, laneOf(id)), wanted && eq(state, wanted))
  const rows = await paged(page, ctx.db.select().from(jobs).where(and(those, page.after)))
  return answerGrowingPage(answer, page, rows, () => ctx.db.$count(jobs, those), shown)
}

/** Has a run that was given up tried again, when it is its turn; what waits is tried now. @throws 404 */
export async function replay(ctx: Ctx, id: string, runId: string): Promise<Run> {
  await found(ctx.db, id)
  return ctx.write(async (tx) => {
    const one = and(eq(_id, runId), eq(jobs.lane, laneOf(id)))
    if (!(await tx.select({ _id }).from(jobs).where(one).get())) missing('run')
    await tryAgain(ctx, tx, runId)
    return shown((await tx.select().from(jobs).where(one).get()) ?? missing('run'))
  })
}

function shown({ _id, payload, state, attempts, outcome, due, created, finished }: Job): Run {
  const load = payload as Load
  const trigger = 'event' in load ? 'event' : 'due' in load ? 'schedule' : 'webhook'
  const what = { event: 'event' in load ? load.event : null, due: 'due' in load ? iso(load.due) : null }
  const nextAttempt = due === null ? null : iso(due)
  const times = { nextAttempt, created: iso(created), finished: finished === null ? null : iso(finished) }
  return { _id, trigger, ...what, state, attempts, outcome: outcome ?? null, ...times }
}
