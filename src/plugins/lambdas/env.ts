import { and, eq, notInArray } from 'drizzle-orm'
import { sealed } from '../../accounts/vault/tables'
import { open, type Place, type Vault } from '../../accounts/vault/vault'
import { invalid } from '../../core/problem'
import type { Tx } from '../../storage/port'
import type { Tenant } from '../../tenancy/tenants'
import type { NewLambda } from './shapes'

const MOST = 100
/** What values in the vault are for. */
export const PURPOSE = 'lambda'

const placeOf = (owner: string, name: string): Place => ({ purpose: PURPOSE, owner, name })

/** The names after a change: an object sets some and removes those that are null, a list keeps some. @throws 400 */
export function namesAfter(before: string[], change: NewLambda['env']): string[] {
  if (!change) return before
  if (Array.isArray(change)) {
    const unknown = change.find((name) => !before.includes(name))
    if (unknown !== undefined)
      invalid({ path: '/env', message: `"${unknown}" has no value yet. Send an object of values.` })
    return before.filter((name) => change.includes(name))
  }
  const names = [...new Set([...before, ...Object.keys(change)])].filter((name) => change[name] !== null).sort()
  if (names.length > MOST) invalid({ path: '/env', message: `A lambda has at most ${MOST} of these.` })
  return names
}

/** Keeps the values that are sent, and no others than these names'. */
export async function keepValues(tx: Tx, vault: Vault, owner: string, names: string[], change: NewLambda['env']) {
  if (!change) return
  const { purpose, owner: of, name } = sealed
  await tx.delete(sealed).where(and(eq(purpose, PURPOSE), eq(of, owner), notInArray(name, ['', ...names])))
  if (Array.isArray(change)) return
  for (const [key, value] of Object.entries(change))
    if (value !== null) await vault.seal(tx, placeOf(owner, key), value)
}

/** The values by their names. */
export async function valuesOf(tenant: Tenant, owner: string, names: string[]): Promise<Record<string, string>> {
  const values: Record<string, string> = {}
  for (const name of names) values[name] = (await open(tenant, placeOf(owner, name))) ?? ''
  return values
}
