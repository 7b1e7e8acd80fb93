import { and, eq, notInArray } from 'drizzle-orm'
import type { Tx } from '../../storage/port'
import { sealed } from '../vault/tables'
import type { Place, Vault } from '../vault/vault'

/** Where the vault has the secret by which this installation is known to a provider of sign-ins. */
export const secretOf = (provider: string): Place => ({ purpose: 'provider', owner: provider, name: 'clientSecret' })

type Providers = Record<string, { clientSecret?: string | null } & Record<string, unknown>>
type Metadata = Record<string, unknown>

/** The metadata of an `auth-configuration` without its secrets. */
export function withoutSecrets(metadata: Metadata): Metadata {
  const { providers } = metadata as { providers?: Providers }
  if (!providers) return metadata
  const told = Object.entries(providers).map(([name, { clientSecret: _, ...provider }]) => [name, provider])
  return { ...metadata, providers: Object.fromEntries(told) }
}

/** Keeps the secrets of what was sent; of a provider without one, what there is already. Those of others are removed. */
export async function keepSecrets(tx: Tx, vault: Vault, metadata: Metadata) {
  const { providers = {} } = metadata as { providers?: Providers }
  const cleared = Object.keys(providers).filter((name) => providers[name]!.clientSecret === null)
  const kept = Object.keys(providers).filter((name) => !cleared.includes(name))
  await tx.delete(sealed).where(and(eq(sealed.purpose, secretOf('').purpose), notInArray(sealed.owner, kept)))
  for (const [name, { clientSecret }] of Object.entries(providers))
    if (clientSecret) await vault.seal(tx, secretOf(name), clientSecret)
}
