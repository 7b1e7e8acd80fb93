import { and, eq } from 'drizzle-orm'
import { iso, now } from '../../core/clock'
import { report } from '../../core/log'
import { Problem } from '../../core/problem'
import { emit } from '../../jobs/outbox'
import type { Tx } from '../../storage/port'
import type { Tenant } from '../../tenancy/tenants'
import type { ProviderEvent, ProviderKind } from '../providers/provider'
import { providerOf } from '../providers/providers'
import { type ProviderEventRow, providerEvents } from '../tables'
import { type Effect, effectOf } from './effects'
import { nextTry, sweepSoon } from './parked'
import type { Receipt } from './shapes'

type Of = Pick<Tenant, 'tenant'>

/**
 * Keeps an event with its effect: both are there, or neither. One that is there already has had its effect, or will. What
 * fails here is kept, too, and tried again, also when the provider sends it once more.
 */
export async function keep(
  ctx: Tenant,
  kind: ProviderKind,
  source: string,
  body: string,
  event: ProviderEvent,
): Promise<Receipt> {
  const time = iso(now())
  const fresh: ProviderEventRow = {
    ...{ _id: Bun.randomUUIDv7(), providerKind: kind, eventId: event.id, type: event.type, source, body },
    ...{ occurredAt: event.occurredAt, externalSubscriptionId: event.externalSubscriptionId ?? null },
    ...{
      status: 'received',
      subscriptionId: null,
      outcome: null,
      attempts: 0,
      nextAt: null,
      created: time,
      updated: time,
    },
  }
  try {
    const status = await ctx.write(async (tx) => {
      const before = await knownAs(tx, kind, event.id)
      if (before && before.status !== 'failed') return 'duplicate'
      const row = await settled(tx, ctx, before ?? fresh, await effectOf(tx, ctx, kind, event, source), !before)
      return row.status as Receipt['status']
    })
    return { status }
  } catch (error) {
    if (isPassing(error)) throw error
    await ctx.write(async (tx) => failed(tx, ctx, (await knownAs(tx, kind, event.id)) ?? fresh, error))
    throw error
  }
}

const knownAs = (tx: Tx, kind: ProviderKind, event: string): Promise<ProviderEventRow | undefined> =>
  tx
    .select()
    .from(providerEvents)
    .where(and(eq(providerEvents.providerKind, kind), eq(providerEvents.eventId, event)))
    .get()

const INSERT = `insert into provider_events (_id, provider_kind, event_id, type, source, body, status, occurred_at, attempts,
  next_at, subscription_id, external_subscription_id, outcome, created, updated)
  values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) on conflict (provider_kind, event_id) do nothing`

/** Tries an event that is kept once more, whatever came of it before. */
export async function retry(ctx: Tenant, row: ProviderEventRow): Promise<ProviderEventRow> {
  const read = () => providerOf(row.providerKind).parseEvent(new TextEncoder().encode(row.body))
  try {
    return await ctx.write(async (tx) =>
      settled(tx, ctx, row, await effectOf(tx, ctx, row.providerKind, read(), row.source), false),
    )
  } catch (error) {
    if (isPassing(error)) throw error
    return ctx.write((tx) => failed(tx, ctx, row, error))
  }
}

/** Others are in the way now, but not always. */
const isPassing = (error: unknown) => error instanceof Problem && error.status === 503

async function settled(tx: Tx, ctx: Of, before: ProviderEventRow, effect: Effect, isNew: boolean) {
  const nextAt = effect.status === 'parked' ? (nextTry(before) ?? null) : null
  const row = { ...before, ...effect, nextAt, attempts: before.attempts + 1, updated: iso(now()) }
  await put(tx, row, isNew)
  if (nextAt !== null) await sweepSoon(tx, ctx, nextAt)
  return row
}

/** What could not be done is a mistake of ours: it stays until it can. */
async function failed(tx: Tx, ctx: Of, before: ProviderEventRow, error: unknown) {
  const { providerKind, eventId, type, attempts } = before
  report('WEBHOOK_FAILED', { tenant: ctx.tenant, provider: providerKind, event: eventId, type, cause: error })
  const nextAt = nextTry(before) ?? null
  const outcome = 'It could not be applied. The log tells why.'
  const row: ProviderEventRow = {
    ...before,
    status: 'failed',
    outcome,
    nextAt,
    attempts: attempts + 1,
    updated: iso(now()),
  }
  // Its row may be there by now, or not yet.
  await put(tx, row, true)
  await put(tx, row, false)
  if (nextAt !== null) await sweepSoon(tx, ctx, nextAt)
  if (!attempts)
    await emit(ctx, tx, {
      ...{ source: 'payments', kind: 'webhook', eventName: 'webhook-failed', description: outcome },
      metadata: { providerKind, eventId, type },
    })
  return row
}

async function put(tx: Tx, row: ProviderEventRow, isNew: boolean) {
  const { _id, providerKind, eventId, type, source, body, status, occurredAt, attempts, nextAt } = row
  if (!isNew) await tx.update(providerEvents).set(row).where(eq(providerEvents._id, _id))
  else {
    const told = [row.subscriptionId, row.externalSubscriptionId, row.outcome]
    const times = [row.created, row.updated].map((time) => Date.parse(time))
    const what = [_id, providerKind, eventId, type, source, body, status, occurredAt, attempts, nextAt]
    await tx.ask(INSERT, [...what, ...told, ...times])
  }
}
