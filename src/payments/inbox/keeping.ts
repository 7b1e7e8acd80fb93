import { and, eq, sql } from 'drizzle-orm'
import { iso, now } from '../../core/clock'
import { report } from '../../core/log'
import { Problem } from '../../core/problem'
import { emit } from '../../jobs/outbox'
import { compiled, rowsOf } from '../../storage/compiled'
import type { Tx } from '../../storage/port'
import type { Tenant } from '../../tenancy/tenants'
import type { ProviderEvent, ProviderKind } from '../providers/provider'
import { providerOf } from '../providers/providers'
import { type ProviderEventRow, providerEvents } from '../tables'
import { type Effect, effectOf } from './effects'
import { nextTry, sweepSoon } from './parked'
import { connectionsSharingSecret } from './senders'
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
  const senders = await connectionsSharingSecret(ctx, kind, source)
  try {
    const status = await ctx.write(async (tx) => {
      const [before] = await known(tx, { kind, event: event.id })
      if (before && before.status !== 'failed') return 'duplicate'
      const row = await settled(
        tx,
        ctx,
        before ?? fresh,
        await effectOf(tx, ctx, before ?? fresh, event, senders),
        !before,
      )
      return row.status as Receipt['status']
    })
    return { status }
  } catch (error) {
    if (isPassing(error)) throw error
    await ctx.write(async (tx) => {
      const [before] = await known(tx, { kind, event: event.id })
      await failed(tx, ctx, before ?? fresh, error, !before)
    })
    throw error
  }
}

const known = compiled((tx) =>
  tx
    .select()
    .from(providerEvents)
    .where(
      and(
        eq(providerEvents.providerKind, sql.placeholder('kind')),
        eq(providerEvents.eventId, sql.placeholder('event')),
      ),
    ),
)
const rows = rowsOf(providerEvents)

/** Tries an event that is kept once more, whatever came of it before. */
export async function retry(ctx: Tenant, row: ProviderEventRow): Promise<ProviderEventRow> {
  const read = () => providerOf(row.providerKind).parseEvent(new TextEncoder().encode(row.body))
  const senders = await connectionsSharingSecret(ctx, row.providerKind, row.source)
  try {
    return await ctx.write(async (tx) => settled(tx, ctx, row, await effectOf(tx, ctx, row, read(), senders), false))
  } catch (error) {
    if (isPassing(error)) throw error
    return ctx.write((tx) => failed(tx, ctx, row, error, false))
  }
}

/** Others are in the way now, but not always. */
const isPassing = (error: unknown) => error instanceof Problem && error.status === 503

async function settled(tx: Tx, ctx: Of, before: ProviderEventRow, effect: Effect, isNew: boolean) {
  const nextAt = effect.status === 'parked' ? (nextTry(before) ?? null) : null
  const row = { ...before, ...effect, nextAt, attempts: before.attempts + 1, updated: iso(now()) }
  await rows[isNew ? 'insert' : 'update'](tx, row)
  if (nextAt !== null) await sweepSoon(tx, ctx, nextAt)
  return row
}

/** What could not be done is a mistake of ours: it stays until it can. */
async function failed(tx: Tx, ctx: Of, before: ProviderEventRow, error: unknown, isNew: boolean) {
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
  await rows[isNew ? 'insert' : 'update'](tx, row)
  if (nextAt !== null) await sweepSoon(tx, ctx, nextAt)
  if (!attempts)
    await emit(ctx, tx, {
      ...{ source: 'payments', kind: 'webhook', eventName: 'webhook-failed', description: outcome },
      metadata: { providerKind, eventId, type },
    })
  return row
}
