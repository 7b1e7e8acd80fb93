import { and, asc, eq, lt } from 'drizzle-orm'
import { Problem } from '../../core/problem'
import type { Tx } from '../../storage/port'
import { addVaultKey, forgetVaultKeys, type VaultKeys } from '../../tenancy/secrets'
import { anyTenantNamed, listTenants, type Tenant } from '../../tenancy/tenants'
import { sealed } from './tables'
import { resealed } from './vault'

const SLICE = 50 // texts to a write

/** What was done: `lost` are texts that none of our keys opens, which stay as they are. */
export type Rotation = { key: number; tenants: number; sealed: number; lost: number; failed: Failure[] }
type Failure = { tenant: string; error: string }

/**
 * Encrypts everything in the vaults of all tenants with a new key, while they are served. The old key is forgotten only
 * when that is done for all of them; when it was interrupted, the same again goes on with it.
 */
export async function rotate(): Promise<Rotation> {
  const keys = await addVaultKey()
  const done: Rotation = { key: keys.current, tenants: 0, sealed: 0, lost: 0, failed: [] }
  for (const { id } of await listTenants()) {
    try {
      const { count, lost } = await resealAll(await anyTenantNamed(id), keys)
      done.tenants++
      done.sealed += count
      done.lost += lost
    } catch (error) {
      // Who was deleted meanwhile has nothing left to be sealed.
      if (!isMissing(error)) done.failed.push({ tenant: id, error: String(error) })
    }
  }
  if (!done.failed.length) await forgetVaultKeys(keys.current)
  return done
}

const isMissing = (error: unknown) => error instanceof Problem && error.code === 'TENANT_NOT_FOUND'

async function resealAll(tenant: Tenant, keys: VaultKeys) {
  for (let [count, lost] = [0, 0]; ; ) {
    const slice = await tenant.write(async (tx) => {
      await markKey(tx, keys.current)
      return resealSome(tx, tenant, keys, lost)
    })
    count += slice.count
    lost += slice.lost
    if (slice.count + slice.lost < SLICE) return { count, lost }
  }
}

/** From now on nothing is sealed here with an older key, by whatever process. */
export const markKey = (tx: Tx, key: number) =>
  tx.ask(
    `insert into versions (topic, version) values (?, ?) on conflict ("topic") do update set version = excluded.version
      where versions.version < excluded.version`,
    ['vault', key],
  )

async function resealSome(tx: Tx, tenant: Tenant, keys: VaultKeys, passed: number) {
  const { purpose, owner, name } = sealed
  const rows = await tx
    .select()
    .from(sealed)
    .where(lt(sealed.key, keys.current))
    .orderBy(asc(purpose), asc(owner), asc(name))
    .limit(SLICE)
    .offset(passed)
  let count = 0
  for (const row of rows) {
    const text = reopened(tenant, keys, row)
    if (text === undefined) continue
    const one = and(eq(purpose, row.purpose), eq(owner, row.owner), eq(name, row.name))
    await tx.update(sealed).set({ key: keys.current, text }).where(one)
    count++
  }
  return { count, lost: rows.length - count }
}

function reopened(...args: Parameters<typeof resealed>): string | undefined {
  try {
    return resealed(...args)
  } catch (error) {
    if (error instanceof Problem && error.code === 'SEALED_UNREADABLE') return
    throw error
  }
}
