import { eq } from 'drizzle-orm'
import { config } from '../config'
import { listBuckets, NO_DATABASE_MESSAGE } from '../tenancy/buckets'
import { getClusterStates } from '../tenancy/databases'
import { registry } from '../tenancy/registry'
import { tenants } from '../tenancy/tables'
import type { OperatorHomes } from './shapes'

const NOT_CONFIGURED = 'This cluster is not configured. See ATOLL_DATABASE_CLUSTERS.'

/** Returns where tenants can be, with the number of those that are there, and what can be used now. */
export async function listHomes(): Promise<OperatorHomes> {
  const [files, buckets, states] = await Promise.all([
    registry.db.$count(tenants, eq(tenants.home, '')),
    listBuckets(),
    getClusterStates(),
  ])
  const bucketsByCluster = Map.groupBy(buckets, ({ home }) => home.split('/')[0] ?? '')
  const problems = new Map(states.map(({ name, problem }) => [name, problem ?? null]))
  for (const name of bucketsByCluster.keys()) if (!problems.has(name)) problems.set(name, NOT_CONFIGURED)
  const clusters = [...problems].map(([name, problem]) => ({
    ...{ name, usable: problem === null, problem },
    buckets: bucketsByCluster.get(name) ?? [],
  }))
  const usable = !!config.ATOLL_DATABASE_URL
  const problem = usable ? null : NO_DATABASE_MESSAGE
  return { sqlite: { tenants: files, usable }, postgres: { usable, clusters }, problem }
}
