import { eq, sql } from 'drizzle-orm'
import { isPrivateNetworkAllowed } from '../connections/url-policy'
import { toStorableText } from '../core/body'
import { now, toIsoString } from '../core/clock'
import { FAILURE_MESSAGES, type FailureReason, fetchExternal, UpstreamUnreachable } from '../core/http-client'
import { TooManyCalls } from '../core/outbound-calls'
import { emit, toPublicEvent } from '../jobs/outbox'
import type { Job, JobResult } from '../jobs/queue'
import { events } from '../jobs/tables'
import type { Lease } from '../jobs/with-lease'
import { JobError, type JobHandler, readRetryAfter } from '../jobs/worker'
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

/** The result of an attempt. `duration` is in ms. */
type Outcome = { status: number | null; duration: number | null; answer: string; error: string | null; canceled?: true }
type Message = { url: string; body: string; headers: Record<string, string> }

/** The handler of delivery jobs: it sends an event to a plugin, signed as a Standard Webhook. */
export const deliveryJob: JobHandler = {
  isOutgoing: true,
  async run(tenant, job) {
    const message = await prepareMessage(tenant, job)
    if (!message) return toSuccess({ ...EMPTY_OUTCOME, canceled: true })
    const call = await callEndpoint(tenant, message)
    if (!call) return { state: 'postponed', due: now() + BUSY_RETRY_DELAY_MS }
    if (call.outcome.error !== null) throw toFailure(call.outcome, call)
    return toSuccess(call.outcome)
  },
  onSettled: recordAttempts,
  async findSubject(db, { payload }) {
    const { plugin } = payload as DeliveryPayload
    const row = await db.select({ name: plugins.name }).from(plugins).where(eq(plugins._id, plugin)).get()
    return row && { kind: 'plugin', _id: plugin, ...row }
  },
}

/** Returns what is sent, or undefined without an active subscription. @throws JobError when the event was removed */
async function prepareMessage(tenant: Tenant, { _id, payload }: Job): Promise<Message | undefined> {
  const { plugin, hookUrl: url, event } = payload as DeliveryPayload
  const cached = await findActivePlugin(tenant, plugin)
  if (!cached?.plugin.subscribedEvents.some((entry) => entry.active && entry.hookUrl === url)) return
  const storedEvent = await findEvent(tenant.db, { id: event._id })
  if (!storedEvent)
    throw toFailure({ ...EMPTY_OUTCOME, error: 'The event was too old and has been removed.' }, { permanent: true })
  const body = JSON.stringify(toPublicEvent(storedEvent))
  const common = { 'content-type': 'application/json', 'user-agent': 'atoll', 'x-atoll-tenant': tenant.tenant }
  return { url, body, headers: { ...common, ...signWebhook(_id, body, cached.secrets) } }
}

/** Sends a message. Returns what came out and whether and when to try again; undefined while too many calls run. */
async function callEndpoint(
  { tenant, signal }: Tenant & Lease,
  { url, ...message }: Message,
): Promise<{ outcome: Outcome; permanent?: boolean; retryAfter?: number } | undefined> {
  const limits = { tenant, timeout: DELIVERY_TIMEOUT_MS, limit: MAX_ANSWER_BYTES, truncate: true }
  const privateNetwork = isPrivateNetworkAllowed()
  const startedAt = performance.now()
  const measure = () => ({ ...EMPTY_OUTCOME, duration: Math.round(performance.now() - startedAt) })
  try {
    const response = await fetchExternal(url, { ...message, method: 'POST', signal }, { ...limits, privateNetwork })
    const { status, headers, ok } = response
    const outcome = { ...measure(), status, answer: toStorableText(await response.text()) }
    if (ok) return { outcome }
    const isGone = status === 410
    const error = isGone
      ? 'The endpoint answered 410 Gone; the subscription was disabled.'
      : `The endpoint answered ${status}.`
    return { outcome: { ...outcome, error }, permanent: isGone, ...readRetryAfter(headers) }
  } catch (error) {
    // A lost lease also ends the wait for a turn; the job then belongs to another process.
    if (error instanceof TooManyCalls && !signal.aborted) return
    if (!(error instanceof UpstreamUnreachable)) throw error
    return { outcome: { ...measure(), error: DELIVERY_FAILURE_MESSAGES[error.reason] } }
  }
}

const toSuccess = (outcome: Outcome): JobResult => ({ state: 'done', outcome })

/** Returns why an attempt failed. The job is tried again, unless that is `permanent` or goes on for days. */
const toFailure = (outcome: Outcome, { permanent, retryAfter }: { permanent?: boolean; retryAfter?: number }) =>
  new JobError(outcome.error ?? '', { outcome, permanent, retryAfter })

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
  // Of one that was postponed, the plugin was not called, so it says nothing about its health.
  for (const [{ _id }, result] of results)
    if (result.state === 'postponed')
      await tx
        .update(deliveries)
        .set({ due: toIsoString(result.due) })
        .where(eq(deliveries._id, _id))
  const attempts = results.filter((entry): entry is Attempt => entry[1].state !== 'postponed')
  const last = attempts.at(-1)
  if (!last) return
  await tx.executeMany(UPSERT_DELIVERIES, attempts.map(toDeliveryRow))
  for (const [job, ending] of attempts)
    if (ending.state === 'dead') await abandonDelivery(tenant, tx, job, toOutcome(ending))
  const { plugin } = last[0].payload as DeliveryPayload
  const { error, canceled } = toOutcome(last[1])
  if (!canceled) await (error ? recordFailure(tx, plugin, error) : recordSuccess(tx, plugin))
}

function toDeliveryRow([{ _id, payload }, ending]: Attempt) {
  const { plugin, hookUrl, event } = payload as DeliveryPayload
  const { status, duration, answer, error, canceled } = toOutcome(ending)
  const [time, due] = [now(), ending.state === 'failed' ? ending.due : null]
  const state = canceled ? 'canceled' : DELIVERY_STATES[ending.state]
  return [
    ...[_id, plugin, event._id, event.source, event.kind, event.eventName, hookUrl, state, canceled ? 0 : 1],
    ...[status, duration, answer, error, due, time, time],
  ]
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
