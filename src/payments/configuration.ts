import { eq } from 'drizzle-orm'
import type { Ctx } from '../accounts/guard'
import { PAGE, settingsOf } from '../accounts/settings'
import { configurations } from '../accounts/settings/tables'
import * as kept from '../content/configurations'
import type { Answer } from '../core/etag'
import { invalid, missing, Problem } from '../core/problem'
import type { Opened } from '../plugins/connections/kinds'
import { found, withSecrets } from '../plugins/connections/opening'
import type { Tenant } from '../tenancy/tenants'
import { currencyOf } from './money'
import type { Provider, ProviderKind } from './providers/provider'
import { isProviderKind, providerKinds, providerOf } from './providers/providers'

const KEY = 'payments-configuration'

type Metadata = Record<string, unknown>

/** What the tenant has set for payments, over what holds where it has set nothing. */
export async function get(ctx: Ctx) {
  const { metadata } = configurations
  const row = await ctx.db.select({ metadata }).from(configurations).where(eq(configurations.key, KEY)).get()
  return { key: KEY as typeof KEY, metadata: { ...row?.metadata, ...(await settingsOf(ctx, KEY)) } as Metadata }
}

/** Changes the keys that it mentions; `null` takes one away. @throws 400 INVALID_PAYMENTS_CONFIGURATION for addresses */
export async function change(ctx: Ctx, { metadata = {} }: { metadata?: Metadata }, answer: Answer) {
  for (const name of ['successUrl', 'cancelUrl'] as const) {
    const url = metadata[name]
    if (url === undefined || url === null || isPage(url)) continue
    const message = `${name} must be an absolute address with http or https, such as https://app.example.com/paid.`
    const details = [{ path: `/metadata/${name}`, message }]
    throw new Problem(400, 'INVALID_PAYMENTS_CONFIGURATION', message, { details })
  }
  const { defaultCurrency: sent } = metadata
  const currency = currencyOf(sent)
  if (typeof sent === 'string' && !currency)
    invalid({ path: '/metadata/defaultCurrency', message: `"${sent}" is no currency of ISO 4217.` })
  const changes = { metadata: currency ? { ...metadata, defaultCurrency: currency } : metadata }
  await kept.change(ctx, KEY, changes, answer)
  return get(ctx)
}

const pages = new RegExp(PAGE)

/** Refuses a connection that cannot take payments, before a customer meets it. @throws 400 INVALID_PAYMENTS_CONFIGURATION */
export async function validatePaymentSource(ctx: Ctx, { paymentSourceId: id }: Metadata) {
  if (typeof id !== 'string' || !id) return
  const row = id.includes('\0') ? undefined : await found(ctx.db, id).catch(unlessMissing)
  if (row && isProviderKind(row.kind)) return
  const message = row
    ? `The connection "${row.name}" is of the kind ${row.kind}. Choose one of the kind ${providerKinds.join(', ')}.`
    : `There is no integration source "${id.slice(0, 128)}". Create one of the kind ${providerKinds.join(', ')} first.`
  const details = [{ path: '/metadata/paymentSourceId', message }]
  throw new Problem(400, 'INVALID_PAYMENTS_CONFIGURATION', message, { details })
}

/** Whether something is an address to which a browser can be led. */
export function isPage(url: unknown): url is string {
  return typeof url === 'string' && url.length <= 2_000 && pages.test(url) && !!URL.parse(url)
}

/** A provider, and the connection by which it is asked. */
export type Source = { opened: Opened<ProviderKind>; provider: Provider; kind: ProviderKind }

/** By whom new subscriptions are paid. @throws 500 PAYMENTS_NOT_CONFIGURED, 400 UNSUPPORTED_PROVIDER */
export async function source(tenant: Tenant): Promise<Source> {
  const { isEnabled, paymentSourceId } = await settingsOf(tenant, KEY)
  const row = isEnabled && paymentSourceId ? await found(tenant.db, paymentSourceId).catch(unlessMissing) : undefined
  if (!row) {
    const message = 'Payments are not set up here. An administrator has to enable them, and say by which connection.'
    throw new Problem(500, 'PAYMENTS_NOT_CONFIGURED', message)
  }
  if (!isProviderKind(row.kind)) {
    const message = `Payments can't be made by a connection of the kind ${row.kind}, but by ${providerKinds.join(', ')}.`
    throw new Problem(400, 'UNSUPPORTED_PROVIDER', message)
  }
  return {
    opened: (await withSecrets(tenant, row)) as Source['opened'],
    provider: providerOf(row.kind),
    kind: row.kind,
  }
}

const unlessMissing = (error: unknown) => {
  if (error instanceof Problem && error.status === 404) return undefined
  throw error
}

/** By whom a subscription is paid already. @throws 404 where that connection is gone */
export async function sourceOf(
  tenant: Tenant,
  { providerKind: kind, providerSourceId: id }: { providerKind: ProviderKind | null; providerSourceId: string | null },
): Promise<Source> {
  if (!kind || !id) return missing('integration source')
  const row = await found(tenant.db, id)
  if (row.kind !== kind) return missing('integration source')
  return { opened: (await withSecrets(tenant, row)) as Source['opened'], provider: providerOf(kind), kind }
}
