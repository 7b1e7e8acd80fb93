import { and, eq } from 'drizzle-orm'
import type { PublicCtx } from '../accounts/context'
import { toIsoString } from '../core/clock'
import { Problem } from '../core/problem'
import { emit, toPublicEvent } from '../jobs/outbox'
import type { Job, JobResult, NewJob } from '../jobs/queue'
import { events } from '../jobs/tables'
import { JobError, type JobHandler, readRetryAfter } from '../jobs/worker'
import { inputToLambdaRequest, type LambdaRequest } from '../lambdas/request'
import { isQuotaExceeded } from '../limits/quota-description'
import type { Db, Tx } from '../storage/port'
import type { Tenant } from '../tenancy/tenants'
import type { EventPayload, Invocation } from './invocation'
import { markEvents, withCause } from './loop-guard'
import { type IntegrationRow, integrations } from './tables'
import { callTarget, targets } from './targets/index'
import { matchesEvent } from './triggers/event'

/** The kind of jobs that run an integration in the background. */
export const RUN_JOB = 'integration'

/** The reason of a run: the id of an event, a due time (ms), or a request that has been answered. */
export type RunPayload = { integration: string; depth: number } & (
  | { event: string }
  | { due: number }
  | { asked: LambdaRequest }
)

/** Runs of one integration have one ordering key, so they run one after the other. */
export const toRunOrderingKey = (integration: string) => `${RUN_JOB} ${integration}`

/** Returns the job that runs an integration. */
export const buildRunJob = (payload: RunPayload, _id: string = Bun.randomUUIDv7()): NewJob & { _id: string } => ({
  ...{ _id, kind: RUN_JOB, orderingKey: toRunOrderingKey(payload.integration), payload: payload },
})

/**
 * Runs an integration's target for a caller (`ctx.actor`; anonymous without one). Its events are marked with their
 * cause.
 */
export const runTarget = (
  ctx: PublicCtx,
  row: IntegrationRow,
  invocation: Invocation,
  depth: number,
): Promise<Response> =>
  callTarget(withCause(ctx, { cause: row._id, depth }), row.target, { ...invocation, integration: row._id, depth })

/** The handler of background runs. A run that is given up is emitted as an event. */
export const runJob: JobHandler = {
  isOutgoing: true,
  async run({ token: _, signal, ...tenant }, job): Promise<JobResult> {
    const payload = job.payload as RunPayload
    const row = await findActive(tenant.db, payload.integration)
    const invocation = row && (await resolveInvocation(tenant, row, payload, job._id))
    // The integration has been changed, deactivated or removed.
    if (!row || !invocation) return { state: 'done' }
    try {
      const lastOutcome = job.outcome
      const { status, headers } = await runTarget(tenant, row, { ...invocation, lastOutcome, signal }, payload.depth)
      if (status < 400) return { state: 'done' }
      throw new JobError(`The target answered ${status}.`, readRetryAfter(headers))
    } catch (error) {
      throw toJobError(error, job.attempts + 1 >= (targets[row.targetKind].maxAttempts ?? Number.POSITIVE_INFINITY))
    }
  },
  onSettled: emitFailures,
  async findSubject(db, { payload }) {
    const { integration: _id } = payload as RunPayload
    const row = await db.select({ name: integrations.name }).from(integrations).where(eq(integrations._id, _id)).get()
    return row && { kind: 'integration', _id, ...row }
  },
}

/** Returns an active integration, or undefined. */
export const findActive = (db: Pick<Db, 'select'>, id: string) =>
  db
    .select()
    .from(integrations)
    .where(and(eq(integrations._id, id), eq(integrations.active, true)))
    .get()

/** Returns the invocation of a job, or undefined when the trigger has changed. */
async function resolveInvocation(
  { db }: Tenant,
  { trigger }: IntegrationRow,
  payload: RunPayload,
  _id: string,
): Promise<Invocation | undefined> {
  if ('asked' in payload)
    return trigger.kind === 'webhook' ? { _id, trigger: 'webhook', input: payload.asked } : undefined
  const input = inputToLambdaRequest({})
  if ('due' in payload)
    return trigger.kind === 'schedule'
      ? { _id, trigger: 'schedule', input, event: toDueEvent(payload, _id) }
      : undefined
  if (trigger.kind !== 'event') return
  const event = await db.select().from(events).where(eq(events._id, payload.event)).get()
  if (!event) throw new JobError('The event was too old and has been removed.', { permanent: true })
  return matchesEvent(trigger, event) ? { _id, trigger: 'event', input, event: toPublicEvent(event) } : undefined
}

const toDueEvent = ({ integration, due }: { integration: string; due: number }, _id: string): EventPayload => ({
  ...{ _id, source: 'plugins', kind: 'schedule', eventName: 'due', description: 'The schedule is due.' },
  ...{ metadata: { integration, due: toIsoString(due) }, user: null, workspace: null, created: toIsoString(due) },
})

/** Statuses that a retry cannot change: something that the target refers to does not exist. */
const PERMANENT_STATUSES = [404]

function toJobError(error: unknown, isLastAttempt: boolean): unknown {
  if (error instanceof JobError)
    return new JobError(error.message, { ...error.details, permanent: error.details.permanent || isLastAttempt })
  if (!(error instanceof Problem)) return error
  const { code, message, status } = error
  return new JobError(message, {
    outcome: { code, message },
    // Waiting runs would all start at once when the next day or month begins.
    permanent: isLastAttempt || PERMANENT_STATUSES.includes(status) || isQuotaExceeded(error),
  })
}

/** Tells whether a run was refused by a quota, of which an event has told once. */
const isForQuota = ({ outcome }: { outcome?: unknown }) =>
  (outcome as { code?: string } | undefined)?.code === 'QUOTA_EXCEEDED'

/** Emits an event for each run that was given up. It does not show the target, whose prompt or URL may be secret. */
async function emitFailures(tenant: Tenant, tx: Tx, endings: [Job, JobResult][]) {
  for (const [job, ending] of endings) {
    if (ending.state !== 'dead' || isForQuota(ending)) continue
    const { integration, depth } = job.payload as RunPayload
    const row = await tx.select().from(integrations).where(eq(integrations._id, integration)).get()
    if (!row) continue
    const { name, targetKind } = row
    const displayName = name ?? integration
    await markEvents(tx, { cause: integration, depth }, () =>
      emit(tenant, tx, {
        ...{ source: 'plugins', kind: 'integration' },
        eventName: targetKind === 'lambda' ? 'lambda-failed' : 'delivery-failed',
        description: `The integration "${displayName}" failed and will not be retried.`,
        metadata: { integration, name, run: job._id, attempts: job.attempts + 1, outcome: ending.outcome },
      }),
    )
  }
}
