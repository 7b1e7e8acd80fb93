import type { ConnectionKind, ConnectionKindName } from './connection-kind'
import { email } from './email'
import { http } from './http'
import { openai } from './openai'
import { paddle } from './paddle'
import { paypal } from './paypal'
import { stripe } from './stripe'

/** All kinds of connections, by the names that the API uses. */
export const connectionKinds: Record<ConnectionKindName, ConnectionKind> = {
  openai,
  http,
  email,
  stripe,
  paypal,
  paddle,
}
