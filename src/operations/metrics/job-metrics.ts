import { tokenCounts } from '../../ai/usage/usage-record'
import { HOUR_MS, now } from '../../core/clock'
import { yieldToEventLoop } from '../../core/event-loop'
import { countUndispatchedEvents } from '../../jobs/event-dispatcher'
import type { JobResult } from '../../jobs/queue'
import { countQueue } from '../../jobs/queue'
import { jobHandlers, jobStatistics } from '../../jobs/worker'
import { driftCounts } from '../../payments/jobs/drift'
import { providers } from '../../payments/providers'
import type { ProviderKind } from '../../payments/providers/provider'
import { listOpenServedSince } from '../../tenancy/tenants'
import { defineCounter, defineGauge } from './collected-metrics'

const MAX_COUNTED_TENANTS = 100
const COUNT_INTERVAL_MS = 5_000 // whoever asks more often gets the same numbers

const JOB_RESULTS: JobResult['state'][] = ['done', 'again', 'postponed', 'failed', 'dead']

type Backlog = { fresh: number; retried: number; oldestDue: number | undefined; events: number }

let latest: { at: number; backlog: Promise<Backlog> } | undefined

/** Returns the work that waits at tenants that are open and in use, so that no other is opened for it. */
function getBacklog(): Promise<Backlog> {
  if (!latest || performance.now() - latest.at > COUNT_INTERVAL_MS)
    latest = { at: performance.now(), backlog: countBacklog() }
  return latest.backlog
}

async function countBacklog(): Promise<Backlog> {
  const total: Backlog = { fresh: 0, retried: 0, oldestDue: undefined, events: 0 }
  for (const { db } of listOpenServedSince(performance.now() - HOUR_MS).slice(0, MAX_COUNTED_TENANTS)) {
    // A tenant that cannot be read has a metric of its own.
    const counted = await Promise.all([countQueue(db), countUndispatchedEvents(db)]).catch(() => undefined)
    if (!counted) continue
    const [{ fresh, retried, oldestDue = Number.POSITIVE_INFINITY }, events] = counted
    total.fresh += fresh
    total.retried += retried
    total.events += events
    if (Number.isFinite(oldestDue)) total.oldestDue = Math.min(total.oldestDue ?? oldestDue, oldestDue)
    await yieldToEventLoop()
  }
  return total
}

/** Defines the metrics of background work, and of what is bought from others. */
export function defineJobMetrics() {
  defineCounter(
    'atoll_jobs_total',
    'The attempts at jobs by their result: done, again, postponed, failed, or dead when they were given up.',
    ['kind', 'result'],
    // Counters begin at 0, or an alert would not see the first failure.
    () =>
      [...jobHandlers().keys(), 'unknown'].flatMap((kind) =>
        JOB_RESULTS.map((result): [Record<string, string>, number] => [
          { kind, result },
          jobStatistics.get(kind)?.results.get(result) ?? 0,
        ]),
      ),
  )
  defineCounter('atoll_job_seconds_total', 'How long attempts at jobs took.', ['kind'], () =>
    [...jobStatistics].map(([kind, { seconds }]) => [{ kind }, seconds]),
  )
  defineGauge(
    'atoll_jobs_waiting',
    'The jobs of tenants in use that wait for their time: fresh ones, and those whose last attempt failed.',
    ['state'],
    async () => {
      const { fresh, retried } = await getBacklog()
      return [
        [{ state: 'fresh' }, fresh],
        [{ state: 'retried' }, retried],
      ]
    },
    'max',
  )
  defineGauge(
    'atoll_jobs_oldest_due_seconds',
    'How long the job that has waited longest at a tenant in use has been due; 0 when none is due.',
    [],
    async () => {
      const { oldestDue } = await getBacklog()
      return oldestDue === undefined ? 0 : Math.max(0, now() - oldestDue) / 1_000
    },
    'max',
  )
  defineGauge(
    'atoll_outbox_events',
    'The events of tenants in use that were not yet turned into jobs for their subscribers.',
    [],
    async () => (await getBacklog()).events,
    'max',
  )
  defineCounter(
    'atoll_ai_tokens_total',
    'The tokens that AI models read (prompt) and wrote (completion).',
    ['type'],
    () => Object.entries(tokenCounts).map(([type, count]) => [{ type }, count]),
  )
  defineCounter(
    'atoll_payment_drifts_total',
    'The differences between subscriptions and their payment provider, such as after a lost webhook.',
    ['provider'],
    () => Object.keys(providers).map((provider) => [{ provider }, driftCounts().get(provider as ProviderKind) ?? 0]),
  )
}
