import { t } from 'elysia'
import { greet, joined } from './asking'
import { address, environment, kind, needed, secretText, webhookSecret } from './kind'

/** Where its environments are. */
export const PAYPAL = { live: 'https://api-m.paypal.com', sandbox: 'https://api-m.sandbox.paypal.com' }

/** https://developer.paypal.com/api/rest/authentication */
export const paypal = kind({
  metadata: t.Object({
    clientId: t.Optional(t.String({ minLength: 1, maxLength: 500 })),
    environment,
    apiUrl: address('where its environment is, unless told'),
  }),
  authentication: t.Object({ clientSecret: secretText, webhookId: webhookSecret }),
  async check({ tenant, metadata: { clientId, environment = 'live', apiUrl = PAYPAL[environment] }, authentication }) {
    const name = needed(clientId, 'metadata.clientId')
    const password = needed(authentication.clientSecret, 'authentication.clientSecret')
    return greet(tenant, joined(apiUrl, 'v1/oauth2/token'), {
      method: 'POST',
      headers: { authorization: `Basic ${Buffer.from(`${name}:${password}`).toString('base64')}` },
      body: new URLSearchParams({ grant_type: 'client_credentials' }),
    })
  },
})
