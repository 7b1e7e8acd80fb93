import { t } from 'elysia'
import {
  defineKind,
  environment,
  optionalUrl,
  originOf,
  requireValue,
  secretText,
  webhookSecret,
} from './connection-kind'
import { joinUrl, probe } from './probe'

/** The API URLs of its environments. */
export const PAYPAL_URLS = { live: 'https://api-m.paypal.com', sandbox: 'https://api-m.sandbox.paypal.com' }

/** https://developer.paypal.com/api/rest/authentication */
export const paypal = defineKind({
  metadata: t.Object({
    clientId: t.Optional(t.String({ minLength: 1, maxLength: 500 })),
    environment,
    apiUrl: optionalUrl('default: the URL of the environment'),
  }),
  authentication: t.Object({ clientSecret: secretText, webhookId: webhookSecret }),
  serverOf: ({ apiUrl, environment }) => originOf(apiUrl, PAYPAL_URLS[environment === 'sandbox' ? 'sandbox' : 'live']),
  async check({
    tenant,
    metadata: { clientId, environment = 'live', apiUrl = PAYPAL_URLS[environment] },
    authentication,
  }) {
    const name = requireValue(clientId, 'metadata.clientId')
    const password = requireValue(authentication.clientSecret, 'authentication.clientSecret')
    return probe(tenant, joinUrl(apiUrl, 'v1/oauth2/token'), {
      method: 'POST',
      headers: { authorization: `Basic ${Buffer.from(`${name}:${password}`).toString('base64')}` },
      body: new URLSearchParams({ grant_type: 'client_credentials' }),
    })
  },
})
