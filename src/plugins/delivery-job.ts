import { eq, sql } from 'drizzle-orm'
import { isPrivateNetworkAllowed } from '../connections/url-policy'
import { toStorableText } from '../core/body'
import { HOUR_MS, now, toIsoString } from '../core/clock'
import { FAILURE_MESSAGES, type FailureReason, fetchExternal, UpstreamUnreachable } from '../core/http-client'
import { TooManyCalls } from '../core/outbound-calls'
import { parseRetryAfter } from '../core/retry-after'
import { emit, toPublicEvent } from '../jobs/outbox'
import type { Job, JobResult } from '../jobs/queue'
import { events } from '../jobs/tables'
import { JobError, type JobHandler } from '../jobs/worker'
import type { Tx } from '../storage/port'
import { prepareFirst } from '../storage/prepared-statements'
import { bumpVersion } from '../tenancy/cache'
import type { Tenant } from '../tenancy/tenants'
import type { DeliveryPayload } from './event-subscriber'
import { recordFailure, recordSuccess } from './health'
import { findActivePlugin } from './plugin-cache'
import { signWebhook } from './secrets'
import { deliveries, plugins } from './tables'

const DELIVERY_TIMEOUT_MS = 15_000
const BUSY_RETRY_DELAY_MS = 5_000 // ms; for a delivery that found too many calls under way
const MAX_ANSWER_BYTES = 1_024 // bytes of an answer that are stored
const MAX_RETRY_DELAY_MS = HOUR_MS // ms; the upper limit of a `retry-after` header

/** The result of an attempt. `duration` is in ms. */
type Outcome = { status: number | null; duration: number | null; answer: string; error: string | null; canceled?: true }

/** The handler of delivery jobs: it sends an event to a plugin, signed as a Standard Webhook. */
export const deliveryJob: JobHandler = {
  isOutgoing: true,
  async run(tenant, job): Promise<JobResult> {
    const { plugin, hookUrl, event } = job.payload as DeliveryPayload
    const cached = await findActivePlugin(tenant, plugin)
    const isSubscribed = cached?.plugin.subscribedEvents.some((entry) => entry.active && entry.hookUrl === hookUrl)
    if (!cached || !isSubscribed)
      return { state: 'done', outcome: { ...EMPTY_OUTCOME, canceled: true } satisfies Outcome }
    const storedEvent = await findEvent(tenant.db, { id: event._id })
    if (!storedEvent) {
      const error = 'The event was too old and has been removed.'
      throw new JobError(error, { outcome: { ...EMPTY_OUTCOME, error } satisfies Outcome, permanent: true })
    }
    const body = JSON.stringify(toPublicEvent(storedEvent))
    const headers = {
      ...{ 'content-type': 'application/json', 'user-agent': 'atoll', 'x-atoll-tenant': tenant.tenant },
      ...signWebhook(job._id, body, cached.secrets),
    }
    const startedAt = performance.now()
    const init = { method: 'POST', body, headers, signal: tenant.signal }
    const limits = {
      tenant: tenant.tenant,
      timeout: DELIVERY_TIMEOUT_MS,
      limit: MAX_ANSWER_BYTES,
      truncate: true,
      privateNetwork: isPrivateNetworkAllowed(),
    }
    const response = await fetchExternal(hookUrl, init, limits).catch((error) => {
      // A lost lease also ends the wait for a turn; the job then belongs to another process.
      const isPostponed = error instanceof TooManyCalls && !tenant.signal.aborted
      if (!isPostponed && !(error instanceof UpstreamUnreachable)) throw error
      return error as TooManyCalls | UpstreamUnreachable
    })
    if (response instanceof TooManyCalls) return { state: 'postponed', due: now() + BUSY_RETRY_DELAY_MS }
    const duration = Math.round(performance.now() - startedAt)
    if (response instanceof UpstreamUnreachable) {
      const error = DELIVERY_FAILURE_MESSAGES[response.reason]
      throw new JobError(error, { outcome: { ...EMPTY_OUTCOME, duration, error } satisfies Outcome })
    }
    const { status, headers: responseHeaders, ok } = response
    const outcome = { status, duration, answer: toStorableText(await response.text()), error: null } satisfies Outcome
    if (ok) return { state: 'done', outcome }
    const error =
      status === 410
        ? 'The endpoint answered 410 Gone; the subscription was disabled.'
        : `The endpoint answered ${status}.`
    const retryDelay = parseRetryAfter(responseHeaders.get('retry-after')) ?? 0
    throw new JobError(error, {
      outcome: { ...outcome, error },
      permanent: status === 410,
      ...(retryDelay > 0 && { retryAfter: Math.min(retryDelay, MAX_RETRY_DELAY_MS) }),
    })
  },
  onSettled: recordAttempts,
  async findSubject(db, { payload }) {
    const { plugin } = payload as DeliveryPayload
    const row = await db.select({ name: plugins.name }).from(plugins).where(eq(plugins._id, plugin)).get()
    return row && { kind: 'plugin', _id: plugin, ...row }
  },
}

const EMPTY_OUTCOME = { status: null, duration: null, answer: '', error: null }
const DELIVERY_FAILURE_MESSAGES: Record<FailureReason, string> = {
  ...FAILURE_MESSAGES,
  timeout: `The endpoint did not respond within ${DELIVERY_TIMEOUT_MS / 1_000} s.`,
}

const findEvent = prepareFirst((db) =>
  db
    .select()
    .from(events)
    .where(eq(events._id, sql.placeholder('id'))),
)

const UPSERT_DELIVERIES = `insert into deliveries (_id, plugin, event, source, kind, event_name, hook_url, state, attempts, status,
    duration, answer, error, due, created, updated) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
  on conflict ("_id") do update set state = excluded.state, attempts = deliveries.attempts + excluded.attempts,
    status = excluded.status, duration = excluded.duration, answer = excluded.answer, error = excluded.error,
    due = excluded.due, updated = excluded.updated`

type Attempt = [Job, Exclude<JobResult, { state: 'postponed' }>]

const DELIVERY_STATES = { done: 'delivered', again: 'failing', failed: 'failing', dead: 'dead' } as const

/** Records the attempts of one ordering key, and the health of the plugin after the last one. */
async function recordAttempts(tenant: Tenant, tx: Tx, results: [Job, JobResult][]) {
  const time = now()
  // The plugin was not called, so this says nothing about its health.
  for (const [{ _id }, result] of results)
    if (result.state === 'postponed')
      await tx
        .update(deliveries)
        .set({ due: toIsoString(result.due) })
        .where(eq(deliveries._id, _id))
  const endings = results.filter((entry): entry is Attempt => entry[1].state !== 'postponed')
  if (!endings.length) return
  await tx.executeMany(
    UPSERT_DELIVERIES,
    endings.map(([{ _id, payload }, ending]) => {
      const { plugin, hookUrl, event } = payload as DeliveryPayload
      const { status, duration, answer, error, canceled } = toOutcome(ending)
      const state = canceled ? 'canceled' : DELIVERY_STATES[ending.state]
      const due = ending.state === 'failed' ? ending.due : null
      return [
        ...[_id, plugin, event._id, event.source, event.kind, event.eventName, hookUrl, state, canceled ? 0 : 1],
        ...[status, duration, answer, error, due, time, time],
      ]
    }),
  )
  for (const [job, ending] of endings)
    if (ending.state === 'dead') await abandonDelivery(tenant, tx, job, toOutcome(ending))
  const [[{ payload }, last]] = endings.slice(-1) as [Attempt]
  const { error, canceled } = toOutcome(last)
  const { plugin } = payload as DeliveryPayload
  if (!canceled) await (error ? recordFailure(tx, plugin, error) : recordSuccess(tx, plugin))
}

/** The outcome of an unexpected error has only a message. */
const toOutcome = (ending: Attempt[1]): Outcome => {
  const { outcome } = ending as { outcome?: Partial<Outcome> & { message?: string } }
  return { ...EMPTY_OUTCOME, ...(outcome && { error: outcome.message ?? null, ...outcome }) } as Outcome
}

async function abandonDelivery(tenant: Tenant, tx: Tx, { _id, payload }: Job, { status, error }: Outcome) {
  const { plugin, hookUrl, event } = payload as DeliveryPayload
  if (status === 410) await disableSubscription(tx, plugin, hookUrl)
  // Otherwise a failing plugin that subscribes to this event would cause a new one forever.
  if (event.source === FAILED_EVENT.source && event.eventName === FAILED_EVENT.eventName) return
  const metadata = { plugin, delivery: _id, event: event._id, hookUrl, status }
  await emit(tenant, tx, { ...FAILED_EVENT, description: error ?? '', metadata })
}

const FAILED_EVENT = { source: 'plugins', kind: 'plugin', eventName: 'delivery-failed' }

/** Stops deliveries to this URL until an admin activates the subscription again. */
async function disableSubscription(tx: Tx, plugin: string, hookUrl: string) {
  const { _id, subscribedEvents } = plugins
  const row = await tx.select({ subscribedEvents }).from(plugins).where(eq(_id, plugin)).get()
  if (!row) return
  const entries = row.subscribedEvents.map((entry) => (entry.hookUrl === hookUrl ? { ...entry, active: false } : entry))
  await tx.update(plugins).set({ subscribedEvents: entries }).where(eq(_id, plugin))
  await bumpVersion(tx, 'plugins')
}
