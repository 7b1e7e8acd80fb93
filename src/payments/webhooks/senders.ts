import { resolveAllOfKind } from '../../connections/resolver'
import type { Tenant } from '../../tenancy/tenants'
import { providerOf } from '../providers'
import type { ProviderKind } from '../providers/provider'

/**
 * The connections by whose webhook secrets an event counts that one of them has verified: itself, and those that share a
 * secret with it, as after a connection was made anew for the same endpoint of the provider.
 */
export async function connectionsSharingSecret(tenant: Tenant, kind: ProviderKind, verifiedBy: string | null) {
  const all = await resolveAllOfKind(tenant, kind)
  const { webhookSecrets } = providerOf(kind)
  const verifier = all.find(({ _id }) => _id === verifiedBy)
  const secrets = new Set(verifier ? webhookSecrets(verifier) : [])
  const sharing = all.filter((opened) => webhookSecrets(opened).some((secret) => secrets.has(secret)))
  return new Set([...(verifiedBy ? [verifiedBy] : []), ...sharing.map(({ _id }) => _id)])
}
