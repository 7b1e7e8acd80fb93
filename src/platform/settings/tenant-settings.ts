import type { Static, TObject } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import { eq } from 'drizzle-orm'
import { t } from 'elysia'
import { strictObject, textMatching, webAddress, withMessage } from '../../core/shapes'
import type { Store } from '../../storage/port'
import { cached } from '../../tenancy/cache'
import { configurations } from './tables'

const nameList = (description: string) =>
  t.Array(t.String({ minLength: 1, maxLength: 100 }), { maxItems: 1_000, default: [], description })

/** An address to which a browser can be led: whole, without blanks, and without a name that could be taken for its host. */
export const PAGE_URL_PATTERN = '^https?://[^\\s\\u0000-\\u001f/?#@\\\\]+([/?#][^\\s\\u0000-\\u001f]*)?$'
const pageUrl = (description: string) =>
  t.Optional(
    textMatching(PAGE_URL_PATTERN, 'Use an absolute URL, such as https://app.example.com/paid.', {
      maxLength: 2_000,
      description,
    }),
  )
const PROVIDER_NAME_MESSAGE =
  'A provider name must begin with a letter and contain only lower-case letters, digits and - (at most 63 characters).'

/** By whom users may sign in. Its secret is not kept with it: see `settings/secrets.ts`. */
const ProviderSettings = strictObject({
  clientId: t.String({ minLength: 1, maxLength: 500 }),
  clientSecret: t.Optional(t.Nullable(t.String({ maxLength: 2_000 }))),
  kind: t.Optional(t.Literal('oidc')),
  issuer: t.Optional(webAddress({ maxLength: 2_000 })),
  baseUrl: t.Optional(webAddress({ maxLength: 2_000 })),
})

const templateSettings = t.Optional(
  strictObject({
    subject: t.Optional(t.String({ maxLength: 300 })),
    text: t.Optional(t.String({ maxLength: 10_000 })),
    html: t.Optional(t.String({ maxLength: 50_000, description: 'default: generated from the text' })),
    link: t.Optional(webAddress({ maxLength: 2_000, description: 'URL that contains {{token}}' })),
  }),
)

/** The settings of a tenant that the server goes by, by the key of their configuration, with what holds where none is set. */
export const tenantSettings = {
  'app-configuration': t.Object({
    websiteUrls: t.Array(t.String({ minLength: 1, maxLength: 2_000 }), {
      ...{ maxItems: 100, default: [] },
      description:
        'URLs of the websites of the tenant: their origins may call the API, and requests to their hosts are served',
    }),
    contentEditors: nameList('roles that may write blocks, besides admins; empty: every signed-in user'),
  }),
  'auth-configuration': t.Object({
    allowSignup: t.Boolean({ default: true }),
    allowedReturnHosts: nameList('hosts that the returnUrl of a provider sign-in may point to'),
    providers: t.Record(textMatching('^[a-z][a-z0-9-]{0,62}$', PROVIDER_NAME_MESSAGE), ProviderSettings, {
      default: {},
      additionalProperties: false,
      ...withMessage(PROVIDER_NAME_MESSAGE),
    }),
  }),
  'ai-configuration': t.Object({
    budgets: t.Array(
      strictObject({
        scope: t.Union([t.Literal('tenant'), t.Literal('workspace'), t.Literal('user')]),
        period: t.Union([t.Literal('day'), t.Literal('month')]),
        unit: t.Union([t.Literal('tokens'), t.Literal('cost')]),
        limit: t.Number({ minimum: 0 }),
      }),
      { maxItems: 20, default: [], description: 'limits of AI usage for the tenant, or for each workspace or user' },
    ),
    prices: t.Record(
      t.String({ minLength: 1, maxLength: 200 }),
      strictObject({
        prompt: t.Number({ minimum: 0, maximum: 1e6 }),
        completion: t.Number({ minimum: 0, maximum: 1e6 }),
      }),
      { default: {}, description: 'by model, `*` for all others: price of one million prompt and completion tokens' },
    ),
  }),
  /** What mails say instead of what they say here (`mail/templates.ts`). */
  'mail-templates': t.Object({
    verification: templateSettings,
    passwordReset: templateSettings,
    invitation: templateSettings,
    message: templateSettings,
    newDevice: templateSettings,
    emailChanged: templateSettings,
  }),
  'workspace-configuration': t.Object({
    isActive: t.Boolean({ default: true }),
    creationPrivilegedRoles: nameList('roles that may create workspaces; empty: every user'),
    labels: nameList('labels that a workspace may have; empty: any'),
    allowNonLabeledWorkspaces: t.Boolean({ default: true }),
    restrictedLabels: nameList('labels that only admins of the tenant can assign to workspaces'),
    restrictedRoles: nameList('workspace roles that only admins of the tenant can assign'),
    restricted: t.Union([t.Literal('listed'), t.Literal('named')], {
      default: 'listed',
      description: 'named: also restricts every label and role that a rule, limitation or integration names',
    }),
  }),
  'payments-configuration': t.Object({
    isEnabled: t.Boolean({ default: false }),
    paymentSourceId: t.Optional(
      t.String({ maxLength: 128, description: 'id of the connection that processes payments' }),
    ),
    defaultCurrency: textMatching('^[A-Z]{3}$', 'Use an ISO 4217 currency code, such as USD.', {
      default: 'USD',
      description: 'ISO 4217',
    }),
    gracePeriodDays: t.Number({
      minimum: 0,
      maximum: 3_650,
      default: 3,
      description: 'number of days that a payment may be overdue',
    }),
    workspaceAdminsOnly: t.Optional(
      t.Boolean({
        description: 'whether only admins of a workspace can subscribe, check out and cancel for it; default: false',
      }),
    ),
    successUrl: pageUrl('redirect URL after a paid checkout'),
    cancelUrl: pageUrl('redirect URL after a checkout that was not paid'),
  }),
}
type TenantSettings = typeof tenantSettings

/** What a tenant has set, at once when it is known. Who changes a configuration does so by `changing(…, 'configurations')`. */
export const getSettings = <Key extends keyof TenantSettings>(tenant: Pick<Store, 'db' | 'remoteVersion'>, key: Key) =>
  cached(tenant, 'configurations', `settings ${key}`, async () => {
    const { metadata } = configurations
    const row = await tenant.db.select({ metadata }).from(configurations).where(eq(configurations.key, key)).get()
    return pickValidParts(tenantSettings[key], row?.metadata ?? {}) as Static<TenantSettings[Key]>
  })

/** What of it fits; a part that does not counts as not set. */
function pickValidParts(shape: TObject, values: Record<string, unknown>) {
  const valid = Object.entries(shape.properties).filter(([key, part]) => Value.Check(part, values[key]))
  return Value.Default(shape, Object.fromEntries(valid.map(([key]) => [key, values[key]])))
}
