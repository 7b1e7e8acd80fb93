import { paddle } from './paddle/provider'
import { paypal } from './paypal/provider'
import type { Provider, ProviderKind } from './provider'
import { stripe } from './stripe/provider'

export type { ProviderKind } from './provider'

/** The providers by kind. */
export const providers: { [Kind in ProviderKind]: Provider<Kind> } = { stripe, paypal, paddle }

export const providerKinds = Object.keys(providers) as ProviderKind[]
export const isProviderKind = (kind: string): kind is ProviderKind => Object.hasOwn(providers, kind)

/** Returns the provider of a kind. The caller makes sure that the connection is of the same kind. */
export const providerOf = (kind: ProviderKind) => providers[kind] as Provider
