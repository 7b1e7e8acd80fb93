import { and, eq, notInArray } from 'drizzle-orm'
import { badRequest } from '../core/problem'
import { sealed } from '../platform/vault/tables'
import { openSecret, type SecretRef, type Vault } from '../platform/vault/vault'
import type { Tx } from '../storage/port'
import type { Tenant } from '../tenancy/tenants'
import type { NewLambda } from './shapes'

const MAX_VARIABLES = 100
/** The purpose of the values in the vault. */
export const VAULT_PURPOSE = 'lambda'

const toSecretRef = (owner: string, name: string): SecretRef => ({ purpose: VAULT_PURPOSE, owner, name })

/**
 * Returns the names after a change: an object sets names and removes those with null, a list keeps names.
 * @throws 400
 */
export function mergeNames(before: string[], change: NewLambda['env']): string[] {
  if (!change) return before
  if (Array.isArray(change)) {
    const unknown = change.find((name) => !before.includes(name))
    if (unknown !== undefined)
      badRequest({ path: '/env', message: `"${unknown}" has no value yet. Send an object with its value.` })
    return before.filter((name) => change.includes(name))
  }
  const names = [...new Set([...before, ...Object.keys(change)])].filter((name) => change[name] !== null).sort()
  if (names.length > MAX_VARIABLES)
    badRequest({ path: '/env', message: `A lambda can have at most ${MAX_VARIABLES} environment variables.` })
  return names
}

/** Stores the sent values, and deletes the values of all names that are not in `names`. */
export async function storeValues(tx: Tx, vault: Vault, owner: string, names: string[], change: NewLambda['env']) {
  if (!change) return
  const { purpose, owner: ownerColumn, name } = sealed
  await tx
    .delete(sealed)
    .where(and(eq(purpose, VAULT_PURPOSE), eq(ownerColumn, owner), notInArray(name, ['', ...names])))
  if (Array.isArray(change)) return
  for (const [key, value] of Object.entries(change))
    if (value !== null) await vault.seal(tx, toSecretRef(owner, key), value)
}

/** Returns the values by name. */
export async function readValues(tenant: Tenant, owner: string, names: string[]): Promise<Record<string, string>> {
  const values: Record<string, string> = {}
  for (const name of names) values[name] = (await openSecret(tenant, toSecretRef(owner, name))) ?? ''
  return values
}
