import { statfs } from 'node:fs/promises'
import { and, eq, gt } from 'drizzle-orm'
import { version } from '../../package.json'
import { config } from '../config'
import { DAY_MS, HOUR_MS, now, toIsoString } from '../core/clock'
import { DURATION_BOUNDS, Histogram } from '../core/histogram'
import { getErrorChain } from '../core/log'
import { askOtherProcesses } from '../core/server-processes'
import { describeTimeZones } from '../core/time-zone'
import { jobs } from '../jobs/tables'
import { maxOpenTenants } from '../tenancy/databases'
import { listDamagedSince } from '../tenancy/placement'
import { listTenants } from '../tenancy/tenant-list'
import { listOpenServedSince } from '../tenancy/tenants'
import { checkCertificates } from './certificate-checks'
import {
  type Check,
  checkBackups,
  checkDataFolder,
  checkDefaultTenant,
  checkLogShipping,
  checkSecrets,
  checkServers,
  checkUnknownFolders,
} from './checks'
import { damagedDatabases } from './integrity'
import { countLastMinute } from './metrics/request-statistics'
import { PROCESS_TOPICS } from './process-topics'
import type { OperatorHealth } from './shapes'

const MAX_COUNTED_TENANTS = 100

/** Checks the installation without opening any tenant: its folder, keys, registry and disk, and what was found damaged. */
export async function describeHealth(): Promise<OperatorHealth> {
  const [tenants, checks] = [await findTenants(), [checkDataFolder(), await checkSecrets()]]
  if (Array.isArray(tenants))
    checks.push(
      ...(await checkCertificates()),
      ...(await checkDefaultTenant()),
      ...(await checkUnknownFolders()),
      ...(await checkServers()),
      await checkBackups(),
      ...checkLogShipping(),
    )
  else checks.push(tenants)
  const all = Array.isArray(tenants) ? tenants : []
  const states = [getProcessState(), ...(await askOtherProcesses<ProcessState>(PROCESS_TOPICS.state))]
  const damaged = mergeDamages(states.flatMap((state) => state.damaged))
  return {
    status: checks.every(({ ok }) => ok) && !damaged.length ? 'ok' : 'problem',
    version,
    timeZones: describeTimeZones(),
    engine: config.ATOLL_DATABASE_URL ? 'postgres' : 'sqlite',
    uptimeSeconds: Math.round(process.uptime()),
    memoryBytes: states.reduce((sum, { memoryBytes }) => sum + memoryBytes, 0),
    disk: await measureDisk(),
    tenants: {
      total: all.length,
      suspended: all.filter(({ status }) => status === 'suspended').length,
      maxOpen: maxOpenTenants,
    },
    requests: describeRequests(states),
    jobs: await countJobs(),
    damaged: damaged.map(({ time, ...damage }) => ({ ...damage, time: toIsoString(time) })),
    checks,
  }
}

type Damage = { tenant: string; reason: string; time: number }
type ProcessState = ReturnType<typeof getProcessState>

/** Returns what only this process knows, for the health of the whole server. */
export const getProcessState = () => ({
  memoryBytes: process.memoryUsage.rss(),
  minute: countLastMinute(),
  damaged: listDamaged(),
})

/** Returns the tenants that this process could not open within a day, or whose latest check found damage. */
export function listDamaged(): Damage[] {
  const unopened = listDamagedSince(now() - DAY_MS)
  const checked = [...damagedDatabases].map(([tenant, { flaws, time }]) => ({ tenant, reason: flaws[0] ?? '', time }))
  return mergeDamages([...unopened, ...checked])
}

/** Keeps the first damage of each tenant. */
const mergeDamages = (damages: Damage[]): Damage[] => [
  ...new Map(damages.toReversed().map((damage) => [damage.tenant, damage])).values(),
]

/** Describes the requests of all server processes in the last whole minute. */
function describeRequests(states: ProcessState[]) {
  const durations = new Histogram(DURATION_BOUNDS)
  for (const { minute } of states) durations.addCounts(minute.durations)
  const errors = states.reduce((sum, { minute }) => sum + minute.errors, 0)
  return { total: durations.count, errors, p95Seconds: durations.getQuantile(0.95) ?? null }
}

const findTenants = () =>
  listTenants().catch((error): Check => {
    const reason = getErrorChain(error).at(-1)
    const message = `cannot be read: ${reason instanceof Error ? reason.message : reason}. Restore it from a backup.`
    return { check: 'registry', ok: false, message }
  })

/** Returns null where the system does not tell. */
export async function measureDisk() {
  const stats = await statfs(config.ATOLL_TENANTS).catch(() => null)
  return stats && { freeBytes: stats.bavail * stats.bsize, totalBytes: stats.blocks * stats.bsize }
}

/** Counts the jobs of tenants that are open and in use, so that no other is opened for it. */
async function countJobs() {
  const counts = { waiting: 0, failing: 0 }
  const isWaiting = eq(jobs.state, 'waiting')
  for (const { db } of listOpenServedSince(performance.now() - HOUR_MS).slice(0, MAX_COUNTED_TENANTS)) {
    counts.waiting += await db.$count(jobs, isWaiting)
    counts.failing += await db.$count(jobs, and(isWaiting, gt(jobs.attempts, 0)))
  }
  return counts
}
