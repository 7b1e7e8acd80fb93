import type { Static, TObject } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import { eq } from 'drizzle-orm'
import { t } from 'elysia'
import { part, textMatching, webAddress, withMessage } from '../core/shapes'
import type { Store } from '../storage/port'
import { recall } from '../tenancy/memory'
import { configurations } from './settings/tables'

const names = (description: string) =>
  t.Array(t.String({ minLength: 1, maxLength: 100 }), { maxItems: 1_000, default: [], description })

/** An address to which a browser can be led: whole, without blanks, and without a name that could be taken for its host. */
export const PAGE = '^https?://[^\\s\\u0000-\\u001f/?#@\\\\]+([/?#][^\\s\\u0000-\\u001f]*)?$'
const page = (description: string) =>
  t.Optional(
    textMatching(PAGE, 'Write a whole address, such as https://app.example.com/paid.', {
      maxLength: 2_000,
      description,
    }),
  )
const PROVIDER_NAMES =
  'Name a provider with lower-case letters, digits and -, beginning with a letter (63 characters at most).'

/** By whom users may sign in. Its secret is not kept with it: see `settings/secrets.ts`. */
const Provider = part({
  clientId: t.String({ minLength: 1, maxLength: 500 }),
  clientSecret: t.Optional(t.Nullable(t.String({ maxLength: 2_000 }))),
  kind: t.Optional(t.Literal('oidc')),
  issuer: t.Optional(webAddress({ maxLength: 2_000 })),
  baseUrl: t.Optional(webAddress({ maxLength: 2_000 })),
})

const template = t.Optional(
  part({
    subject: t.Optional(t.String({ maxLength: 300 })),
    text: t.Optional(t.String({ maxLength: 10_000 })),
    html: t.Optional(t.String({ maxLength: 50_000, description: 'made of the text unless given' })),
    link: t.Optional(webAddress({ maxLength: 2_000, description: 'with {{token}} in it' })),
  }),
)

/** The settings of a tenant that the server goes by, by the key of their configuration, with what holds where none is set. */
export const settings = {
  'app-configuration': t.Object({
    websiteUrls: t.Array(t.String({ minLength: 1, maxLength: 2_000 }), {
      ...{ maxItems: 100, default: [] },
      description: 'the addresses of its websites: their pages may ask, and it answers at their hosts',
    }),
    contentEditors: names('roles of those who may write blocks, beside admins; empty: anybody who is signed in'),
  }),
  'auth-configuration': t.Object({
    allowSignup: t.Boolean({ default: true }),
    allowedReturnHosts: names('hosts to which a sign-in by a provider may lead'),
    providers: t.Record(textMatching('^[a-z][a-z0-9-]{0,62}$', PROVIDER_NAMES), Provider, {
      default: {},
      additionalProperties: false,
      ...withMessage(PROVIDER_NAMES),
    }),
  }),
  'ai-configuration': t.Object({
    budgets: t.Array(
      part({
        scope: t.Union([t.Literal('tenant'), t.Literal('workspace'), t.Literal('user')]),
        period: t.Union([t.Literal('day'), t.Literal('month')]),
        unit: t.Union([t.Literal('tokens'), t.Literal('cost')]),
        limit: t.Number({ minimum: 0 }),
      }),
      { maxItems: 20, default: [], description: 'what AI may take: of the tenant, or of each workspace or user' },
    ),
    prices: t.Record(
      t.String({ minLength: 1, maxLength: 200 }),
      part({ prompt: t.Number({ minimum: 0, maximum: 1e6 }), completion: t.Number({ minimum: 0, maximum: 1e6 }) }),
      { default: {}, description: 'of each model, and of all others as `*`: for a million tokens, in and out' },
    ),
  }),
  /** What mails say instead of what they say here (`mail/templates.ts`). */
  'mail-templates': t.Object({
    verification: template,
    passwordReset: template,
    invitation: template,
    message: template,
    newDevice: template,
    emailChanged: template,
  }),
  'workspace-configuration': t.Object({
    isActive: t.Boolean({ default: true }),
    creationPrivilegedRoles: names('roles of those who may make workspaces; empty: anybody'),
    labels: names('the labels that a workspace may have; empty: any'),
    allowNonLabeledWorkspaces: t.Boolean({ default: true }),
    restrictedLabels: names('labels that only admins of the tenant give to workspaces'),
    restrictedRoles: names('roles in workspaces that only admins of the tenant give'),
    restricted: t.Union([t.Literal('listed'), t.Literal('named')], {
      default: 'listed',
      description: 'named: also every label and role that a rule, limitation or integration names',
    }),
  }),
  'payments-configuration': t.Object({
    isEnabled: t.Boolean({ default: false }),
    paymentSourceId: t.Optional(t.String({ maxLength: 128, description: 'the connection by which payments are made' })),
    defaultCurrency: textMatching('^[A-Z]{3}$', 'Write the currency as a code of ISO 4217, such as USD.', {
      default: 'USD',
      description: 'ISO 4217',
    }),
    gracePeriodDays: t.Number({
      minimum: 0,
      maximum: 3_650,
      default: 3,
      description: 'how long a payment may be missing',
    }),
    workspaceAdminsOnly: t.Optional(
      t.Boolean({ description: 'only admins of a workspace subscribe, check out and cancel for it; default: false' }),
    ),
    successUrl: page('where a checkout leads that was paid'),
    cancelUrl: page('where one leads that was not'),
  }),
}
type Settings = typeof settings

/** What a tenant has set, at once when it is known. Who changes a configuration does so by `changing(…, 'configurations')`. */
export const settingsOf = <Key extends keyof Settings>(tenant: Pick<Store, 'db' | 'heard'>, key: Key) =>
  recall(tenant, 'configurations', `settings ${key}`, async () => {
    const { metadata } = configurations
    const row = await tenant.db.select({ metadata }).from(configurations).where(eq(configurations.key, key)).get()
    return fittingParts(settings[key], row?.metadata ?? {}) as Static<Settings[Key]>
  })

/** What of it fits; a part that does not counts as not set. */
function fittingParts(shape: TObject, given: Record<string, unknown>) {
  const fits = Object.entries(shape.properties).filter(([key, part]) => Value.Check(part, given[key]))
  return Value.Default(shape, Object.fromEntries(fits.map(([key]) => [key, given[key]])))
}
