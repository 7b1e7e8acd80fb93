import type { NewPlan } from '../../api/schema'
import type { FormField } from '../../fields/field-form'

/** The kinds of connections that process payments. */
export type ProviderKind = keyof NonNullable<NewPlan['externalIds']>

/** The ids that a plan may have at a provider. */
export type ExternalIdKey = 'productId' | 'monthlyPriceId' | 'yearlyPriceId' | 'monthlyPlanId' | 'yearlyPlanId'

/** What the page has to know about one payment provider. */
export type ProviderDescription = {
  label: string
  /** The fields of its connections that everybody who may see them can read. */
  settings: readonly FormField[]
  /** The keys of its secrets, which the server never returns. */
  secrets: readonly FormField[]
  /** The ids that its plans need, with what they are called there. */
  planIds: Partial<Record<ExternalIdKey, string>>
  /** Where its dashboard takes the address of webhooks. */
  webhookPage: string
  /** The events that have to be sent. */
  webhookEvents: readonly string[]
  /** Whether the settings say that no real money moves; undefined when only the secret tells. */
  isTest(metadata: Record<string, unknown>): boolean | undefined
  /** Returns the address of a subscription in its dashboard. */
  subscriptionPage(id: string, metadata: Record<string, unknown>): string
}
