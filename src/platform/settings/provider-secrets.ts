import { and, eq, notInArray } from 'drizzle-orm'
import type { FieldError } from '../../core/problem'
import type { Tx } from '../../storage/port'
import { sealed } from '../vault/tables'
import type { SecretRef, Vault } from '../vault/vault'

/** Returns the place in the vault of the secret by which a sign-in provider knows this installation. */
export const toProviderSecretRef = (provider: string): SecretRef => ({
  purpose: 'provider',
  owner: provider,
  name: 'clientSecret',
})

type Providers = Record<string, { clientSecret?: string | null } & Record<string, unknown>>
type Metadata = Record<string, unknown>

/** Returns the metadata of an `auth-configuration` without its secrets. */
export function redactSecrets(metadata: Metadata): Metadata {
  const { providers } = metadata as { providers?: Providers }
  if (!providers) return metadata
  const redacted = Object.entries(providers).map(([name, { clientSecret: _, ...provider }]) => [name, provider])
  return { ...metadata, providers: Object.fromEntries(redacted) }
}

/**
 * Returns an error for each provider whose secret would go to another server: whoever may change the address must know
 * the secret.
 */
export function listMovedSecrets(before: Metadata, after: Metadata, at: string): FieldError[] {
  const [known = {}, changed = {}] = [before.providers, after.providers] as (Providers | undefined)[]
  return Object.entries(changed)
    .filter(([name, provider]) => {
      const stored = Object.hasOwn(known, name) ? known[name]! : undefined
      return stored && provider.clientSecret === undefined && serverOf(stored) !== serverOf(provider)
    })
    .map(([name]) => ({
      path: `${at}/providers/${name}/clientSecret`,
      message: 'The server is another one now: send clientSecret again in the same request, or null to remove it.',
    }))
}

const serverOf = ({ issuer, baseUrl }: Providers[string]) => [issuer, baseUrl].map(originOf).join(' ')
const originOf = (url: unknown) => (typeof url === 'string' ? (URL.parse(url)?.origin ?? url) : '')

/**
 * Stores the secrets that were sent, keeps those of providers without a new one, and deletes those of other providers.
 */
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
