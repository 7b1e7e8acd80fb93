import { t } from 'elysia'
import { bearer, greet, joined } from './asking'
import { address, environment, kind, needed, secretText, webhookSecret } from './kind'

/** Where its environments are. */
export const PADDLE = { live: 'https://api.paddle.com', sandbox: 'https://sandbox-api.paddle.com' }

/** https://developer.paddle.com/api-reference/overview */
export const paddle = kind({
  metadata: t.Object({ environment, apiUrl: address('where its environment is, unless told') }),
  authentication: t.Object({ apiKey: secretText, webhookSecret }),
  check: ({ tenant, metadata: { environment = 'live', apiUrl = PADDLE[environment] }, authentication: { apiKey } }) =>
    greet(tenant, joined(apiUrl, 'event-types'), bearer(needed(apiKey, 'authentication.apiKey'))),
})
