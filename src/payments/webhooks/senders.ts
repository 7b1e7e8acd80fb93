import { resolveAllOfKind } from '../../connections/resolver'
import type { Tenant } from '../../tenancy/tenants'
import { providerOf } from '../providers'
import type { ProviderKind } from '../providers/provider'

/**
 * Returns the ids of the connections that may have sent an event: the one that verified it, and those that share a webhook
 * secret with it, such as a new connection for the same endpoint of the provider.
 */
export async function connectionsSharingSecret(tenant: Tenant, kind: ProviderKind, verifiedBy: string | null) {
  const all = await resolveAllOfKind(tenant, kind)
  const { webhookSecrets } = providerOf(kind)
  const verifier = all.find(({ _id }) => _id === verifiedBy)
  const secrets = new Set(verifier ? webhookSecrets(verifier) : [])
  const sharing = all.filter((connection) => webhookSecrets(connection).some((secret) => secrets.has(secret)))
  return new Set([...(verifiedBy ? [verifiedBy] : []), ...sharing.map(({ _id }) => _id)])
}
