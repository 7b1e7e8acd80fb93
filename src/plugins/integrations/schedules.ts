import { iso, now } from '../../core/clock'
import { discard, type Ending, enqueue, isBusy } from '../../jobs/queue'
import type { Work } from '../../jobs/work'
import type { Tx } from '../../storage/port'
import type { Tenant } from '../../tenancy/tenants'
import { activeNamed, laneOf, runOf } from './running'
import type { Row } from './tables'
import { dueAfter } from './triggers/schedule'

/** The kind of jobs that wait for the next time of a schedule. */
export const TICK = 'schedule'

type Tick = { integration: string; cron: string; timezone?: string; due: number }

const waitingFor = (integration: string) => `${TICK} ${integration}`

/** Has a schedule that is switched on come next when it is due, and whatever waits otherwise not come any more. */
export async function arrange(tenant: Pick<Tenant, 'tenant'>, tx: Tx, { _id, active, trigger }: Row) {
  await discard(tx, waitingFor(_id))
  if (!active || trigger.kind !== 'schedule') return
  const { cron, timezone } = trigger
  const due = dueAfter(trigger, now())
  if (due === undefined) return
  const payload: Tick = { integration: _id, cron, timezone, due }
  await enqueue(tenant, tx, { kind: TICK, lane: waitingFor(_id), payload, at: due })
}

/**
 * A time has come: the run is a job of its own, whose id says which time of which integration, so that it is there once. All times
 * that were missed meanwhile are one; and a run that still waits or goes on stands for those that come due before it ends.
 */
export const tick: Work = {
  nextTime(job) {
    const tick = job.payload as Tick
    const due = dueAfter(tick, now())
    return due === undefined ? undefined : { due, payload: { ...tick, due } }
  },
  async run(tenant, job): Promise<Ending> {
    const { integration, cron, timezone, due } = job.payload as Tick
    const next = dueAfter({ cron, timezone }, now())
    const effect = async (tx: Tx) => {
      const row = await activeNamed(tx, integration)
      const trigger = row?.trigger
      if (trigger?.kind !== 'schedule' || trigger.cron !== cron || trigger.timezone !== timezone) return
      if (await isBusy(tx, laneOf(integration))) return
      await enqueue(tenant, tx, runOf({ integration, depth: 1, due }, `${integration}_${iso(due)}`))
    }
    if (next === undefined) return { state: 'done', effect }
    return { state: 'again', due: next, payload: { integration, cron, timezone, due: next } satisfies Tick, effect }
  },
}
