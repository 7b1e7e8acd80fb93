import type { Static } from '@sinclair/typebox'
import { email } from './email'
import { http } from './http'
import { openai } from './openai'
import { paddle } from './paddle'
import { paypal } from './paypal'
import { stripe } from './stripe'

/** The kinds of servers that a tenant may be connected to. */
export const kinds = { openai, http, email, stripe, paypal, paddle }
export type KindName = keyof typeof kinds
export const kindNames = Object.keys(kinds) as KindName[]

/** A connection with its secrets: nothing that anybody may be told. */
export type ResolvedConnection<Name extends KindName = KindName> = {
  [K in Name]: {
    _id: string
    /** Whose it is. */
    tenant: string
    name: string
    kind: K
    metadata: Static<(typeof kinds)[K]['metadata']>
    authentication: Static<(typeof kinds)[K]['authentication']>
  }
}[Name]
