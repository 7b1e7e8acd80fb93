import { and, eq } from 'drizzle-orm'
import { now, toIsoString } from '../../core/clock'
import { deriveKeyBytes } from '../../core/crypto'
import { decrypt, encrypt } from '../../core/encryption'
import { Problem } from '../../core/problem'
import type { Db, RunQuery, Tx } from '../../storage/port'
import { getVaultKeys, type VaultKeys } from '../../tenancy/installation-keys'
import type { Tenant } from '../../tenancy/tenants'
import { sealed } from './tables'

/** The place of a secret: its purpose, its owner, and its name among the owner's secrets. */
export type SecretRef = { purpose: string; owner: string; name: string }

/** Reads and stores secrets in a transaction, together with its other writes. */
export type Vault = {
  seal(tx: Tx, ref: SecretRef, text: string): Promise<void>
  /** Returns a secret, or null when there is none, or no key decrypts it any more. */
  open(tx: Tx, ref: SecretRef): Promise<string | null>
}

/**
 * Encrypts a text for this tenant, and replaces the earlier one.
 * @throws 503 KEYS_UNAVAILABLE, BUSY during a key rotation
 */
export const sealSecret = (tenant: Tenant, ref: SecretRef, text: string) =>
  withVault(tenant, (tx, vault) => vault.seal(tx, ref, text))

/**
 * Runs a write that stores secrets. It is repeated with the new key when the keys are rotated meanwhile.
 * @throws 503 KEYS_UNAVAILABLE, BUSY during a key rotation
 */
export async function withVault<T>(tenant: Tenant, work: (tx: Tx, vault: Vault) => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    const keys = await getVaultKeys()
    const vault: Vault = {
      async seal(tx, ref, text) {
        if ((await getMinimumKey(tx)) > keys.current) throw new StaleVaultKey()
        const key = keys.current
        const row = { ...ref, key, text: sealText(tenant, keys, key, ref, text), updated: toIsoString(now()) }
        const { purpose, owner, name } = sealed
        await tx
          .insert(sealed)
          .values(row)
          .onConflictDoUpdate({ target: [purpose, owner, name], set: row })
      },
      async open(tx, ref) {
        const row = await tx.select().from(sealed).where(matchesRef(ref)).get()
        if (row && row.key > keys.current) throw new StaleVaultKey()
        try {
          return row ? openText(tenant, keys, row) : null
        } catch {
          return null
        }
      },
    }
    try {
      return await tenant.write((tx) => work(tx, vault))
    } catch (error) {
      if (!(error instanceof StaleVaultKey) || attempt === MAX_ATTEMPTS) throw error
    }
  }
}

/** Returns a secret, or null. @throws 500 SEALED_UNREADABLE when no key decrypts it, 503 KEYS_UNAVAILABLE */
export async function openSecret(tenant: Tenant, ref: SecretRef): Promise<string | null> {
  for (let attempt = 1; ; attempt++) {
    const keys = await getVaultKeys()
    const row = await tenant.db.select().from(sealed).where(matchesRef(ref)).get()
    if (!row) return null
    if (keys.all.has(row.key)) return openText(tenant, keys, row)
    // The secret was stored, or the keys were rotated, between the two reads.
    if (attempt === MAX_ATTEMPTS) throw unreadableSecret()
  }
}

/** Deletes all secrets of an owner. */
export const deleteSecrets = (tx: Tx, purpose: string, owner: string) =>
  tx
    .delete(sealed)
    .where(and(eq(sealed.purpose, purpose), eq(sealed.owner, owner)))
    .run()

type TenantRef = Pick<Tenant, 'tenant'>
type SealedRow = SecretRef & { key: number; text: string }

/** Returns a secret encrypted with the current key. @throws 500 SEALED_UNREADABLE when no key decrypts it */
export const reencrypt = (tenant: TenantRef, keys: VaultKeys, row: SealedRow): string =>
  sealText(tenant, keys, keys.current, row, openText(tenant, keys, row))

/**
 * Encrypts the secrets of a copied tenant for its new id, in the transaction that has them. Those that no key decrypts
 * are left out; returns their number.
 */
export async function resealForTenant(query: RunQuery, from: string, to: string): Promise<number> {
  const keys = await getVaultKeys()
  const rows = (await query('select purpose, owner, name, "key", "text" from sealed')) as [
    string,
    string,
    string,
    number,
    string,
  ][]
  let lost = 0
  for (const [purpose, owner, name, key, text] of rows) {
    const resealed = tryReseal(keys, { purpose, owner, name, key: Number(key), text }, from, to)
    if (resealed === undefined) {
      lost++
      await query('delete from sealed where purpose = ? and owner = ? and name = ?', [purpose, owner, name])
    } else
      await query('update sealed set "key" = ?, "text" = ? where purpose = ? and owner = ? and name = ?', [
        ...[keys.current, resealed],
        ...[purpose, owner, name],
      ])
  }
  return lost
}

/** A row of the vault as a copy of the database has it. */
export type CopiedSecret = { purpose: string; owner: string; name: string; key: number; text: string }

/** Returns a function that decrypts the secrets of a tenant; one that no key decrypts is undefined. */
export async function createSecretOpener(tenant: string): Promise<(row: CopiedSecret) => string | undefined> {
  const keys = await getVaultKeys()
  return (row) => {
    try {
      return openText({ tenant }, keys, row)
    } catch {
      return // its key is lost, and so is the secret
    }
  }
}

/** Returns a function that encrypts the readable text of a secret with the current key of this installation. */
export async function createSecretSealer(): Promise<(row: CopiedSecret, tenant: string) => CopiedSecret> {
  const keys = await getVaultKeys()
  return (row, tenant) => ({ ...row, key: keys.current, text: sealText({ tenant }, keys, keys.current, row, row.text) })
}

function tryReseal(keys: VaultKeys, row: SealedRow, from: string, to: string): string | undefined {
  try {
    return sealText({ tenant: to }, keys, keys.current, row, openText({ tenant: from }, keys, row))
  } catch (error) {
    if (error instanceof Problem && error.code === 'SEALED_UNREADABLE') return
    throw error
  }
}

const MAX_ATTEMPTS = 3

/** Returns the number of the oldest key that may still be used here; 0 for a tenant whose vault was never rotated. */
async function getMinimumKey(db: Db): Promise<number> {
  const [row] = await db.query('select version from versions where topic = ?', ['vault'])
  return Number(row?.[0] ?? 0)
}

class StaleVaultKey extends Problem {
  constructor() {
    super(503, 'BUSY', 'The vault key was rotated just now. Try again.', { headers: { 'retry-after': '1' } })
  }
}

/** Encrypts a text bound to its place, so that two texts in the database cannot be swapped. */
const sealText = (tenant: TenantRef, keys: VaultKeys, key: number, ref: SecretRef, text: string) =>
  encrypt(deriveTenantKey(keys, key, tenant), text, toAad(tenant, ref)).toString('base64')

function openText(tenant: TenantRef, keys: VaultKeys, { key, text, ...ref }: SealedRow) {
  try {
    return decrypt(deriveTenantKey(keys, key, tenant), Buffer.from(text, 'base64'), toAad(tenant, ref))
  } catch {
    throw unreadableSecret()
  }
}

/** Derives the key of a tenant by HKDF (RFC 5869), which reveals nothing about the keys of others. */
const deriveTenantKey = (keys: VaultKeys, key: number, { tenant }: TenantRef) =>
  deriveKeyBytes(keys.all.get(key) ?? '', tenant, 'vault')

const toAad = ({ tenant }: TenantRef, { purpose, owner, name }: SecretRef) =>
  JSON.stringify([tenant, purpose, owner, name])

const matchesRef = ({ purpose, owner, name }: SecretRef) =>
  and(eq(sealed.purpose, purpose), eq(sealed.owner, owner), eq(sealed.name, name))

const unreadableSecret = () =>
  new Problem(
    500,
    'SEALED_UNREADABLE',
    'This value was encrypted with a key that is no longer available. Save it again.',
  )
