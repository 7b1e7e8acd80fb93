import { Cron } from 'croner'
import { and, asc, eq, inArray, isNull, lt, or } from 'drizzle-orm'
import { config } from '../config'
import { DAY_MS, now, toIsoString } from '../core/clock'
import { registry } from '../tenancy/registry'
import { tenantBackups, tenants } from '../tenancy/tables'
import type { LastBackup } from './shapes'

const OVERDUE_AFTER_MS = 2 * DAY_MS

/** The last backup of a tenant, null when there was no attempt, and whether it should have a later one. */
export type BackupState = { backup: LastBackup | null; backupOverdue: boolean }

/** Returns the last backups of tenants by their ids, with an entry for each tenant. */
export async function describeLastBackups(
  described: { id: string; created: string }[],
): Promise<Map<string, BackupState>> {
  const ids = described.map(({ id }) => id)
  const rows = await registry.db.select().from(tenantBackups).where(inArray(tenantBackups.tenant, ids))
  const backups = new Map(rows.map(({ tenant, ...backup }) => [tenant, backup]))
  const deadline = findBackupDeadline() ?? ''
  return new Map(
    described.map(({ id, created }) => {
      const backup = backups.get(id) ?? null
      return [id, { backup, backupOverdue: created < deadline && (backup?.created ?? '') < deadline }]
    }),
  )
}

/**
 * Returns since when each tenant should have a backup, or undefined when none are scheduled. A backup may be two days
 * old, and where the schedule has longer pauses, as old as the last run but one.
 */
function findBackupDeadline(): string | undefined {
  if (!config.ATOLL_BACKUP_SCHEDULE) return
  const time = now()
  const [, lastButOne] = new Cron(config.ATOLL_BACKUP_SCHEDULE, { timezone: 'UTC' }).previousRuns(2, new Date(time))
  return toIsoString(Math.min(time - OVERDUE_AFTER_MS, lastButOne?.getTime() ?? time))
}

/** Returns the tenants whose backup is overdue, with why the latest attempt failed. */
export async function listOverdueBackups(limit: number): Promise<{ id: string; problem: string | null }[]> {
  const deadline = findBackupDeadline()
  if (!deadline) return []
  const isOverdue = or(isNull(tenantBackups.created), lt(tenantBackups.created, deadline))
  return registry.db
    .select({ id: tenants.id, problem: tenantBackups.problem })
    .from(tenants)
    .leftJoin(tenantBackups, eq(tenantBackups.tenant, tenants.id))
    .where(and(lt(tenants.created, deadline), isOverdue))
    .orderBy(asc(tenants.id))
    .limit(limit)
}

/** Returns the names of the last backups that were stored in a target, by their folders. */
export async function listBackedUpAt(address: string): Promise<Map<string, string>> {
  const rows = await registry.db.query(
    'select tenant, place from tenant_backups where substr(place, 1, ?) = ? order by tenant',
    [address.length, address],
  )
  return new Map(rows.map(([tenant, place]) => [String(tenant), String(place).split(/[\\/]/).at(-1)!]))
}
