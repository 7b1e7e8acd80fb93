import { now } from '../../../src/core/clock'
import type { ProviderKind } from '../../../src/payments/providers/provider'
import type { ExternalIds } from '../../../src/payments/tables'
import { startPaddle } from '../../fakes/vendors/paddle'
import { startPaypal } from '../../fakes/vendors/paypal'
import { startStripe } from '../../fakes/vendors/stripe'
import type { InjectedFailure, SignedWebhook, VendorRequest } from '../../fakes/vendors/vendor'

// biome-ignore lint/suspicious/noExplicitAny: the objects of vendors have no types here
type Any = any

/** A subscription as the provider has it. The price is in minor units; invoices are by their ids. */
export type Truth = {
  id: string
  /** Our id, from the metadata that the vendor got from us. */
  ours: string
  status: 'waiting' | 'active' | 'trialing' | 'past_due' | 'paused' | 'ended'
  price: number
  periodEnd: number
  invoices: Record<string, 'paid' | 'open' | 'void'>
}

/** The actions of customers, banks and time at a vendor, by one interface for all vendors. */
export type World = {
  kind: ProviderKind
  connection(): { name: string; kind: string; metadata: object; authentication: object }
  externalIds: ExternalIds
  own: { failWhen: (_: VendorRequest) => InjectedFailure | undefined }
  events: Any[]
  signEvent(event: Any): SignedWebhook | Promise<SignedWebhook>
  /** The id of the checkout in this answer of ours. */
  checkoutIn(answer: { checkoutUrl: string | null; clientToken: string | null }): string
  /** Whether a checkout was canceled. */
  isCanceled(checkout: string): boolean
  /** The checkouts that can be paid. */
  open(): string[]
  truths(): Truth[]
  pay(checkout: string, trial: boolean): void
  decline(checkout: string): void
  /** The next period begins, and is paid or not. */
  renew(id: string): void
  fail(id: string): void
  /** Pays the open invoices. */
  recover(id: string): void
  end(id: string, how: number): void
  schedule(id: string, ends: boolean): void
  /** Pauses a subscription on request; an overdue one keeps its debt. */
  pause(id: string, reason?: string): void
  /** Resumes a paused subscription. */
  resume(id: string): void
  clear(): void
  stop(): Promise<void>
}

const clearMaps = (...maps: Map<string, unknown>[]) => {
  for (const map of maps) map.clear()
}

async function stripeWorld(): Promise<World> {
  const vendor = await startStripe()
  const { sessions, subscriptions, invoices } = vendor
  const of = (id: string) => [...invoices.values()].filter((one) => one.parent.subscription_details.subscription === id)
  return {
    ...vendor,
    ...{ kind: 'stripe', externalIds: {} },
    checkoutIn: ({ checkoutUrl }) => checkoutUrl!.split('/').at(-1)!,
    isCanceled: (id) => sessions.get(id).status === 'expired',
    open: () => [...sessions.values()].filter(({ status }) => status === 'open').map(({ id }) => id),
    truths: () =>
      [...subscriptions.values()].map(({ id, metadata, status, items }) => ({
        ...{ id, ours: metadata.subscription, status: status === 'canceled' ? 'ended' : status },
        ...{ price: items.data[0].price.unit_amount, periodEnd: items.data[0].current_period_end * 1000 },
        invoices: Object.fromEntries(of(id).map(({ id, status }) => [id, status])),
      })),
    pay: (session, trial) => void vendor.pay(session, { trial: trial ? 7 : 0 }),
    decline: () => {},
    renew: (id) => void vendor.renew(id),
    fail: (id) => void vendor.fail(id),
    recover: (id) => {
      for (const { id: invoice, status } of of(id)) if (status === 'open') vendor.recover(invoice)
    },
    end: (id) => {
      for (const { id: invoice, status } of of(id)) if (status === 'open') vendor.giveUp(invoice)
      vendor.end(id)
    },
    schedule: (id, cancel_at_period_end) => void vendor.change(id, { cancel_at_period_end }),
    pause: (id, reason) => void vendor.pause(id, reason),
    resume: (id) => void vendor.resume(id),
    clear: () => {
      clearMaps(sessions, subscriptions, invoices)
      vendor.events.length = vendor.seen.length = 0
    },
  }
}

async function paypalWorld(): Promise<World> {
  const vendor = await startPaypal()
  const { subscriptions, transactions } = vendor
  vendor.plan('P-PRO', '20.00')
  vendor.terms.page = 2
  const statusOf = ({ status, billing_info: info }: Any): Truth['status'] => {
    if (status === 'APPROVAL_PENDING') return 'waiting'
    if (status === 'SUSPENDED') return 'paused'
    if (status !== 'ACTIVE') return 'ended'
    return info.failed_payments_count ? 'past_due' : 'active'
  }
  return {
    ...vendor,
    ...{ kind: 'paypal', externalIds: { monthlyPlanId: 'P-PRO' } },
    checkoutIn: ({ checkoutUrl }) => checkoutUrl!.split('BA-').at(-1)!,
    isCanceled: () => false,
    open: () => [...subscriptions.values()].filter((one) => statusOf(one) === 'waiting').map(({ id }) => id),
    truths: () =>
      [...subscriptions.values()].map((one) => ({
        ...{ id: one.id, ours: one.custom_id, status: statusOf(one), price: Math.round(Number(one.price.value) * 100) },
        periodEnd: Date.parse(one.billing_info?.next_billing_time ?? 0),
        invoices: Object.fromEntries((transactions.get(one.id) ?? []).map(({ id }) => [id, 'paid' as const])),
      })),
    pay: (id) => void vendor.approve(id),
    decline: () => {},
    renew: (id) => void vendor.bill(id),
    fail: (id) => void vendor.fail(id),
    recover: (id) => void vendor.bill(id),
    end: (id, how) => void vendor.become(id, ['CANCELLED', 'EXPIRED'][how % 2]!),
    schedule: () => {},
    pause: (id) => void vendor.become(id, 'SUSPENDED'),
    resume: (id) => void vendor.become(id, 'ACTIVE', 'RE-ACTIVATED'),
    clear: () => {
      clearMaps(subscriptions, transactions)
      vendor.events.length = vendor.seen.length = 0
    },
  }
}

async function paddleWorld(): Promise<World> {
  const vendor = await startPaddle()
  const { transactions, subscriptions } = vendor
  vendor.price('pri_pro', '2000')
  const of = (id: string) => [...transactions.values()].filter((one) => one.subscription_id === id)
  const statusOf = (status: string) => (status === 'canceled' ? 'ended' : status) as Truth['status']
  return {
    ...vendor,
    ...{ kind: 'paddle', externalIds: { monthlyPriceId: 'pri_pro' } },
    checkoutIn: ({ clientToken }) => clientToken!,
    isCanceled: (id) => transactions.get(id).status === 'canceled',
    open: () => [...transactions.values()].filter(({ status }) => status === 'ready').map(({ id }) => id),
    truths: () =>
      [...subscriptions.values()].map(({ id, custom_data, status, items, current_billing_period: period }) => ({
        ...{ id, ours: custom_data.subscription, status: statusOf(status) },
        ...{ price: Number(items[0].price.unit_price.amount), periodEnd: Date.parse(period?.ends_at ?? 0) },
        invoices: Object.fromEntries(of(id).map(({ id, status }) => [id, status === 'completed' ? 'paid' : 'open'])),
      })),
    pay: (transaction, trial) => void vendor.pay(transaction, { trial: trial ? 7 : 0 }),
    decline: (transaction) => void vendor.decline(transaction),
    renew: (id) => void vendor.renew(id),
    fail: (id) => void vendor.fail(id),
    recover: (id) => {
      for (const { id: transaction, status } of of(id)) if (status === 'billed') vendor.recover(transaction)
    },
    end: (id) => void vendor.become(id, 'canceled', 'canceled'),
    pause: (id) => void vendor.pause(id),
    resume: (id) => void vendor.resume(id),
    schedule: (id, ends) =>
      void vendor.become(id, subscriptions.get(id).status, 'updated', {
        scheduled_change: ends ? { action: 'cancel', effective_at: new Date(now()).toISOString() } : null,
      }),
    clear: () => {
      clearMaps(transactions, subscriptions)
      vendor.events.length = vendor.seen.length = 0
    },
  }
}

export const worlds: Record<ProviderKind, () => Promise<World>> = {
  stripe: stripeWorld,
  paypal: paypalWorld,
  paddle: paddleWorld,
}
