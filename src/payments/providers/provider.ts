import type { ResolvedConnection } from '../../connections/kinds/index'
import type { Cycle } from '../billing-period'
import type { EventMeaning } from '../subscriptions/transitions'
import type { ExternalIds, InvoiceItem, ProviderKind, Subscription } from '../tables'

export type { ProviderKind }

/** The order of a checkout. Amounts are in minor units of the currency. */
export type CheckoutOrder = {
  subscriptionId: string
  planName: string
  /** The provider's ids of the plan and its prices, as far as the plan has them. */
  externalIds: ExternalIds
  /** The price of each cycle, less the discount. */
  amount: number
  currency: string
  billingCycle: Cycle
  /** Whether the price was set for this subscription alone. */
  dynamic: boolean
  /** Whether `amount` is the price that the plan has now, so that the plan's price at the provider can be used. */
  isPlanPrice: boolean
  successUrl?: string
  cancelUrl?: string
  customer: { name?: string; email?: string }
  /**
   * The idempotency key: the same for the same order, another one if anything differs. A provider that replays answers must
   * not return a canceled checkout; use `attemptKey(order.key)`.
   */
  key: string
  /** The tenant, the subscription and the entity, which the provider stores and sends along with its events. */
  metadata: Record<string, string>
}

/**
 * How the customer pays: at a URL, or with a token for the provider's script. It has one of the two ids. With
 * `externalSubscriptionId`, `cancel` and `fetchSubscription` get it before it is paid, and `findSubscriptionId` is not
 * needed; with `externalCheckoutId` it is.
 */
export type ProviderCheckout = {
  checkoutUrl: string | null
  clientToken: string | null
  /** The provider's id of the subscription, if it was created already. */
  externalSubscriptionId?: string
  /** The provider's id of the checkout, to cancel it by, if checkouts have ids of their own. */
  externalCheckoutId?: string
}

/** An invoice of a provider. Times are in ms since 1970. */
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
  /** Whether it is for something besides the periods of the subscription, whose status does not depend on its payment. */
  isExtra?: true
}

export type Period = { periodStart: number; periodEnd: number }

/** The state of a subscription, as far as an event or the provider reports it. Times are in ms since 1970. */
export type ProviderState = {
  status?: 'active' | 'trialing' | 'past_due' | 'paused' | 'canceled' | 'expired' | 'pending'
  periodStart?: number
  periodEnd?: number
  /** The periods, where the items of the subscription have several. The one that fits the billing cycle counts. */
  periods?: Period[]
  trialEndsAt?: number
  cancelAtPeriodEnd?: boolean
  /** The pause: of the subscription if its status is `paused`, else of the collection of payments. Null: there is none. */
  pause?: { since?: number; resumes?: number; reason?: string } | null
}

/** The current state of a subscription at the provider. */
export type ProviderSubscription = ProviderState & {
  externalSubscriptionId: string
  status: NonNullable<ProviderState['status']>
  /** When the provider tries to collect an overdue payment again, if it will. */
  nextPaymentAttempt?: number
  invoices: (ProviderInvoice & { status: 'paid' | 'open' | 'void' })[]
}

/** An event of a provider. It is ignored if it has no meaning. */
export type ProviderEvent = ProviderState & {
  id: string
  type: string
  /** The time of the event by the provider's clock, in ms since 1970. */
  occurredAt: number
  meaning?: EventMeaning
  /** The tenant, if the event has our metadata: several tenants may share an account at a provider. */
  tenant?: string
  /** Our id of the subscription, if the event has our metadata. */
  subscriptionId?: string
  externalSubscriptionId?: string
  /** The provider's id of the checkout, if the event is about one. */
  externalCheckoutId?: string
  invoice?: ProviderInvoice
  /** A sentence that says why an event that matters cannot be understood, such as its version. */
  unreadable?: string
}

/**
 * A payment provider. All its failures are thrown as 502 PROVIDER_ERROR or 503 PROVIDER_BUSY, which hold no secrets. Callers store results only
 * after it has answered.
 */
export type Provider<Kind extends ProviderKind = ProviderKind> = {
  /** Checks an order before any request. @throws 400 MISSING_EXTERNAL_PRICE_ID when the plan lacks a required id */
  assertPriceConfigured?(
    connection: ResolvedConnection<Kind>,
    order: Pick<CheckoutOrder, 'externalIds' | 'billingCycle' | 'dynamic'>,
  ): void
  /** Starts a checkout. A second call with the same key may return the same checkout. @throws 502 PROVIDER_ERROR */
  createCheckout(connection: ResolvedConnection<Kind>, order: CheckoutOrder): Promise<ProviderCheckout>
  /**
   * Cancels a subscription at once, or its checkout and any subscription that came of it. Succeeds if it no longer exists.
   * Returns false if it cannot be canceled yet, because the customer has not approved it. With `unpaidOnly`, a checkout that
   * was paid is left alone, and the result is false. @throws 502 PROVIDER_ERROR
   */
  cancel(
    connection: ResolvedConnection<Kind>,
    subscription: Subscription,
    options?: { unpaidOnly?: boolean },
  ): Promise<boolean>
  /**
   * Sets the price (minor units) from the next cycle on. The call may be repeated, and succeeds if the subscription no
   * longer exists. @throws 502 PROVIDER_ERROR
   */
  reprice(connection: ResolvedConnection<Kind>, subscription: Subscription, amount: number): Promise<void>
  /**
   * Returns the provider's id of the subscription that came of a checkout, or undefined if there is none. Absent for
   * providers whose checkouts have no ids of their own. @throws 502 PROVIDER_ERROR
   */
  findSubscriptionId?(connection: ResolvedConnection<Kind>, externalCheckoutId: string): Promise<string | undefined>
  /** Returns the state of a subscription, or undefined if the provider does not know it. @throws 502 PROVIDER_ERROR */
  fetchSubscription(connection: ResolvedConnection<Kind>, externalId: string): Promise<ProviderSubscription | undefined>
  /** Returns the secrets or ids that a connection verifies webhooks with. */
  webhookSecrets(connection: ResolvedConnection<Kind>): string[]
  /**
   * Returns whether the provider sent this body. Where the signature covers a time, the time is checked by `isFresh`;
   * otherwise the event's id alone recognizes repeats.
   * @throws 502 PROVIDER_ERROR when the provider has to verify the body itself, and fails
   */
  verifyWebhook(connection: ResolvedConnection<Kind>, raw: Uint8Array, headers: Headers): Promise<boolean>
  /** Whether `verifyWebhook` sends requests to the provider, so that guests may cause only a limited number of them. */
  verifiesRemotely?: true
  /** Parses a verified body. @throws 400 INVALID_INPUT when it is no event */
  parseEvent(raw: Uint8Array): ProviderEvent
  /** Whether it refuses subscriptions that cost nothing at first. */
  needsPaidStart?: true
  /** How long, in ms, a customer may still approve a checkout for which `cancel` returns false. */
  approvalWindowMs?: number
  /**
   * Returns an open invoice that stands for a failed payment, where the provider has no id for it and `event` has no invoice.
   * Returns undefined if the amount is unknown.
   */
  createPlaceholderInvoice?(subscription: Subscription, event: ProviderEvent): ProviderInvoice | undefined
  /** Returns whether an id is that of such an invoice, which is voided when another one of the subscription is paid. */
  isPlaceholderInvoice?(externalInvoiceId: string, subscription: Subscription): boolean
}
