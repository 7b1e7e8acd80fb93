import { eq } from 'drizzle-orm'
import type { Ctx } from '../accounts/context'
import type { ResolvedConnection } from '../connections/kinds/index'
import { getConnection, resolveConnection } from '../connections/resolver'
import * as contentConfigurations from '../content/configurations'
import { etagOf } from '../core/etag'
import { badRequest, notFound, Problem } from '../core/problem'
import type { IfMatch } from '../core/response-headers'
import { configurations } from '../platform/settings/tables'
import { getSettings } from '../platform/settings/tenant-settings'
import { assertOutgoingAllowed } from '../tenancy/outgoing-hold'
import type { Tenant } from '../tenancy/tenants'
import { findConnectedKind, listAmountWarnings } from './amounts'
import { parseCurrency } from './money'
import { PAGE_URL_PATTERN, paymentsSettings } from './payments-settings'
import { isProviderKind, providerKinds, providerOf } from './providers'
import type { Provider, ProviderKind } from './providers/provider'

const CONFIGURATION_KEY = paymentsSettings.key

type Metadata = Record<string, unknown>

/** Returns the payments configuration of the tenant, with defaults for what it has not set. */
export async function get(ctx: Ctx) {
  const { metadata, version, updated } = configurations
  const row = await ctx.db
    .select({ metadata, version, updated })
    .from(configurations)
    .where(eq(configurations.key, CONFIGURATION_KEY))
    .get()
  return {
    value: {
      key: CONFIGURATION_KEY as typeof CONFIGURATION_KEY,
      metadata: { ...row?.metadata, ...(await getSettings(ctx, paymentsSettings)) } as Metadata,
    },
    version: etagOf(row?.version ?? 0, row?.updated ?? 0),
  }
}

/** Changes the given keys; `null` removes one. @throws what `validatePaymentsConfiguration` throws */
export async function change(ctx: Ctx, { metadata = {} }: { metadata?: Metadata }, options: IfMatch) {
  const currency = parseCurrency(metadata.defaultCurrency)
  const changes = { metadata: currency ? { ...metadata, defaultCurrency: currency } : metadata }
  const { value } = await contentConfigurations.update(ctx, CONFIGURATION_KEY, changes, options)
  const warnings = [...(value.warnings ?? []), ...(await listAmountWarnings(ctx.db, await findConnectedKind(ctx)))]
  const changed = await get(ctx)
  return { ...changed, value: { ...changed.value, ...(warnings.length && { warnings }) } }
}

/**
 * Validates a payments configuration, whichever route it comes by. The shape of the settings checks the types.
 * @throws 400 INVALID_INPUT for currencies, INVALID_PAYMENTS_CONFIGURATION for redirect URLs and connections
 */
export async function validatePaymentsConfiguration(ctx: Ctx, metadata: Metadata) {
  assertRedirectUrls(metadata)
  assertCurrency(metadata)
  await assertPaymentSource(ctx, metadata)
}

function assertRedirectUrls(metadata: Metadata) {
  for (const name of ['successUrl', 'cancelUrl'] as const) {
    const url = metadata[name]
    if (url === undefined || url === null || isRedirectUrl(url)) continue
    throw invalidConfiguration(
      name,
      `${name} must be an absolute http or https URL, such as https://app.example.com/paid.`,
    )
  }
}

function assertCurrency({ defaultCurrency: sent }: Metadata) {
  if (typeof sent === 'string' && !parseCurrency(sent))
    badRequest({ path: '/metadata/defaultCurrency', message: `"${sent}" is not an ISO 4217 currency.` })
}

async function assertPaymentSource(ctx: Ctx, { paymentSourceId: id }: Metadata) {
  if (typeof id !== 'string' || !id) return
  const row = await getConnection(ctx.db, id).catch(undefinedIfNotFound)
  if (row && isProviderKind(row.kind)) return
  const message = row
    ? `The connection "${row.name}" is of kind ${row.kind}. Use one of these kinds: ${providerKinds.join(', ')}.`
    : `Unknown integration source "${id.slice(0, 128)}". Create one of these kinds first: ${providerKinds.join(', ')}.`
  throw invalidConfiguration('paymentSourceId', message)
}

const invalidConfiguration = (name: string, message: string) =>
  new Problem(400, 'INVALID_PAYMENTS_CONFIGURATION', message, { details: [{ path: `/metadata/${name}`, message }] })

const redirectUrlPattern = new RegExp(PAGE_URL_PATTERN)

/** Returns whether a value is a URL that a browser can be redirected to. */
export function isRedirectUrl(url: unknown): url is string {
  return typeof url === 'string' && url.length <= 2_000 && redirectUrlPattern.test(url) && !!URL.parse(url)
}

/** A provider, and the connection to call it through. */
export type ConnectedProvider = { connection: ResolvedConnection<ProviderKind>; provider: Provider; kind: ProviderKind }

/** Returns the provider of new subscriptions. @throws 500 PAYMENTS_NOT_CONFIGURED, 400 UNSUPPORTED_PROVIDER */
export async function getActiveProvider(tenant: Tenant): Promise<ConnectedProvider> {
  const { isEnabled, paymentSourceId } = await getSettings(tenant, paymentsSettings)
  const row =
    isEnabled && paymentSourceId
      ? await getConnection(tenant.db, paymentSourceId).catch(undefinedIfNotFound)
      : undefined
  if (!row) {
    const message = 'Payments are not configured. An administrator must enable them and choose a connection.'
    throw new Problem(500, 'PAYMENTS_NOT_CONFIGURED', message)
  }
  if (!isProviderKind(row.kind)) {
    const message = `Connections of kind ${row.kind} do not support payments. Supported: ${providerKinds.join(', ')}.`
    throw new Problem(400, 'UNSUPPORTED_PROVIDER', message)
  }
  return connectProvider(tenant, row.kind, row._id)
}

/**
 * Returns the provider of a connection.
 * @throws 404 when there is no connection of this kind with the id, 409 OUTGOING_HELD for a copy of a tenant
 */
async function connectProvider(tenant: Tenant, kind: ProviderKind, id: string): Promise<ConnectedProvider> {
  await assertOutgoingAllowed(tenant)
  return { connection: await resolveConnection(tenant, id, kind), provider: providerOf(kind), kind }
}

/** Returns undefined for a 404, and throws any other error. */
export const undefinedIfNotFound = (error: unknown) => {
  if (error instanceof Problem && error.status === 404) return undefined
  throw error
}

/** Returns the provider of an existing subscription. @throws 404 when its connection was removed or changed its kind */
export async function getSubscriptionProvider(
  tenant: Tenant,
  { providerKind: kind, providerSourceId: id }: { providerKind: ProviderKind | null; providerSourceId: string | null },
): Promise<ConnectedProvider> {
  return kind && id ? connectProvider(tenant, kind, id) : notFound('integration source')
}
