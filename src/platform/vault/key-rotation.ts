import { and, asc, eq, lt } from 'drizzle-orm'
import { Problem } from '../../core/problem'
import type { Tx } from '../../storage/port'
import { addVaultKey, removeVaultKeysBefore, type VaultKeys } from '../../tenancy/installation-keys'
import { listTenants } from '../../tenancy/tenant-list'
import { getTenantAnyStatus, type Tenant } from '../../tenancy/tenants'
import { sealed } from './tables'
import { reencrypt } from './vault'

const REENCRYPT_BATCH_SIZE = 50 // texts per write

/**
 * The result of a rotation: `sealed` texts were encrypted again; `lost` texts cannot be decrypted and stay as they are.
 */
export type Rotation = { key: number; tenants: number; sealed: number; lost: number; failed: RotationFailure[] }
type RotationFailure = { tenant: string; error: string }

/**
 * Encrypts the vaults of all tenants with a new key, while they are in use. The old key is removed only when that is
 * done for all of them; another call resumes an interrupted rotation.
 */
export async function rotateVaultKey(): Promise<Rotation> {
  const keys = await addVaultKey()
  const rotation: Rotation = { key: keys.current, tenants: 0, sealed: 0, lost: 0, failed: [] }
  for (const { id } of await listTenants()) {
    try {
      const { count, lost } = await reencryptAll(await getTenantAnyStatus(id), keys)
      rotation.tenants++
      rotation.sealed += count
      rotation.lost += lost
    } catch (error) {
      // A tenant that was deleted meanwhile has no secrets any more.
      if (!isMissing(error)) rotation.failed.push({ tenant: id, error: String(error) })
    }
  }
  if (!rotation.failed.length) await removeVaultKeysBefore(keys.current)
  return rotation
}

const isMissing = (error: unknown) => error instanceof Problem && error.code === 'TENANT_NOT_FOUND'

async function reencryptAll(tenant: Tenant, keys: VaultKeys) {
  for (let [count, lost] = [0, 0]; ; ) {
    const batch = await tenant.write(async (tx) => {
      await setMinimumKey(tx, keys.current)
      return reencryptBatch(tx, tenant, keys, lost)
    })
    count += batch.count
    lost += batch.lost
    if (batch.count + batch.lost < REENCRYPT_BATCH_SIZE) return { count, lost }
  }
}

/** Sets the lowest key that processes may use in this tenant's vault. */
export const setMinimumKey = (tx: Tx, key: number) =>
  tx.query(
    `insert into versions (topic, version) values (?, ?) on conflict ("topic") do update set version = excluded.version
      where versions.version < excluded.version`,
    ['vault', key],
  )

async function reencryptBatch(tx: Tx, tenant: Tenant, keys: VaultKeys, skipped: number) {
  const { purpose, owner, name } = sealed
  const rows = await tx
    .select()
    .from(sealed)
    .where(lt(sealed.key, keys.current))
    .orderBy(asc(purpose), asc(owner), asc(name))
    .limit(REENCRYPT_BATCH_SIZE)
    .offset(skipped)
  let count = 0
  for (const row of rows) {
    const text = tryReencrypt(tenant, keys, row)
    if (text === undefined) continue
    const isRow = and(eq(purpose, row.purpose), eq(owner, row.owner), eq(name, row.name))
    await tx.update(sealed).set({ key: keys.current, text }).where(isRow)
    count++
  }
  return { count, lost: rows.length - count }
}

function tryReencrypt(...args: Parameters<typeof reencrypt>): string | undefined {
  try {
    return reencrypt(...args)
  } catch (error) {
    if (error instanceof Problem && error.code === 'SEALED_UNREADABLE') return
    throw error
  }
}
