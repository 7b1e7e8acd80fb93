import { eq } from 'drizzle-orm'
import { registryMigrations, tenantMigrations } from '../../migrations'
import { config } from '../config'
import { iso, now } from '../core/clock'
import { Problem } from '../core/problem'
import type { Ask, Db, Tx } from '../storage/port'
import { type Entry, placeOf } from './homes'
import { registry } from './registry'
import { hasOwnKeys } from './secrets'
import { clusterUrls, MAIN, moveWithin, storage } from './storage'
import { buckets, hosts, tenants } from './tables'

const FULL = 300 // tenants of a bucket; its tables and their indexes stay small enough to be moved

/** A bucket, a schema that many tenants share, with how many are in it. `home` is `cluster/schema`. */
export type Bucket = { home: string; tenants: number }

/** Every bucket, by name. */
export const listBuckets = () => bucketsIn(registry.db)

/** Makes one more bucket on a cluster, ready for tenants. @throws 400 for a cluster that no setting names. */
export async function addBucket(cluster = MAIN): Promise<Bucket> {
  requireDatabase()
  if (!clusterUrls.has(cluster)) {
    const message = `There is no cluster "${cluster}", only ${[...clusterUrls.keys()].join(', ')}.`
    throw new Problem(400, 'INVALID_INPUT', message)
  }
  const home = await registry.write((tx) => add(tx, cluster))
  const [, bucket] = home.split('/')
  // What is asked makes it.
  await storage.store({ tenant: '', file: '', cluster, bucket }, tenantMigrations).db.ask('select 1')
  return { home, tenants: 0 }
}

/** Where a new tenant is kept: in the bucket that has the fewest, in a new one when all are full; empty for a file. */
export async function freshHome(): Promise<string> {
  if (!config.ATOLL_DATABASE_URL) return ''
  return registry.write(async (tx) => {
    const [emptiest] = (await bucketsIn(tx)).toSorted((one, other) => one.tenants - other.tenants)
    return emptiest && emptiest.tenants < FULL ? emptiest.home : add(tx, MAIN)
  })
}

/** A bucket that there is. @throws 404 */
export async function requireBucket(home: string): Promise<string> {
  if ((await listBuckets()).some((bucket) => bucket.home === home)) return home
  const message = `There is no bucket "${home}". "atoll postgres status" shows those that there are.`
  throw new Problem(404, 'BUCKET_NOT_FOUND', message)
}

/** Moves a bucket with all its tenants to another node of its cluster, where that is a Citus. */
export async function moveBucket(home: string, node: string): Promise<{ home: string; node: string }> {
  requireDatabase()
  const [cluster = '', bucket = ''] = (await requireBucket(home)).split('/')
  await moveWithin(cluster, bucket, node)
  return { home, node }
}

async function bucketsIn(db: Db): Promise<Bucket[]> {
  const rows = await db.ask(
    'select b.home, count(t.id) from buckets b left join tenants t on t.home = b.home group by b.home order by b.home',
  )
  return (rows as [string, number][]).map(([home, tenants]) => ({ home, tenants }))
}

async function add(tx: Tx, cluster: string): Promise<string> {
  const taken = (await tx.select().from(buckets)).map(({ home }) => home)
  for (let number = 1; ; number++) {
    const home = `${cluster}/atoll_b${String(number).padStart(4, '0')}`
    if (taken.includes(home)) continue
    await tx.insert(buckets).values({ home, created: iso(now()) })
    return home
  }
}

/**
 * Prepares the database, and takes over the registry and the secrets of the files that are here: those tenants are
 * served from their files until they are moved. Returns which; does no harm twice.
 * @throws 409 for what nobody could decrypt any more
 */
export async function initialize(): Promise<{ buckets: Bucket[]; adopted: string[] }> {
  requireDatabase()
  if (!(await listBuckets()).length) await addBucket()
  const files = storage.store({ tenant: 'registry', file: 'registry.db', identity: '' }, registryMigrations)
  const [entries, names] = [await files.db.select().from(tenants), await files.db.select().from(hosts)]
  for (const entry of entries) await refuseEncrypted(entry)
  const adopted = await registry.write(async (tx) => {
    const known = (await tx.select().from(tenants)).map(({ id }) => id)
    const strangers = entries.filter(({ id }) => !known.includes(id))
    for (const entry of strangers) await tx.insert(tenants).values(entry)
    for (const host of names)
      if (strangers.some(({ id }) => id === host.tenant)) await tx.insert(hosts).values(host).onConflictDoNothing()
    return strangers.map(({ id }) => id)
  })
  return { buckets: await listBuckets(), adopted }
}

async function refuseEncrypted(entry: Entry) {
  const known = await registry.db.select().from(tenants).where(eq(tenants.id, entry.id)).get()
  if (!known) await requireReadable(entry.id, storage.store(placeOf(entry), tenantMigrations).db.ask)
}

/** @throws 409 where files have encrypted texts of which the database that is used has no key */
export async function requireReadable(id: string, ask: Ask) {
  if (!config.ATOLL_DATABASE_URL || !(await hasOwnKeys())) return
  const [found] = await ask("select 1 from versions where topic = 'vault' union all select 1 from sealed")
  if (!found) return
  const message = `The tenant "${id}" has encrypted texts, but the database has other keys than the secrets.json here.`
  throw new Problem(409, 'OTHER_KEYS', `${message} Take these files over into a database of their own.`)
}

/** @throws 400 where no setting names a database */
export function requireDatabase() {
  if (config.ATOLL_DATABASE_URL) return
  const message = 'No setting says which database: give ATOLL_DATABASE_URL=postgres://user@host/database.'
  throw new Problem(400, 'NO_DATABASE', message)
}
