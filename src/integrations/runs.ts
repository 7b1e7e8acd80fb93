import { and, eq } from 'drizzle-orm'
import type { Ctx } from '../accounts/context'
import { toIsoString } from '../core/clock'
import { notFound } from '../core/problem'
import type { ListPage } from '../core/response-headers'
import { parseOptional } from '../core/shapes'
import { type Job, requeue } from '../jobs/queue'
import { jobs } from '../jobs/tables'
import { applyPage, type GrowingListQuery, parsePage, toGrowingListPage } from '../storage/pagination'
import { getIntegration } from './integrations'
import { type RunPayload, toRunOrderingKey } from './run-job'
import type { Run } from './shapes'

const { _id, attempts, created, finished, state } = jobs
const sortable = { _id, attempts, created, finished }

/**
 * Returns a page of waiting and dead runs, newest first. Successful runs are not kept.
 * @throws 404 INTEGRATION_NOT_FOUND
 */
export async function list(ctx: Ctx, id: string, query: GrowingListQuery & { state?: string }): Promise<ListPage<Run>> {
  await getIntegration(ctx.db, id)
  const page = parsePage(query, sortable)
  const wantedState = parseOptional(query.state) as Job['state'] | undefined
  const condition = and(eq(jobs.orderingKey, toRunOrderingKey(id)), wantedState && eq(state, wantedState))
  const rows = await applyPage(page, ctx.db.select().from(jobs).where(and(condition, page.after)))
  return toGrowingListPage(page, rows, () => ctx.db.$count(jobs, condition), toRun)
}

/** Queues a dead run again; a waiting run becomes due now. @throws 404 INTEGRATION_NOT_FOUND, RUN_NOT_FOUND */
export async function replay(ctx: Ctx, id: string, runId: string): Promise<Run> {
  await getIntegration(ctx.db, id)
  return ctx.write(async (tx) => {
    const condition = and(eq(_id, runId), eq(jobs.orderingKey, toRunOrderingKey(id)))
    if (!(await tx.select({ _id }).from(jobs).where(condition).get())) notFound('run')
    await requeue(ctx, tx, runId)
    return toRun((await tx.select().from(jobs).where(condition).get()) ?? notFound('run'))
  })
}

function toRun({ _id, payload, state, attempts, outcome, due, created, finished }: Job): Run {
  const runPayload = payload as RunPayload
  const trigger = 'event' in runPayload ? 'event' : 'due' in runPayload ? 'schedule' : 'webhook'
  const cause = {
    event: 'event' in runPayload ? runPayload.event : null,
    due: 'due' in runPayload ? toIsoString(runPayload.due) : null,
  }
  const nextAttempt = due === null ? null : toIsoString(due)
  const times = {
    nextAttempt,
    created: toIsoString(created),
    finished: finished === null ? null : toIsoString(finished),
  }
  return { _id, trigger, ...cause, state, attempts, outcome: outcome ?? null, ...times }
}
