import { and, eq, sql } from 'drizzle-orm'
import { resolveAllOfKind } from '../../connections/resolver'
import { now, toIsoString } from '../../core/clock'
import { logError } from '../../core/log'
import { Problem } from '../../core/problem'
import { RateLimiter } from '../../core/rate-limiter'
import { emit } from '../../jobs/outbox'
import type { Tx } from '../../storage/port'
import { createRowWriter, prepareFirst } from '../../storage/prepared-statements'
import type { Tenant } from '../../tenancy/tenants'
import { providerOf } from '../providers'
import type { ProviderEvent, ProviderKind } from '../providers/provider'
import { type ProviderEventRow, providerEvents } from '../tables'
import { applyEvent, type EventResult } from './event-handler'
import { nextRetryAt, scheduleRetry } from './retry-schedule'
import type { ProviderEventReceipt } from './shapes'

type TenantRef = Pick<Tenant, 'tenant'>

/**
 * Stores an event and applies it, in one transaction. A stored event is a duplicate, unless it has failed. If applying it
 * fails, the event is stored as failed and retried, also when the provider sends it again.
 * @throws the error with which applying the event failed
 */
export async function storeAndApply(
  ctx: Tenant,
  kind: ProviderKind,
  source: string,
  body: string,
  event: ProviderEvent,
): Promise<ProviderEventReceipt> {
  const time = toIsoString(now())
  const fresh: ProviderEventRow = {
    ...{ _id: Bun.randomUUIDv7(), providerKind: kind, eventId: event.id, type: event.type, source, body },
    ...{ occurredAt: event.occurredAt, externalSubscriptionId: event.externalSubscriptionId ?? null },
    ...{ status: 'received', subscriptionId: null, outcome: null, attempts: 0, nextAt: null },
    ...{ created: time, updated: time },
  }
  const senders = await connectionsSharingSecret(ctx, kind, source)
  try {
    const status = await ctx.write(async (tx) => {
      const before = await findByEventId(tx, { kind, event: event.id })
      if (before && before.status !== 'failed') return 'duplicate'
      const result = await applyEvent(tx, ctx, before ?? fresh, event, senders)
      const row = await saveResult(tx, ctx, before ?? fresh, result, !before)
      if (row.status === 'failed') await reportFailure(tx, ctx, row)
      return row.status as ProviderEventReceipt['status']
    })
    return { status }
  } catch (error) {
    if (isTransient(error)) throw error
    await ctx.write(async (tx) => {
      const before = await findByEventId(tx, { kind, event: event.id })
      await saveFailure(tx, ctx, before ?? fresh, error, !before)
    })
    throw error
  }
}

/**
 * Returns the ids of the connections that may have sent an event: the one that verified it, and those that share a webhook
 * secret with it, such as a new connection for the same endpoint of the provider.
 */
async function connectionsSharingSecret(tenant: Tenant, kind: ProviderKind, verifiedBy: string | null) {
  const all = await resolveAllOfKind(tenant, kind)
  const { webhookSecrets } = providerOf(kind)
  const verifier = all.find(({ _id }) => _id === verifiedBy)
  const secrets = new Set(verifier ? webhookSecrets(verifier) : [])
  const sharing = all.filter((connection) => webhookSecrets(connection).some((secret) => secrets.has(secret)))
  return new Set([...(verifiedBy ? [verifiedBy] : []), ...sharing.map(({ _id }) => _id)])
}

const findByEventId = prepareFirst((tx) => {
  const { providerKind, eventId } = providerEvents
  const hasId = and(eq(providerKind, sql.placeholder('kind')), eq(eventId, sql.placeholder('event')))
  return tx.select().from(providerEvents).where(hasId)
})
const eventRows = createRowWriter(providerEvents)

/** Applies a stored event again, whatever its status is. @throws 503 when the database is busy */
export async function reapply(ctx: Tenant, row: ProviderEventRow): Promise<ProviderEventRow> {
  const parseStored = () => providerOf(row.providerKind).parseEvent(new TextEncoder().encode(row.body))
  const senders = await connectionsSharingSecret(ctx, row.providerKind, row.source)
  try {
    return await ctx.write(async (tx) =>
      saveResult(tx, ctx, row, await applyEvent(tx, ctx, row, parseStored(), senders), false),
    )
  } catch (error) {
    if (isTransient(error)) throw error
    return ctx.write((tx) => saveFailure(tx, ctx, row, error, false))
  }
}

/** Returns whether the error is temporary, so that the provider should send the event again. */
const isTransient = (error: unknown) => error instanceof Problem && error.status === 503

async function saveResult(
  tx: Tx,
  ctx: TenantRef,
  before: ProviderEventRow,
  result: EventResult,
  isNew: boolean,
  isRetried = result.status === 'parked',
) {
  const nextAt = isRetried ? (nextRetryAt(before) ?? null) : null
  const row = { ...before, ...result, nextAt, attempts: before.attempts + 1, updated: toIsoString(now()) }
  await eventRows[isNew ? 'insert' : 'update'](tx, row)
  if (nextAt !== null) await scheduleRetry(tx, ctx, nextAt)
  return row
}

/** Stores a failed event, which is retried, because the cause is a fault of ours. Reports its first failure. */
async function saveFailure(tx: Tx, ctx: TenantRef, before: ProviderEventRow, error: unknown, isNew: boolean) {
  const { providerKind, eventId, type, attempts, subscriptionId } = before
  logError('WEBHOOK_FAILED', { tenant: ctx.tenant, provider: providerKind, event: eventId, type, cause: error })
  const outcome = 'The event could not be applied. See the server log.'
  const row = await saveResult(tx, ctx, before, { status: 'failed', subscriptionId, outcome }, isNew, true)
  if (!attempts) await reportFailure(tx, ctx, row)
  return row
}

const failureLimiter = new RateLimiter(10, 60_000)

/** Tells admins of an event that could not be applied: ten a minute, since a wrong endpoint fails with all of its events. */
async function reportFailure(tx: Tx, ctx: TenantRef, { providerKind, eventId, type, outcome }: ProviderEventRow) {
  if (failureLimiter.consume(`${ctx.tenant} ${providerKind}`)) return
  await emit(ctx, tx, {
    ...{ source: 'payments', kind: 'webhook', eventName: 'webhook-failed', description: outcome ?? '' },
    metadata: { providerKind, eventId, type },
  })
}
