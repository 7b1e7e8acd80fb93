import { HOUR_MS, now, toIsoString } from '../core/clock'
import { deleteQueued, enqueue, hasQueued, type JobResult } from '../jobs/queue'
import type { JobHandler } from '../jobs/worker'
import type { Tx } from '../storage/port'
import type { Tenant } from '../tenancy/tenants'
import { buildRunJob, findActive, toRunOrderingKey } from './run-job'
import type { IntegrationRow } from './tables'
import { findNextDue } from './triggers/schedule'

/** The kind of jobs that wait for the next time of a schedule. */
export const SCHEDULE_JOB = 'schedule'

type SchedulePayload = { integration: string; cron: string; timezone?: string; due: number }

const toScheduleOrderingKey = (integration: string) => `${SCHEDULE_JOB} ${integration}`

/** Replaces the queued job of a schedule. A deactivated integration, or one with another trigger, has none. */
export async function reschedule(tenant: Pick<Tenant, 'tenant'>, tx: Tx, { _id, active, trigger }: IntegrationRow) {
  await deleteQueued(tx, toScheduleOrderingKey(_id))
  if (!active || trigger.kind !== 'schedule') return
  const { cron, timezone } = trigger
  const due = findNextDue(trigger, now())
  if (due === undefined) return
  const payload: SchedulePayload = { integration: _id, cron, timezone, due }
  await enqueue(tenant, tx, { kind: SCHEDULE_JOB, orderingKey: toScheduleOrderingKey(_id), payload, at: due })
}

const MAX_RULE_CHANGE_MS = 3 * HOUR_MS // by which new rules of a zone move its clocks

/** Tells whether the rules of the zone have changed so that the stored time is due no more, and the right one is over. */
const wasMissed = (schedule: SchedulePayload, storedDue: number) =>
  (findNextDue(schedule, storedDue - MAX_RULE_CHANGE_MS) ?? Number.POSITIVE_INFINITY) <= now()

/**
 * The handler of due schedules. It queues the run as a job, whose id contains the integration and the due time, so that
 * it exists once. Several missed times result in one run. Times that come due while a run is queued or active are
 * skipped.
 */
export const scheduleJob: JobHandler = {
  nextTime(job) {
    const schedule = job.payload as SchedulePayload
    const due = findNextDue(schedule, now())
    if (due === undefined || (due > job.due && wasMissed(schedule, job.due))) return
    return { due, payload: { ...schedule, due } }
  },
  async run(tenant, job): Promise<JobResult> {
    const { integration, cron, timezone, due } = job.payload as SchedulePayload
    const next = findNextDue({ cron, timezone }, now())
    const effect = async (tx: Tx) => {
      const row = await findActive(tx, integration)
      const trigger = row?.trigger
      if (trigger?.kind !== 'schedule' || trigger.cron !== cron || trigger.timezone !== timezone) return
      if (await hasQueued(tx, toRunOrderingKey(integration))) return
      await enqueue(tenant, tx, buildRunJob({ integration, depth: 1, due }, `${integration}_${toIsoString(due)}`))
    }
    if (next === undefined) return { state: 'done', effect }
    return {
      state: 'again',
      due: next,
      payload: { integration, cron, timezone, due: next } satisfies SchedulePayload,
      effect,
    }
  },
}
