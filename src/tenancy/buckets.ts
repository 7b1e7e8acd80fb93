import { eq } from 'drizzle-orm'
import { registryMigrations, tenantMigrations } from '../../migrations'
import { config } from '../config'
import { now, toIsoString } from '../core/clock'
import { Problem } from '../core/problem'
import type { Db, RunQuery, Tx } from '../storage/port'
import { clusterUrls, databases, MAIN_CLUSTER, moveBucketToNode } from './databases'
import { hasOtherFileKeys } from './installation-keys'
import { locationOf, type TenantRecord } from './placement'
import { registry } from './registry'
import { buckets, hosts, tenants } from './tables'

const MAX_TENANTS_PER_BUCKET = 300 // tenants of a bucket; its tables and their indexes stay small enough to be moved

/** A bucket, a schema that many tenants share, with how many are in it. `home` is `cluster/schema`. */
export type Bucket = { home: string; tenants: number }

/** Every bucket, by name. */
export const listBuckets = () => selectBuckets(registry.db)

/** Makes one more bucket on a cluster, ready for tenants. @throws 400 for a cluster that no setting names. */
export async function addBucket(cluster = MAIN_CLUSTER): Promise<Bucket> {
  assertDatabaseConfigured()
  if (!clusterUrls.has(cluster)) {
    const message = `There is no cluster "${cluster}". Configured clusters: ${[...clusterUrls.keys()].join(', ')}.`
    throw new Problem(400, 'INVALID_INPUT', message)
  }
  const home = await registry.write((tx) => insertBucket(tx, cluster))
  const [, bucket] = home.split('/')
  // What is asked makes it.
  await databases.getStore({ tenant: '', file: '', cluster, bucket }, tenantMigrations).db.query('select 1')
  return { home, tenants: 0 }
}

/** Where a new tenant is kept: in the bucket that has the fewest, in a new one when all are full; empty for a file. */
export async function pickHome(): Promise<string> {
  if (!config.ATOLL_DATABASE_URL) return ''
  return registry.write(async (tx) => {
    const [emptiest] = (await selectBuckets(tx)).toSorted((one, other) => one.tenants - other.tenants)
    return emptiest && emptiest.tenants < MAX_TENANTS_PER_BUCKET ? emptiest.home : insertBucket(tx, MAIN_CLUSTER)
  })
}

/** A bucket that there is. @throws 404 */
export async function requireBucket(home: string): Promise<string> {
  if ((await listBuckets()).some((bucket) => bucket.home === home)) return home
  const message = `There is no bucket "${home}". Run "atoll postgres status" to list all buckets.`
  throw new Problem(404, 'BUCKET_NOT_FOUND', message)
}

/** Moves a bucket with all its tenants to another node of its cluster, where that is a Citus. */
export async function moveBucket(home: string, node: string): Promise<{ home: string; node: string }> {
  assertDatabaseConfigured()
  const [cluster = '', bucket = ''] = (await requireBucket(home)).split('/')
  await moveBucketToNode(cluster, bucket, node)
  return { home, node }
}

async function selectBuckets(db: Db): Promise<Bucket[]> {
  const rows = await db.query(
    'select b.home, count(t.id) from buckets b left join tenants t on t.home = b.home group by b.home order by b.home',
  )
  return (rows as [string, number][]).map(([home, tenants]) => ({ home, tenants }))
}

async function insertBucket(tx: Tx, cluster: string): Promise<string> {
  const usedHomes = (await tx.select().from(buckets)).map(({ home }) => home)
  for (let number = 1; ; number++) {
    const home = `${cluster}/atoll_b${String(number).padStart(4, '0')}`
    if (usedHomes.includes(home)) continue
    await tx.insert(buckets).values({ home, created: toIsoString(now()) })
    return home
  }
}

/**
 * Prepares the database, and takes over the registry and the secrets of the files that are here: those tenants are
 * served from their files until they are moved. Returns which; does no harm twice.
 * @throws 409 for what nobody could decrypt any more
 */
export async function initializeDatabase(): Promise<{ buckets: Bucket[]; adopted: string[] }> {
  assertDatabaseConfigured()
  if (!(await listBuckets()).length) await addBucket()
  const files = databases.getStore({ tenant: 'registry', file: 'registry.db', identity: '' }, registryMigrations)
  const [entries, names] = [await files.db.select().from(tenants), await files.db.select().from(hosts)]
  for (const entry of entries) await assertImportable(entry)
  const adopted = await registry.write(async (tx) => {
    const registeredIds = (await tx.select().from(tenants)).map(({ id }) => id)
    const newEntries = entries.filter(({ id }) => !registeredIds.includes(id))
    for (const entry of newEntries) await tx.insert(tenants).values(entry)
    for (const host of names)
      if (newEntries.some(({ id }) => id === host.tenant)) await tx.insert(hosts).values(host).onConflictDoNothing()
    return newEntries.map(({ id }) => id)
  })
  return { buckets: await listBuckets(), adopted }
}

async function assertImportable(entry: TenantRecord) {
  const registered = await registry.db.select().from(tenants).where(eq(tenants.id, entry.id)).get()
  if (!registered) await assertDecryptable(entry.id, databases.getStore(locationOf(entry), tenantMigrations).db.query)
}

/** @throws 409 where files have encrypted texts of which the database that is used has no key */
export async function assertDecryptable(id: string, query: RunQuery) {
  if (!config.ATOLL_DATABASE_URL || !(await hasOtherFileKeys())) return
  const [encryptedRow] = await query("select 1 from versions where topic = 'vault' union all select 1 from sealed")
  if (!encryptedRow) return
  const message = `The tenant "${id}" has encrypted data, but the keys in the database differ from those in the local secrets.json.`
  throw new Problem(409, 'OTHER_KEYS', `${message} Import these files into a separate database.`)
}

/** @throws 400 where no setting names a database */
export function assertDatabaseConfigured() {
  if (config.ATOLL_DATABASE_URL) return
  const message = 'No database is configured. Set ATOLL_DATABASE_URL=postgres://user@host/database.'
  throw new Problem(400, 'NO_DATABASE', message)
}
