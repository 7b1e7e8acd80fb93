import { t } from 'elysia'
import { bearer, greet, joined } from './asking'
import { address, kind, needed, secretText, webhookSecret } from './kind'

const STRIPE = 'https://api.stripe.com'

/** https://docs.stripe.com/api */
export const stripe = kind({
  metadata: t.Object({
    apiUrl: address(`${STRIPE} unless told`),
    requireExternalPrice: t.Optional(t.Boolean()),
    checkoutMode: t.Optional(
      t.Union([t.Literal('hosted'), t.Literal('embedded')], { description: 'hosted unless told' }),
    ),
  }),
  authentication: t.Object({ secretKey: secretText, webhookSecret }),
  check: ({ tenant, metadata: { apiUrl = STRIPE }, authentication: { secretKey } }) =>
    greet(tenant, joined(apiUrl, 'v1/balance'), bearer(needed(secretKey, 'authentication.secretKey'))),
})
