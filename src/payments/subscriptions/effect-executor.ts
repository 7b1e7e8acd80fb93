import { and, eq, isNull, sql } from 'drizzle-orm'
import { now, toIsoString } from '../../core/clock'
import { emit } from '../../jobs/outbox'
import { deleteQueued, enqueue, replaceQueued } from '../../jobs/queue'
import type { Tx } from '../../storage/port'
import { createRowWriter } from '../../storage/prepared-statements'
import type { Tenant } from '../../tenancy/tenants'
import { saveInvoice, voidPlaceholderInvoices } from '../invoices/invoice-store'
import { fromMinorUnits } from '../money'
import { coupons, invoices, redemptions, subscriptions } from '../tables'
import { retryParkedEvents } from '../webhooks/retry-schedule'
import type { Action, Effect } from './effects'
import { CANCEL_ORPHANED_JOB, LIFECYCLE_JOB, REPRICE_JOB } from './job-kinds'

const subscriptionRows = createRowWriter(subscriptions)

/** Emits an event about a subscription. */
const emitEvent: Action<'emit event'> = (tx, ctx, { subscription, eventName, metadata, by }) => {
  const { _id, planId, billableEntityType: type, billableEntityId: entity } = subscription
  return emit(ctx, tx, {
    ...{ source: 'payments', kind: 'subscription', eventName },
    metadata: { subscriptionId: _id, planId, billableEntityType: type, billableEntityId: entity, ...metadata },
    user: by ?? (type === 'user' ? entity : null),
    workspace: type === 'workspace' ? entity : null,
  })
}

/** Tells admins that a stored payment should be given back, once for each invoice. */
const offerRefund: Action<'offer refund'> = async (tx, ctx, { subscription, providerKind, invoice, why }) => {
  const { externalInvoiceId } = invoice
  const isUnoffered = and(
    eq(invoices.providerKind, providerKind),
    eq(invoices.externalInvoiceId, externalInvoiceId),
    eq(invoices.status, 'paid'),
    isNull(invoices.refundOffered),
  )
  const refundOffered = toIsoString(now())
  const offered = await tx.update(invoices).set({ refundOffered }).where(isUnoffered).returning({ _id: invoices._id })
  if (!offered.length) return
  const currency = invoice.currency.toUpperCase()
  const metadata = { externalInvoiceId, amount: fromMinorUnits(invoice.amount, currency), currency, providerKind, why }
  await emitEvent(tx, ctx, { kind: 'emit event', subscription, eventName: 'refund-offered', metadata })
}

/** Stores a redemption, and counts it. */
const redeemCoupon: Action<'redeem coupon'> = async (tx, _, { subscription, coupon, time }) => {
  const currentRedemptions = sql`${coupons.currentRedemptions} + 1`
  await tx.update(coupons).set({ currentRedemptions }).where(eq(coupons._id, coupon))
  await tx.insert(redemptions).values({ subscription, coupon, created: toIsoString(time) })
}

const ACTIONS: { [Kind in Effect['kind']]: Action<Kind> } = {
  'save subscription': (tx, _, { subscription }) => subscriptionRows.update(tx, subscription),
  'save invoice': saveInvoice,
  'void placeholder invoices': voidPlaceholderInvoices,
  'offer refund': offerRefund,
  'redeem coupon': redeemCoupon,
  'emit event': emitEvent,
  'schedule check': (tx, ctx, { at, payload }) => {
    const orderingKey = `${LIFECYCLE_JOB} ${payload.subscription}`
    if (at === undefined) return deleteQueued(tx, orderingKey)
    return replaceQueued(ctx, tx, { kind: LIFECYCLE_JOB, orderingKey, payload, at })
  },
  'send price': (tx, ctx, { subscription, at }) => {
    const orderingKey = at === undefined ? subscription : undefined
    return enqueue(ctx, tx, { kind: REPRICE_JOB, payload: { subscription }, orderingKey, at })
  },
  'cancel at provider': (tx, ctx, { link, at }) => enqueue(ctx, tx, { kind: CANCEL_ORPHANED_JOB, payload: link, at }),
  'retry parked events': retryParkedEvents,
}

/** Carries out effects one after the other, in this transaction. */
export async function carryOut(tx: Tx, ctx: Pick<Tenant, 'tenant'>, effects: Effect[]) {
  for (const effect of effects) await ACTIONS[effect.kind](tx, ctx, effect as never)
}
