import type { Ctx } from '../accounts/context'
import { toIsoString } from '../core/clock'
import { notFound } from '../core/problem'
import { type Job, listRetried, retryNow } from '../jobs/queue'
import { jobHandlers } from '../jobs/worker'
import type { Db } from '../storage/port'
import type { FailingJob } from './shapes'

const MAX_LISTED = 100

/** Returns the jobs whose last attempt failed, the one that is tried next first: at most 100. */
export async function listFailingJobs({ db }: Ctx): Promise<FailingJob[]> {
  const retried = await listRetried(db, MAX_LISTED)
  return Promise.all(retried.map(({ job, behind }) => describe(db, job, behind)))
}

/** Retries a job now instead of at its next attempt. @throws 404 JOB_NOT_FOUND */
export const retryJob = async (ctx: Ctx, id: string) => ({
  success: await ctx.write(async (tx) => (await retryNow(ctx, tx, id)) || notFound('job')),
})

async function describe(db: Db, job: Job, waiting: number): Promise<FailingJob> {
  const { _id, kind, attempts, due, created, outcome } = job
  const subject = (await jobHandlers().get(kind)?.findSubject?.(db, job)) ?? null
  const { message, error } = (outcome ?? {}) as { message?: string; error?: string }
  const times = { nextAttempt: toIsoString(due!), created: toIsoString(created) }
  return { _id, kind, subject, attempts, error: error ?? message ?? null, waiting, ...times }
}
