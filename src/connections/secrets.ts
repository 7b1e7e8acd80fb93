import { and, eq, inArray, ne } from 'drizzle-orm'
import { sealed } from '../platform/vault/tables'
import { openSecret, type SecretRef, type Vault } from '../platform/vault/vault'
import type { Db, Tx } from '../storage/port'
import type { Tenant } from '../tenancy/tenants'

export const VAULT_PURPOSE = 'connection'

type Secrets = Record<string, unknown>

const toSecretRef = (owner: string, name: string): SecretRef => ({ purpose: VAULT_PURPOSE, owner, name })

/** Seals each secret separately; a secret that is null is removed. */
export async function storeSecrets(tx: Tx, vault: Vault, owner: string, secrets: Secrets) {
  const removedNames = Object.keys(secrets).filter((name) => secrets[name] === null)
  const condition = and(eq(sealed.purpose, VAULT_PURPOSE), eq(sealed.owner, owner))
  if (removedNames.length) await tx.delete(sealed).where(and(condition, inArray(sealed.name, removedNames)))
  for (const [name, secret] of Object.entries(secrets))
    if (secret !== null) await vault.seal(tx, toSecretRef(owner, name), JSON.stringify(secret))
}

/** Returns the stored secrets among these names. */
export async function readSecrets(tenant: Tenant, owner: string, names: string[]): Promise<Secrets> {
  const entries = await Promise.all(
    names.map(async (name) => [name, await openSecret(tenant, toSecretRef(owner, name))] as const),
  )
  return Object.fromEntries(entries.flatMap(([name, text]) => (text === null ? [] : [[name, JSON.parse(text)]])))
}

/** Returns the names of the stored secrets of each of these connections, in their order. */
export async function listSecretNames(db: Pick<Db, 'select'>, owners: string[]): Promise<string[][]> {
  const { purpose, owner, name } = sealed
  const rows = await db
    .select({ owner, name })
    .from(sealed)
    .where(and(eq(purpose, VAULT_PURPOSE), inArray(owner, owners), ne(name, '')))
    .orderBy(owner, name)
  return owners.map((one) => rows.filter((row) => row.owner === one).map((row) => row.name))
}
