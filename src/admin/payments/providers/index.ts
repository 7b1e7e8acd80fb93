import { paddle } from './paddle'
import { paypal } from './paypal'
import type { ProviderDescription, ProviderKind } from './provider-kind'
import { stripe } from './stripe'

/** The payment providers by kind, as the server has them. */
export const providers: Record<ProviderKind, ProviderDescription> = { stripe, paypal, paddle }

/** The kinds of payment providers. */
export const providerKinds = Object.keys(providers) as ProviderKind[]

/** Returns what is known about the provider of a kind, or undefined for another kind. */
export const findProvider = (kind: string | null | undefined): ProviderDescription | undefined =>
  kind && Object.hasOwn(providers, kind) ? providers[kind as ProviderKind] : undefined
