import { and, eq, inArray, lte } from 'drizzle-orm'
import { config } from '../config'
import { now, toIsoString } from '../core/clock'
import { Problem } from '../core/problem'
import type { Tx } from '../storage/port'
import { registry } from './registry'
import { remains, tenants } from './tables'

/** Before the address of contents that are being removed. */
const REMOVING = 'removing '

/** The contents of a deleted tenant's files in the store of ATOLL_FILES_URL. */
export type ContentRemains = { uid: string; tenant: string }

/** Returns the address below which the store of ATOLL_FILES_URL has the contents of tenants; undefined without one. */
const baseAddress = () => config.ATOLL_FILES_URL && `${config.ATOLL_FILES_URL.replace(/\/+$/, '')}/`

/** Records that the contents of a tenant stay in the store, to be removed later. Those in its folder need no record. */
export async function recordContents(tx: Tx, { id, uid }: { id: string; uid: string }) {
  const base = baseAddress()
  if (base) await tx.insert(remains).values({ uid, home: base + id, since: toIsoString(now()) })
}

/**
 * Puts off the removal of the contents that an earlier tenant of an id left, because there will be one again.
 * @throws 409 TENANT_EXISTS while they are being removed
 */
export async function keepContents(tx: Tx, id: string) {
  const address = baseAddress() && `${baseAddress()}${id}`
  if (!address) return
  if (await tx.$count(remains, eq(remains.home, REMOVING + address))) {
    const message = `The files of an earlier tenant "${id}" are still being removed. Choose another id, or wait some minutes.`
    throw new Problem(409, 'TENANT_EXISTS', message)
  }
  await tx
    .update(remains)
    .set({ since: toIsoString(now()) })
    .where(eq(remains.home, address))
}

/** Returns what deleted tenants left in the store until a time, also that of which the removal was interrupted. */
export async function listContentRemains(until: string): Promise<ContentRemains[]> {
  const base = baseAddress()
  if (!base) return []
  const rows = await registry.db.select().from(remains).where(lte(remains.since, until))
  return rows.flatMap(({ uid, home }) => {
    const address = home.startsWith(REMOVING) ? home.slice(REMOVING.length) : home
    const tenant = address.slice(base.length)
    return address.startsWith(base) && !tenant.includes('/') ? { uid, tenant } : []
  })
}

/**
 * Marks contents as being removed: no tenant gets the id until they are. Returns false when there is one, whose contents
 * they are from then on, or when one is being made.
 */
export const beginRemoval = ({ uid, tenant }: ContentRemains, until: string): Promise<boolean> =>
  registry.write(async (tx) => {
    const home = `${baseAddress()}${tenant}`
    const isOfThese = and(eq(remains.uid, uid), inArray(remains.home, [home, REMOVING + home]))
    if (await tx.$count(tenants, eq(tenants.id, tenant))) {
      await tx.delete(remains).where(isOfThese)
      return false
    }
    const marked = await tx
      .update(remains)
      .set({ home: REMOVING + home })
      .where(and(isOfThese, lte(remains.since, until)))
      .returning()
    return marked.length > 0
  })

/** Forgets contents that were removed. */
export const endRemoval = ({ uid, tenant }: ContentRemains) =>
  registry.write((tx) =>
    tx.delete(remains).where(and(eq(remains.uid, uid), eq(remains.home, `${REMOVING}${baseAddress()}${tenant}`))),
  )
