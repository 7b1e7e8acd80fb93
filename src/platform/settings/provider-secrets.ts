import { and, eq, notInArray } from 'drizzle-orm'
import type { Tx } from '../../storage/port'
import { sealed } from '../vault/tables'
import type { SecretRef, Vault } from '../vault/vault'

/** Where the vault has the secret by which this installation is known to a provider of sign-ins. */
export const toProviderSecretRef = (provider: string): SecretRef => ({
  purpose: 'provider',
  owner: provider,
  name: 'clientSecret',
})

type Providers = Record<string, { clientSecret?: string | null } & Record<string, unknown>>
type Metadata = Record<string, unknown>

/** The metadata of an `auth-configuration` without its secrets. */
export function redactSecrets(metadata: Metadata): Metadata {
  const { providers } = metadata as { providers?: Providers }
  if (!providers) return metadata
  const redacted = Object.entries(providers).map(([name, { clientSecret: _, ...provider }]) => [name, provider])
  return { ...metadata, providers: Object.fromEntries(redacted) }
}

/** Keeps the secrets of what was sent; of a provider without one, what there is already. Those of others are removed. */
export async function storeSecrets(tx: Tx, vault: Vault, metadata: Metadata) {
  const { providers = {} } = metadata as { providers?: Providers }
  const clearedNames = Object.keys(providers).filter((name) => providers[name]!.clientSecret === null)
  const keptNames = Object.keys(providers).filter((name) => !clearedNames.includes(name))
  await tx
    .delete(sealed)
    .where(and(eq(sealed.purpose, toProviderSecretRef('').purpose), notInArray(sealed.owner, keptNames)))
  for (const [name, { clientSecret }] of Object.entries(providers))
    if (clientSecret) await vault.seal(tx, toProviderSecretRef(name), clientSecret)
}
