import type { Tx } from '../../storage/port'
import type { Tenant } from '../../tenancy/tenants'
import type { ProviderInvoice, ProviderKind } from '../providers/provider'
import type { Invoice, Subscription } from '../tables'
import type { LifecyclePayload, ProviderLink } from './schedule'

type OfProvider = { subscription: Subscription; providerKind: ProviderKind }

/** What is to be done for a decision. Times are in ms. */
export type Effect =
  | { kind: 'save subscription'; subscription: Subscription }
  /** An open invoice may become paid or void, and no other change is made. */
  | ({ kind: 'save invoice'; invoice: ProviderInvoice & { status: Invoice['status'] } } & OfProvider)
  /** Voids the open invoices that stand for failed payments, after another invoice of the subscription was paid. */
  | ({ kind: 'void placeholder invoices' } & OfProvider)
  /** Tells admins that a stored payment should be given back, once for each invoice. */
  | ({ kind: 'offer refund'; invoice: ProviderInvoice; why: string } & OfProvider)
  | { kind: 'redeem coupon'; subscription: string; coupon: string; time: number }
  | { kind: 'emit event'; subscription: Subscription; eventName: string; metadata: object; by?: string }
  /** Replaces the queued lifecycle job, or deletes it without a time. */
  | { kind: 'schedule check'; at: number | undefined; payload: LifecyclePayload }
  /** Has the current price sent to the provider: now, in the order of such jobs, or at a time. */
  | { kind: 'send price'; subscription: string; at?: number }
  /** Has a checkout or a subscription canceled at the provider that is not, or no longer, used. */
  | { kind: 'cancel at provider'; link: ProviderLink & { subscription: string }; at?: number }
  /** Has the parked events of a provider's subscription retried, which has become known. */
  | { kind: 'retry parked events'; providerKind: ProviderKind; externalSubscriptionId: string }

/** Carries out effects of a kind, in a transaction. */
export type Action<Kind extends Effect['kind']> = (
  tx: Tx,
  ctx: Pick<Tenant, 'tenant'>,
  effect: Extract<Effect, { kind: Kind }>,
) => Promise<unknown>
