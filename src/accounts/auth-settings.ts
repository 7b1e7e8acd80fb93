import { t } from 'elysia'
import { strictObject, textMatching, webAddress, withMessage } from '../core/shapes'
import { defineSettings, nameList } from '../platform/settings/tenant-settings'

const PROVIDER_NAME_MESSAGE =
  'A provider name must begin with a letter and contain only lower-case letters, digits and - (at most 63 characters).'

/** A sign-in provider. Its secret is stored separately: see `platform/settings/provider-secrets.ts`. */
const ProviderSettings = strictObject({
  clientId: t.String({ minLength: 1, maxLength: 500 }),
  clientSecret: t.Optional(t.Nullable(t.String({ maxLength: 2_000 }))),
  kind: t.Optional(t.Literal('oidc')),
  issuer: t.Optional(webAddress({ maxLength: 2_000 })),
  baseUrl: t.Optional(webAddress({ maxLength: 2_000 })),
  teamId: t.Optional(t.String({ maxLength: 100, description: 'Apple only' })),
  keyId: t.Optional(t.String({ maxLength: 100, description: 'Apple only: ID of the key in secret' })),
})

/** Whether users may sign up or sign in by mail, and through which providers they sign in. */
export const authSettings = defineSettings(
  'auth-configuration',
  t.Object({
    allowSignup: t.Boolean({ default: true }),
    allowEmailSignIn: t.Boolean({ default: false }),
    allowedReturnHosts: nameList('hosts that the returnUrl of a provider sign-in may point to'),
    providers: t.Record(textMatching('^[a-z][a-z0-9-]{0,62}$', PROVIDER_NAME_MESSAGE), ProviderSettings, {
      default: {},
      additionalProperties: false,
      ...withMessage(PROVIDER_NAME_MESSAGE),
    }),
  }),
)
