import { asc, eq, inArray } from 'drizzle-orm'
import { DAY_MS, now, toIsoString } from '../core/clock'
import { getErrorChain, logError } from '../core/log'
import { notFound, Problem } from '../core/problem'
import { recordOperatorEvent } from '../tenancy/operator-events'
import type { TenantRecord } from '../tenancy/placement'
import { registry } from '../tenancy/registry'
import { tenantBackups, tenants } from '../tenancy/tables'
import { listBackedUpTenants } from './backup-list'
import { pruneContents } from './contents/content-removal'
import type { BackupEncryption } from './encryption'
import { INSTALLATION_FOLDER, parseFolderName } from './folder-name'
import { backUpInstallation } from './installation-backup'
import { parseSegmentName } from './log/log-segment'
import { LOG_FOLDER } from './log/shipped-log'
import { MANIFEST_NAME } from './manifest'
import { listExpired, type Retention } from './retention'
import type { BackupTarget } from './targets/backup-target'
import { type BackupControl, backUpTenant, type MadeBackup } from './tenant-backup'

/** The backups that were made, and the tenants whose backup failed. */
export type BackupResult = {
  /** The backup of the registry and the keys; null when single tenants were asked for, or with PostgreSQL. */
  installation: MadeBackup | null
  backups: MadeBackup[]
  failed: { tenant: string; code: string; message: string }[]
}

/** What a run of backups reports. */
export type BackupRunControl = {
  /** Receives what is being done for a tenant, and how much of it, from 0 to 1, where that is known. */
  onProgress?(tenant: string, step: string, fraction?: number): void
  signal?: AbortSignal
}

/**
 * Makes backups of tenants, one after the other. The id `.installation` names what tenants share; without ids, all
 * tenants and that are backed up. One that fails does not end the others.
 * @throws 404 TENANT_NOT_FOUND
 */
export async function backUp(
  ids: string[],
  target: BackupTarget,
  encryption: BackupEncryption | undefined,
  { onProgress, signal }: BackupRunControl = {},
): Promise<BackupResult> {
  const result: BackupResult = { installation: null, backups: [], failed: [] }
  const controlOf = (tenant: string): BackupControl => ({
    onProgress: (step, fraction) => onProgress?.(tenant, step, fraction),
    signal,
  })
  const includesInstallation = !ids.length || ids.includes(INSTALLATION_FOLDER)
  const entries = await findTenants(ids)
  if (includesInstallation)
    await runOrRecordFailure(result, INSTALLATION_FOLDER, async () => {
      result.installation = (await backUpInstallation(target, encryption, controlOf(INSTALLATION_FOLDER))) ?? null
    })
  for (const entry of entries) {
    signal?.throwIfAborted()
    await runOrRecordFailure(result, entry.id, async () => {
      const made = await backUpTenant(entry, target, encryption, controlOf(entry.id))
      result.backups.push(made)
      await recordBackup(made)
    })
  }
  return result
}

async function findTenants(names: string[]): Promise<TenantRecord[]> {
  const ids = names.filter((name) => name !== INSTALLATION_FOLDER)
  if (names.length && !ids.length) return []
  const selected = registry.db.select().from(tenants)
  const found = await (ids.length ? selected.where(inArray(tenants.id, ids)) : selected).orderBy(asc(tenants.id))
  if (ids.some((id) => !found.some((entry) => entry.id === id))) notFound('tenant')
  return found
}

async function runOrRecordFailure({ failed }: BackupResult, tenant: string, work: () => Promise<void>) {
  try {
    await work()
  } catch (error) {
    const problem = toProblem(error)
    failed.push({ tenant, ...problem })
    if (problem.code === 'INTERNAL') logError('BACKUP_FAILED', { tenant, cause: error })
    if (tenant !== INSTALLATION_FOLDER)
      await recordFailedBackup(tenant, problem.message).catch((cause) =>
        logError('BACKUP_NOT_RECORDED', { tenant, cause }),
      )
  }
}

function toProblem(error: unknown): { code: string; message: string } {
  const problem = getErrorChain(error).find((cause) => cause instanceof Problem)
  if (problem) return { code: problem.code, message: problem.message }
  return { code: 'INTERNAL', message: `The backup failed: ${(getErrorChain(error).at(-1) as Error).message}` }
}

const recordBackup = ({ tenant, place, created, bytes }: MadeBackup) =>
  registry.write(async (tx) => {
    const made = { place, created, bytes, problem: null, failed: null }
    if (!(await tx.$count(tenants, eq(tenants.id, tenant)))) return // it was deleted meanwhile
    await tx
      .insert(tenantBackups)
      .values({ tenant, ...made })
      .onConflictDoUpdate({ target: tenantBackups.tenant, set: made })
  })

const recordFailedBackup = (tenant: string, problem: string) =>
  registry.write(async (tx) => {
    const failure = { problem, failed: toIsoString(now()) }
    if (!(await tx.$count(tenants, eq(tenants.id, tenant)))) return // it was deleted meanwhile
    await recordOperatorEvent(tx, 'backup-failed', tenant, { problem })
    await tx
      .insert(tenantBackups)
      .values({ tenant, ...failure })
      .onConflictDoUpdate({ target: tenantBackups.tenant, set: failure })
  })

const INCOMPLETE_AFTER_MS = DAY_MS // an incomplete backup is no longer being made

/** Removes backups beyond the retention, also those of deleted tenants. Returns their addresses. */
export async function removeExpired(target: BackupTarget, retention: Retention): Promise<string[]> {
  const removed: string[] = []
  for (const folder of [INSTALLATION_FOLDER, ...(await listBackedUpTenants(target))]) {
    await removeOldLog(target, `${folder}/${LOG_FOLDER}`, now() - retention.log * DAY_MS)
    const found = await listFolders(target, folder)
    for (const { name, time, isComplete } of found)
      if (!isComplete && time < now() - INCOMPLETE_AFTER_MS) await target.removeFolder(`${folder}/${name}`)
    const complete = found.filter(({ isComplete }) => isComplete)
    const expired = listExpired(
      complete.map(({ time }) => time),
      retention,
    )
    for (const { name } of complete.filter(({ time }) => expired.includes(time))) {
      const path = `${folder}/${name}`
      await target.removeFolder(path)
      removed.push(target.addressOf(path))
    }
    // A list that cannot be read only keeps the contents of its tenant.
    await pruneContents(target, folder).catch((cause) => logError('CONTENTS_NOT_PRUNED', { tenant: folder, cause }))
  }
  return removed
}

/** Removes the segments of a log that end before a time (ms since 1970). */
async function removeOldLog(target: BackupTarget, folder: string, before: number) {
  for (const generation of await target.list(folder)) {
    const names = await target.list(`${folder}/${generation}`)
    const segments = names.flatMap((name) => ({ name, last: parseSegmentName(name)?.last ?? Number.POSITIVE_INFINITY }))
    const kept = segments.filter(({ last }) => last >= before && Number.isFinite(last))
    if (!kept.length && (parseFolderName(generation) ?? now()) < before) {
      await target.removeFolder(`${folder}/${generation}`)
      continue
    }
    for (const { name, last } of segments) if (last < before) await target.removeFile(`${folder}/${generation}/${name}`)
  }
}

/** Returns the folders of the backups of a tenant. One without a manifest is being made, or its process died. */
async function listFolders(target: BackupTarget, tenant: string) {
  const folders: { name: string; time: number; isComplete: boolean }[] = []
  for (const name of await target.list(tenant)) {
    const time = parseFolderName(name)
    if (time === undefined) continue
    folders.push({ name, time, isComplete: (await target.list(`${tenant}/${name}`)).includes(MANIFEST_NAME) })
  }
  return folders
}
