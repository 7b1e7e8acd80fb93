import { hkdfSync } from 'node:crypto'
import { and, eq } from 'drizzle-orm'
import { iso, now } from '../../core/clock'
import { decrypted, encrypted } from '../../core/encryption'
import { Problem } from '../../core/problem'
import type { Db, Tx } from '../../storage/port'
import { type VaultKeys, vaultKeys } from '../../tenancy/secrets'
import type { Tenant } from '../../tenancy/tenants'
import { sealed } from './tables'

/** Where a secret text is kept: what it is for, whose it is, and which of theirs. */
export type Place = { purpose: string; owner: string; name: string }

/** Keeps texts in a transaction, together with what else is written in it. */
export type Vault = { seal(tx: Tx, place: Place, text: string): Promise<void> }

/** Keeps a text where only this tenant of this installation can read it, in the place of what was there. */
export const seal = (tenant: Tenant, place: Place, text: string) =>
  sealing(tenant, (tx, vault) => vault.seal(tx, place, text))

/** A write that keeps secrets, too. Where the keys are changed meanwhile it is done once more, with the new one. */
export async function sealing<T>(tenant: Tenant, work: (tx: Tx, vault: Vault) => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    const keys = await vaultKeys()
    const vault: Vault = {
      async seal(tx, place, text) {
        if ((await markOf(tx)) > keys.current) throw new Outdated()
        const key = keys.current
        const row = { ...place, key, text: closed(tenant, keys, key, place, text), updated: iso(now()) }
        const { purpose, owner, name } = sealed
        await tx
          .insert(sealed)
          .values(row)
          .onConflictDoUpdate({ target: [purpose, owner, name], set: row })
      },
    }
    try {
      return await tenant.write((tx) => work(tx, vault))
    } catch (error) {
      if (!(error instanceof Outdated) || attempt === ATTEMPTS) throw error
    }
  }
}

/** The text that was kept, or null. @throws 500 for one that none of our keys opens */
export async function open(tenant: Tenant, place: Place): Promise<string | null> {
  for (let attempt = 1; ; attempt++) {
    const keys = await vaultKeys()
    const row = await tenant.db.select().from(sealed).where(at(place)).get()
    if (!row) return null
    if (keys.all.has(row.key)) return opened(tenant, keys, row)
    // It was sealed, or the keys were changed, between the two.
    if (attempt === ATTEMPTS) throw unreadable()
  }
}

/** Removes all that was kept for an owner. */
export const discardSealed = (tx: Tx, purpose: string, owner: string) =>
  tx
    .delete(sealed)
    .where(and(eq(sealed.purpose, purpose), eq(sealed.owner, owner)))
    .run()

type Of = Pick<Tenant, 'tenant'>
type Sealed = Place & { key: number; text: string }

/** The same text under another key. */
export const resealed = (tenant: Of, keys: VaultKeys, row: Sealed): string =>
  closed(tenant, keys, keys.current, row, opened(tenant, keys, row))

const ATTEMPTS = 3

/** The number of the oldest key that may still be used here; a tenant without one was never sealed anew. */
async function markOf(db: Db): Promise<number> {
  const [row] = await db.ask('select version from versions where topic = ?', ['vault'])
  return Number(row?.[0] ?? 0)
}

class Outdated extends Problem {
  constructor() {
    super(503, 'BUSY', 'The keys of the vault were changed just now. Try again.', { headers: { 'retry-after': '1' } })
  }
}

/** Bound to its place, so that nobody can exchange two texts in the database. */
const closed = (tenant: Of, keys: VaultKeys, key: number, place: Place, text: string) =>
  encrypted(keyOf(keys, key, tenant), text, boundTo(tenant, place)).toString('base64')

function opened(tenant: Of, keys: VaultKeys, { key, text, ...place }: Sealed) {
  try {
    return decrypted(keyOf(keys, key, tenant), Buffer.from(text, 'base64'), boundTo(tenant, place))
  } catch {
    throw unreadable()
  }
}

/** HKDF (RFC 5869): the key of a tenant tells nothing about those of others. */
const keyOf = (keys: VaultKeys, key: number, { tenant }: Of) =>
  new Uint8Array(hkdfSync('sha256', keys.all.get(key) ?? '', tenant, 'vault', 32))

const boundTo = ({ tenant }: Of, { purpose, owner, name }: Place) => JSON.stringify([tenant, purpose, owner, name])

const at = ({ purpose, owner, name }: Place) =>
  and(eq(sealed.purpose, purpose), eq(sealed.owner, owner), eq(sealed.name, name))

const unreadable = () =>
  new Problem(
    500,
    'SEALED_UNREADABLE',
    'This was encrypted with another key than this installation has. Store it anew.',
  )
