import { and, eq, inArray } from 'drizzle-orm'
import { sealed } from '../../accounts/vault/tables'
import { open, type Place, type Vault } from '../../accounts/vault/vault'
import type { Tx } from '../../storage/port'
import type { Tenant } from '../../tenancy/tenants'

export const PURPOSE = 'connection'

type Secrets = Record<string, unknown>

const placeOf = (owner: string, name: string): Place => ({ purpose: PURPOSE, owner, name })

/** Keeps the secrets that are given, each by itself; those that are null are removed. */
export async function keepSecrets(tx: Tx, vault: Vault, owner: string, secrets: Secrets) {
  const gone = Object.keys(secrets).filter((name) => secrets[name] === null)
  const of = and(eq(sealed.purpose, PURPOSE), eq(sealed.owner, owner))
  if (gone.length) await tx.delete(sealed).where(and(of, inArray(sealed.name, gone)))
  for (const [name, secret] of Object.entries(secrets))
    if (secret !== null) await vault.seal(tx, placeOf(owner, name), JSON.stringify(secret))
}

/** The secrets of these names, as far as there are any. */
export async function openSecrets(tenant: Tenant, owner: string, names: string[]): Promise<Secrets> {
  const opened = await Promise.all(names.map(async (name) => [name, await open(tenant, placeOf(owner, name))] as const))
  return Object.fromEntries(opened.flatMap(([name, text]) => (text === null ? [] : [[name, JSON.parse(text)]])))
}
