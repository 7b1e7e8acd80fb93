import { eq } from 'drizzle-orm'
import { now } from '../core/clock'
import { outside, Unreachable, type Why } from '../core/outside'
import { emit } from '../jobs/outbox'
import type { Ending, Job } from '../jobs/queue'
import { Failure, type Work } from '../jobs/work'
import type { Tx } from '../storage/port'
import { forget, touch } from '../tenancy/memory'
import type { Tenant } from '../tenancy/tenants'
import { privateNetwork } from './addresses'
import { noteFailure, noteSuccess } from './health'
import type { Load } from './hearing'
import { pluginNamed } from './known'
import { signed } from './secrets'
import { plugins } from './tables'

const TIMEOUT = 15_000
const ANSWER = 1_024 // bytes that are kept
const LATEST = 3_600_000 // ms; no receiver puts us off for longer

/** What an attempt came to. */
type Outcome = { status: number | null; duration: number | null; answer: string; error: string | null; canceled?: true }

/** Sends an event to a plugin, signed as a Standard Webhook. */
export const delivery: Work = {
  async run(tenant, job): Promise<Ending> {
    const { plugin, hookUrl, event } = job.payload as Load
    const known = await pluginNamed(tenant, plugin)
    const listens = known?.plugin.subscribedEvents.some((one) => one.active && one.hookUrl === hookUrl)
    if (!known || !listens) return { state: 'done', outcome: { ...NOTHING, canceled: true } satisfies Outcome }
    const body = JSON.stringify(event)
    const headers = {
      ...{ 'content-type': 'application/json', 'user-agent': 'atoll', 'x-atoll-tenant': tenant.tenant },
      ...signed(job._id, body, known.secrets),
    }
    const began = performance.now()
    const asked = { method: 'POST', body, headers, signal: tenant.signal }
    const bounds = {
      tenant: tenant.tenant,
      timeout: TIMEOUT,
      limit: ANSWER,
      cut: true,
      privateNetwork: privateNetwork(),
    }
    const response = await outside(hookUrl, asked, bounds).catch((error) => {
      if (!(error instanceof Unreachable)) throw error
      return error
    })
    const duration = Math.round(performance.now() - began)
    if (response instanceof Unreachable) {
      const error = SAID[response.why]
      throw new Failure(error, { outcome: { ...NOTHING, duration, error } satisfies Outcome })
    }
    const { status, headers: answered, ok } = response
    const outcome = { status, duration, answer: kept(await response.arrayBuffer()), error: null } satisfies Outcome
    if (ok) return { state: 'done', outcome }
    const error = status === 410 ? 'Its address says that nobody listens there any more.' : `It answered ${status}.`
    const after = Number(answered.get('retry-after')) * 1_000
    throw new Failure(error, {
      outcome: { ...outcome, error },
      hopeless: status === 410,
      ...(after > 0 && { after: Math.min(after, LATEST) }),
    })
  },
  note,
}

const NOTHING = { status: null, duration: null, answer: '', error: null }
const SAID: Record<Why, string> = {
  refused: 'Its address is none that we may ask.',
  timeout: `It did not answer within ${TIMEOUT / 1_000} s.`,
  'too-large': 'Its answer was too large.',
  unreachable: 'Nobody was there, or the connection broke off.',
}

/** The text of an answer, as far as it is one, of what can be kept. */
const kept = (bytes: ArrayBuffer) => new TextDecoder().decode(bytes).replaceAll('\0', '').toWellFormed()

const LOG = `insert into deliveries (_id, plugin, event, source, kind, event_name, hook_url, state, attempts, status,
    duration, answer, error, due, created, updated) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
  on conflict ("_id") do update set state = excluded.state, attempts = deliveries.attempts + excluded.attempts,
    status = excluded.status, duration = excluded.duration, answer = excluded.answer, error = excluded.error,
    due = excluded.due, updated = excluded.updated`

const STATES = { done: 'delivered', again: 'failing', failed: 'failing', dead: 'dead' } as const

/** The log of a lane's attempts, and what follows from the last. */
async function note(tenant: Tenant, tx: Tx, endings: [Job, Ending][]) {
  const time = now()
  await tx.each(
    LOG,
    endings.map(([{ _id, payload }, ending]) => {
      const { plugin, hookUrl, event } = payload as Load
      const { status, duration, answer, error, canceled } = outcomeOf(ending)
      const state = canceled ? 'canceled' : STATES[ending.state]
      const due = ending.state === 'failed' ? ending.due : null
      return [
        ...[_id, plugin, event._id, event.source, event.kind, event.eventName, hookUrl, state, canceled ? 0 : 1],
        ...[status, duration, answer, error, due, time, time],
      ]
    }),
  )
  for (const [job, ending] of endings) if (ending.state === 'dead') await giveUp(tenant, tx, job, outcomeOf(ending))
  const [[{ payload }, last]] = endings.slice(-1) as [[Job, Ending]]
  const { error, canceled } = outcomeOf(last)
  const { plugin } = payload as Load
  if (!canceled) await (error ? noteFailure(tx, plugin, error) : noteSuccess(tx, plugin))
}

/** Of an error that nobody expected only a message is there. */
const outcomeOf = (ending: Ending): Outcome => {
  const { outcome } = ending as { outcome?: Partial<Outcome> & { message?: string } }
  return { ...NOTHING, ...(outcome && { error: outcome.message ?? null, ...outcome }) } as Outcome
}

async function giveUp(tenant: Tenant, tx: Tx, { _id, payload }: Job, { status, error }: Outcome) {
  const { plugin, hookUrl, event } = payload as Load
  if (status === 410) await disable(tenant, tx, plugin, hookUrl)
  // Or else a plugin that hears of failures and fails would fail forever.
  if (event.source === FAILED.source && event.eventName === FAILED.eventName) return
  const metadata = { plugin, delivery: _id, event: event._id, hookUrl, status }
  await emit(tenant, tx, { ...FAILED, description: error ?? '', metadata })
}

const FAILED = { source: 'plugins', kind: 'plugin', eventName: 'delivery-failed' }

/** Nothing is sent there any more, until an admin says so. */
async function disable(tenant: Tenant, tx: Tx, plugin: string, hookUrl: string) {
  const { _id, subscribedEvents } = plugins
  const row = await tx.select({ subscribedEvents }).from(plugins).where(eq(_id, plugin)).get()
  if (!row) return
  const entries = row.subscribedEvents.map((one) => (one.hookUrl === hookUrl ? { ...one, active: false } : one))
  await tx.update(plugins).set({ subscribedEvents: entries }).where(eq(_id, plugin))
  await touch(tx, 'plugins')
  tx.afterwards(() => forget(tenant, 'plugins'))
}
