import { paddle } from './paddle/provider'
import { paypal } from './paypal/provider'
import type { Provider, ProviderKind } from './provider'
import { stripe } from './stripe/provider'

export type { ProviderKind } from './provider'

/** The providers by kind: recurring cards, billing subscriptions, merchant of record. */
export const providers: { [Kind in ProviderKind]: Provider<Kind> } = { stripe, paypal, paddle }

export const providerKinds = Object.keys(providers) as ProviderKind[]
export const isProviderKind = (kind: string): kind is ProviderKind => Object.hasOwn(providers, kind)

/** The provider of a kind, where the connection and the provider are known to fit. */
export const providerOf = (kind: ProviderKind) => providers[kind] as Provider
