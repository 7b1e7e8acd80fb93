import { eq } from 'drizzle-orm'
import { registryMigrations, tenantMigrations } from '../../migrations'
import { config } from '../config'
import { now, toIsoString } from '../core/clock'
import { Problem } from '../core/problem'
import type { Db, RunQuery, Tx } from '../storage/port'
import { writeInvalidating } from './cache'
import { clusterUrls, databases, hasRegistryFile, MAIN_CLUSTER, moveBucketToNode } from './databases'
import { hasOtherFileKeys } from './installation-keys'
import { locationOf, type TenantRecord } from './placement'
import { registry } from './registry'
import { buckets, hosts, tenants } from './tables'

const MAX_TENANTS_PER_BUCKET = 300 // so that its tables and indexes stay small enough to be moved

/** A bucket, a schema that many tenants share, and its number of tenants. `home` is `cluster/schema`. */
export type Bucket = { home: string; tenants: number }

/** Returns all buckets by name. */
export const listBuckets = () => selectBuckets(registry.db)

/**
 * Creates a bucket on a cluster, ready for tenants, and returns it.
 * @throws 400 NO_DATABASE without a configured database, INVALID_INPUT for an unknown cluster
 */
export async function addBucket(cluster = MAIN_CLUSTER): Promise<Bucket> {
  assertDatabaseConfigured()
  if (!clusterUrls.has(cluster)) {
    const message = `There is no cluster "${cluster}". Configured clusters: ${[...clusterUrls.keys()].join(', ')}.`
    throw new Problem(400, 'INVALID_INPUT', message)
  }
  const home = await registry.write((tx) => insertBucket(tx, cluster))
  const [, bucket] = home.split('/')
  // The first query creates the schema.
  await databases.getStore({ tenant: '', file: '', cluster, bucket }, tenantMigrations).db.query('select 1')
  return { home, tenants: 0 }
}

/**
 * Returns the home of a new tenant: the bucket with the fewest tenants, or a new one when all are full; empty for a
 * file.
 */
export async function pickHome(): Promise<string> {
  if (!config.ATOLL_DATABASE_URL) return ''
  return registry.write(async (tx) => {
    const [emptiest] = (await selectBuckets(tx)).toSorted((one, other) => one.tenants - other.tenants)
    return emptiest && emptiest.tenants < MAX_TENANTS_PER_BUCKET ? emptiest.home : insertBucket(tx, MAIN_CLUSTER)
  })
}

/** Returns the name of an existing bucket. @throws 404 BUCKET_NOT_FOUND */
export async function requireBucket(home: string): Promise<string> {
  if ((await listBuckets()).some((bucket) => bucket.home === home)) return home
  const message = `There is no bucket "${home}". Run "atoll postgres status" to list all buckets.`
  throw new Problem(404, 'BUCKET_NOT_FOUND', message)
}

/**
 * Moves a bucket with all its tenants to another node of its Citus cluster.
 * @throws 400 NO_DATABASE or INVALID_INPUT, 404 BUCKET_NOT_FOUND or NODE_NOT_FOUND, 409 NO_CITUS
 */
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
 * Prepares the database, and imports the registry and the secrets of the local files: their tenants are served from the
 * files until they are moved. Returns the imported tenants. It is safe to repeat.
 * @throws 400 NO_DATABASE without a configured database
 * @throws 409 OTHER_KEYS when encrypted data could no longer be decrypted
 */
export async function initializeDatabase(): Promise<{ buckets: Bucket[]; adopted: string[] }> {
  assertDatabaseConfigured()
  if (!(await listBuckets()).length) await addBucket()
  const { entries, names } = await readLocalRegistry()
  for (const entry of entries) await assertImportable(entry)
  const adopted = await writeInvalidating(registry, 'tenants', async (tx) => {
    const registeredIds = (await tx.select().from(tenants)).map(({ id }) => id)
    const newEntries = entries.filter(({ id }) => !registeredIds.includes(id))
    for (const entry of newEntries) await tx.insert(tenants).values(entry)
    for (const host of names)
      if (newEntries.some(({ id }) => id === host.tenant)) await tx.insert(hosts).values(host).onConflictDoNothing()
    return newEntries.map(({ id }) => id)
  })
  return { buckets: await listBuckets(), adopted }
}

/** Reads the registry of the local files. Where there is none, none is created: other nodes may share the folder. */
async function readLocalRegistry() {
  if (!hasRegistryFile()) return { entries: [], names: [] }
  const { db } = databases.getStore({ tenant: 'registry', file: 'registry.db', identity: '' }, registryMigrations)
  return { entries: await db.select().from(tenants), names: await db.select().from(hosts) }
}

async function assertImportable(entry: TenantRecord) {
  const registered = await registry.db.select().from(tenants).where(eq(tenants.id, entry.id)).get()
  if (!registered) await assertDecryptable(entry.id, databases.getStore(locationOf(entry), tenantMigrations).db.query)
}

/**
 * @throws 409 OTHER_KEYS when the tenant has encrypted texts, and the keys of the local files differ from those of the
 * database
 */
export async function assertDecryptable(id: string, query: RunQuery) {
  if (!config.ATOLL_DATABASE_URL || !(await hasOtherFileKeys())) return
  const [encryptedRow] = await query("select 1 from versions where topic = 'vault' union all select 1 from sealed")
  if (!encryptedRow) return
  const message = `The tenant "${id}" has encrypted data, but the keys in the database differ from those in the local secrets.json.`
  throw new Problem(409, 'OTHER_KEYS', `${message} Import these files into a separate database.`)
}

/** What is missing where ATOLL_DATABASE_URL is not set. */
export const NO_DATABASE_MESSAGE = 'No database is configured. Set ATOLL_DATABASE_URL=postgres://user@host/database.'

/** @throws 400 NO_DATABASE when ATOLL_DATABASE_URL is not set */
export function assertDatabaseConfigured() {
  if (!config.ATOLL_DATABASE_URL) throw new Problem(400, 'NO_DATABASE', NO_DATABASE_MESSAGE)
}
