import { t } from 'elysia'
import { defineKind, keyText, optionalUrl, originOf, requireValue, webhookSecret } from './connection-kind'
import { joinUrl, probe, toBearerInit } from './probe'

const STRIPE_URL = 'https://api.stripe.com'

/** https://docs.stripe.com/api */
export const stripe = defineKind({
  metadata: t.Object({
    apiUrl: optionalUrl(`default: ${STRIPE_URL}`),
    requireExternalPrice: t.Optional(t.Boolean()),
    checkoutMode: t.Optional(t.Union([t.Literal('hosted'), t.Literal('embedded')], { description: 'default: hosted' })),
  }),
  authentication: t.Object({ secretKey: keyText, webhookSecret }),
  serverOf: ({ apiUrl }) => originOf(apiUrl, STRIPE_URL),
  check: ({ tenant, metadata: { apiUrl = STRIPE_URL }, authentication: { secretKey } }) =>
    probe(tenant, joinUrl(apiUrl, 'v1/balance'), toBearerInit(requireValue(secretKey, 'authentication.secretKey'))),
})
