import type { Static } from '@sinclair/typebox'
import { email } from './email'
import { http } from './http'
import { openai } from './openai'
import { paddle } from './paddle'
import { paypal } from './paypal'
import { stripe } from './stripe'

/** The kinds of connections, by name. */
export const kinds = { openai, http, email, stripe, paypal, paddle }
export type KindName = keyof typeof kinds
export const kindNames = Object.keys(kinds) as KindName[]

/** A connection with its secrets. It must never be sent to clients. */
export type ResolvedConnection<Name extends KindName = KindName> = {
  [K in Name]: {
    _id: string
    /** The tenant that it belongs to. */
    tenant: string
    name: string
    kind: K
    metadata: Static<(typeof kinds)[K]['metadata']>
    authentication: Static<(typeof kinds)[K]['authentication']>
  }
}[Name]
