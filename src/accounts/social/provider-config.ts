import { Problem } from '../../core/problem'
import { toProviderSecretRef } from '../../platform/settings/provider-secrets'
import { getSettings } from '../../platform/settings/tenant-settings'
import { openSecret } from '../../platform/vault/vault'
import { assertOutgoingAllowed } from '../../tenancy/outgoing-hold'
import type { Tenant } from '../../tenancy/tenants'
import { authSettings } from '../auth-settings'
import { providersByName } from './providers'
import { oidc } from './providers/oidc'
import type { OAuthProvider, ProviderConfig } from './providers/provider'

/** Returns the names of the providers by which users may sign in, sorted. */
export async function listProviders(tenant: Tenant): Promise<string[]> {
  const { providers } = await getSettings(tenant, authSettings)
  return Object.keys(providers)
    .filter((name) => findProviderKind(name, providers[name]!))
    .sort()
}

/**
 * Returns a provider as the tenant has configured it.
 * @throws 400 PROVIDER_NOT_CONFIGURED, 409 OUTGOING_HELD for a copy of a tenant
 */
export async function getProvider(
  tenant: Tenant,
  name: string,
): Promise<{ kind: OAuthProvider; setup: ProviderConfig }> {
  const { providers } = await getSettings(tenant, authSettings)
  const provider = Object.hasOwn(providers, name) ? providers[name] : undefined
  const kind = provider && findProviderKind(name, provider)
  if (!kind)
    throw new Problem(
      400,
      'PROVIDER_NOT_CONFIGURED',
      `The sign-in provider ${name.slice(0, 100)} is not set up. An admin can add it in auth-configuration.`,
    )
  await assertOutgoingAllowed(tenant)
  const { clientId, issuer, baseUrl, teamId, keyId } = provider
  const clientSecret = (await openSecret(tenant, toProviderSecretRef(name))) ?? undefined
  return { kind, setup: { tenant: tenant.tenant, name, clientId, clientSecret, issuer, baseUrl, teamId, keyId } }
}

const findProviderKind = (
  name: string,
  { kind, issuer }: { kind?: 'oidc'; issuer?: string },
): OAuthProvider | undefined =>
  kind !== 'oidc' && Object.hasOwn(providersByName, name) ? providersByName[name] : issuer ? oidc : undefined
