import { t } from 'elysia'
import { defineKind, environment, keyText, optionalUrl, originOf, requireValue, webhookSecret } from './connection-kind'
import { joinUrl, probe, toBearerInit } from './probe'

/** The API URLs of its environments. */
export const PADDLE_URLS = { live: 'https://api.paddle.com', sandbox: 'https://sandbox-api.paddle.com' }

/** https://developer.paddle.com/api-reference/overview */
export const paddle = defineKind({
  metadata: t.Object({ environment, apiUrl: optionalUrl('default: the URL of the environment') }),
  authentication: t.Object({ apiKey: keyText, webhookSecret }),
  serverOf: ({ apiUrl, environment }) => originOf(apiUrl, PADDLE_URLS[environment === 'sandbox' ? 'sandbox' : 'live']),
  check: ({
    tenant,
    metadata: { environment = 'live', apiUrl = PADDLE_URLS[environment] },
    authentication: { apiKey },
  }) => probe(tenant, joinUrl(apiUrl, 'event-types'), toBearerInit(requireValue(apiKey, 'authentication.apiKey'))),
})
