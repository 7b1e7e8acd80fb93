import type { ResolvedConnection } from '../../connections/kinds/index'
import type { Cycle, Span } from '../billing-period'
import type { EventMeaning } from '../subscriptions/transitions'
import type { EntityType, ExternalIds, InvoiceItem, ProviderKind, Subscription } from '../tables'

export type { ProviderKind }

/** What is to be paid for, and how to come back. Amounts are in minor units of the currency. */
export type CheckoutOrder = {
  tenant: string
  subscriptionId: string
  entity: { type: EntityType; id: string }
  planName: string
  /** How the provider calls the plan and its prices, as far as the plan says. */
  externalIds: ExternalIds
  /** What each cycle costs, after the discount. */
  amount: number
  /** What it costs without it. */
  basePrice: number
  currency: string
  billingCycle: Cycle
  /** Whether the price was made for this subscription alone. */
  dynamic: boolean
  /** What is taken off already in `amount`, and for how long; forever where `benefit` is null. */
  discount: { couponId: string; code: string; benefit: Span | null } | null
  successUrl?: string
  cancelUrl?: string
  customer: { name?: string; email?: string }
  /** Whether the page of the checkout stands within ours. */
  embedded: boolean
  /** The idempotency key: the same for the same order, another one where anything of it differs. */
  key: string
  /** What the provider keeps with the subscription and tells with its events: tenant, subscription and entity. */
  metadata: Record<string, string>
}

/** How the customer pays: by an address to go to, or by a token for the provider's script. */
export type ProviderCheckout = {
  checkoutUrl: string | null
  clientToken: string | null
  /** Where the provider has made the subscription already. */
  externalSubscriptionId?: string
  /** Where the checkout has a name of its own, by which it can be called off. */
  externalCheckoutId?: string
}

/** An invoice as the provider has it. Times are ms since 1970. */
export type ProviderInvoice = {
  externalInvoiceId: string
  /** Minor units. */
  amount: number
  currency: string
  invoiceUrl?: string | null
  paidAt?: number
  periodStart?: number
  periodEnd?: number
  items?: InvoiceItem[]
}

/** Where a subscription stands, as far as an event or the provider tells it. Times are ms since 1970. */
export type ProviderState = {
  status?: 'active' | 'trialing' | 'past_due' | 'canceled' | 'expired' | 'pending'
  periodStart?: number
  periodEnd?: number
  trialEndsAt?: number
  cancelAtPeriodEnd?: boolean
}

/** A subscription as the provider has it now. */
export type ProviderSubscription = ProviderState & {
  externalSubscriptionId: string
  status: NonNullable<ProviderState['status']>
  invoices: (ProviderInvoice & { status: 'paid' | 'open' | 'void' })[]
}

/** An event of a provider. Without a meaning it is ignored. */
export type ProviderEvent = ProviderState & {
  id: string
  type: string
  /** When it happened, by the provider's clock: ms since 1970. */
  occurredAt: number
  meaning?: EventMeaning
  /** Whose it is, where the event carries our metadata: several tenants may share an account. */
  tenant?: string
  /** Ours, where the event carries our metadata. */
  subscriptionId?: string
  externalSubscriptionId?: string
  /** The checkout that it is about, where it is about one only. */
  externalCheckoutId?: string
  invoice?: ProviderInvoice
}

/**
 * A provider of payments. Whatever goes wrong with it is thrown as `providerFailed`, which is 502 and tells nothing of
 * secrets; nothing is kept by who asks until it has answered.
 */
export type Provider<Kind extends ProviderKind = ProviderKind> = {
  /** What of the order stands in the way before anybody is asked. @throws 400 MISSING_EXTERNAL_PRICE_ID */
  assertPriceConfigured?(
    opened: ResolvedConnection<Kind>,
    order: Pick<CheckoutOrder, 'externalIds' | 'billingCycle' | 'dynamic'>,
  ): void
  /**
   * Begins a checkout that can be paid. Asked again with the same key, it may answer the same. @throws 502 PROVIDER_ERROR
   */
  createCheckout(opened: ResolvedConnection<Kind>, order: CheckoutOrder): Promise<ProviderCheckout>
  /**
   * Ends a subscription now, or calls off its checkout and ends what came of it; what is not there any more is fine.
   * False where that can't be done yet, because who is to pay has not decided. @throws 502
   */
  cancel(opened: ResolvedConnection<Kind>, subscription: Subscription): Promise<boolean>
  /**
   * Has each cycle from the next one on cost this much (minor units). Asked again, it is fine, and so is what is not there
   * any more: nobody pays for that. @throws 502
   */
  reprice(opened: ResolvedConnection<Kind>, subscription: Subscription, amount: number): Promise<void>
  /** Which subscription came of a checkout, where those are called otherwise; undefined without one. @throws 502 */
  findSubscriptionId?(opened: ResolvedConnection<Kind>, externalCheckoutId: string): Promise<string | undefined>
  /** What it knows of a subscription; undefined when that is nothing. @throws 502 */
  fetchSubscription(opened: ResolvedConnection<Kind>, externalId: string): Promise<ProviderSubscription | undefined>
  /** What a connection knows the provider's webhooks by. */
  webhookSecrets(opened: ResolvedConnection<Kind>): string[]
  /** Whether this very body was sent by the provider, lately. @throws 502 where the provider itself has to be asked */
  verifyWebhook(opened: ResolvedConnection<Kind>, raw: Uint8Array, headers: Headers): Promise<boolean>
  /** Reads a body that was verified. @throws 400 where it is no event */
  parseEvent(raw: Uint8Array): ProviderEvent
}
