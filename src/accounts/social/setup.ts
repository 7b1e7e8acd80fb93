import { Problem } from '../../core/problem'
import type { Tenant } from '../../tenancy/tenants'
import { settingsOf } from '../settings'
import { secretOf } from '../settings/secrets'
import { open } from '../vault/vault'
import type { Kind, Setup } from './providers/kind'
import { kinds } from './providers/kinds'
import { oidc } from './providers/oidc'

/** The names of the providers by which users may sign in. */
export async function list(tenant: Tenant): Promise<string[]> {
  const { providers } = await settingsOf(tenant, 'auth-configuration')
  return Object.keys(providers)
    .filter((name) => kindOf(name, providers[name]!))
    .sort()
}

/** A provider as the tenant has set it up. @throws 400 PROVIDER_NOT_CONFIGURED */
export async function providerOf(tenant: Tenant, name: string): Promise<{ kind: Kind; setup: Setup }> {
  const { providers } = await settingsOf(tenant, 'auth-configuration')
  const provider = Object.hasOwn(providers, name) ? providers[name] : undefined
  const kind = provider && kindOf(name, provider)
  if (!kind)
    throw new Problem(
      400,
      'PROVIDER_NOT_CONFIGURED',
      `${name.slice(0, 100)} is not set up for signing in here. An admin can set it up in auth-configuration.`,
    )
  const { clientId, issuer, baseUrl } = provider
  const clientSecret = (await open(tenant, secretOf(name))) ?? undefined
  return { kind, setup: { tenant: tenant.tenant, name, clientId, clientSecret, issuer, baseUrl } }
}

const kindOf = (name: string, { kind, issuer }: { kind?: 'oidc'; issuer?: string }): Kind | undefined =>
  kind !== 'oidc' && Object.hasOwn(kinds, name) ? kinds[name] : issuer ? oidc : undefined
