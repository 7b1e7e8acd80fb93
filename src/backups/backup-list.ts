import { toChunks } from '../core/chunks'
import { Problem } from '../core/problem'
import { INSTALLATION_FOLDER, orderFolders } from './folder-name'
import { MANIFEST_NAME, type Manifest, parseManifest } from './manifest'
import { openTarget } from './targets'
import type { BackupTarget } from './targets/backup-target'

const PARALLEL_READS = 16

/** A backup in a target: its folder there (empty when the address is that of the backup), its manifest, its address. */
export type StoredBackup = { target: BackupTarget; folder: string; manifest: Manifest; place: string }

/** Tells whether a backup may be used. */
export type BackupChoice = (manifest: Manifest) => boolean

/** Joins the parts of a path in a target, of which a folder may be empty. */
export const joinPath = (...parts: string[]) => parts.filter(Boolean).join('/')

/**
 * Returns the backup at an address: a backup, the backups of a tenant, or a whole target, which stands for the latest
 * one of the installation. Of several it is the latest one until `at` (ms since 1970).
 * @throws 404 BACKUP_NOT_FOUND, 409 BACKUP_DAMAGED
 */
export async function findBackup(address: string, at = Number.POSITIVE_INFINITY): Promise<StoredBackup> {
  const target = openTarget(address)
  const own = await readManifest(target, '')
  if (own) return own
  const names = await target.list('')
  const folder = names.includes(INSTALLATION_FOLDER) ? INSTALLATION_FOLDER : ''
  return (await findLatest(target, folder, at)) ?? throwBackupNotFound(target.addressOf(folder), at)
}

/**
 * Returns the latest backup below a folder that was made until `at`, or undefined when there is none. Their numbers say
 * which is the latest, because clocks may be wrong.
 */
export async function findLatest(
  target: BackupTarget,
  folder: string,
  at = Number.POSITIVE_INFINITY,
  isWanted: BackupChoice = () => true,
) {
  for await (const found of listRestorable(target, folder, at, [])) if (isWanted(found.manifest)) return found
}

/** The folder that has a backup and those beside it. */
export const folderAbove = (folder: string) => folder.slice(0, Math.max(0, folder.lastIndexOf('/')))

/**
 * Returns what `work` makes of the latest backup beside one, made until `at`, that is not damaged, and the damaged ones that
 * were stepped over. A backup that was named itself has no others beside it.
 * @throws 409 BACKUP_DAMAGED when all are
 */
export async function withLatestSound<T>(
  { target, folder, ...named }: StoredBackup,
  at = Number.POSITIVE_INFINITY,
  work: (backup: StoredBackup) => Promise<T>,
  isWanted: BackupChoice = () => true,
): Promise<{ result: T; skipped: string[] }> {
  if (!folder) return { result: await work({ target, folder, ...named }), skipped: [] }
  const skipped: string[] = []
  let failure: unknown
  for await (const backup of listRestorable(target, folderAbove(folder), at, skipped)) {
    if (!isWanted(backup.manifest)) continue
    try {
      return { result: await work(backup), skipped }
    } catch (error) {
      if (!isDamage(error)) throw error
      skipped.push(backup.place)
      failure ??= error
    }
  }
  throw failure ?? throwBackupNotFound(target.addressOf(folder), at)
}

const isDamage = (error: unknown) => error instanceof Problem && error.code === 'BACKUP_DAMAGED'

/** Yields the backups below a folder that were made until `at`, latest first, and notes those that have no valid manifest. */
async function* listRestorable(target: BackupTarget, folder: string, at: number, skipped: string[]) {
  for (const { name, time } of orderFolders(await target.list(folder)).reverse()) {
    if (time > at) continue
    const found = await readManifest(target, joinPath(folder, name)).catch((error) => {
      if (!isDamage(error)) throw error
      skipped.push(target.addressOf(joinPath(folder, name)))
    })
    if (!found) continue
    const { created, complete } = found.manifest
    // Until its copy was complete, it may have later writes.
    if (time + Date.parse(complete) - Date.parse(created) <= at) yield found
  }
}

function throwBackupNotFound(address: string, at: number): never {
  const until = Number.isFinite(at) ? ` that was made until ${new Date(at).toISOString()}` : ''
  throw new Problem(404, 'BACKUP_NOT_FOUND', `There is no backup${until} at ${address}.`)
}

/** Returns the backup in a folder, or undefined when there is none. @throws 409 BACKUP_DAMAGED or BACKUP_TOO_NEW */
export async function readManifest(target: BackupTarget, folder: string): Promise<StoredBackup | undefined> {
  const content = await target.read(joinPath(folder, MANIFEST_NAME))
  if (!content) return
  const place = target.addressOf(folder)
  return { target, folder, place, manifest: parseManifest(await new Response(content).text(), place) }
}

/**
 * Returns the backups of a tenant, latest first, without those whose manifest is damaged or of a later version.
 * @throws 502 BACKUP_TARGET_FAILED, 504 BACKUP_TARGET_STALLED
 */
export async function listBackups(target: BackupTarget, tenant: string): Promise<StoredBackup[]> {
  const names = orderFolders(await target.list(tenant)).map(({ name }) => name)
  const backups: StoredBackup[] = []
  for (const chunk of toChunks(names.toReversed(), PARALLEL_READS)) {
    const found = await Promise.all(chunk.map((name) => readUsableManifest(target, joinPath(tenant, name))))
    backups.push(...found.filter((backup) => !!backup))
  }
  return backups
}

async function readUsableManifest(target: BackupTarget, folder: string): Promise<StoredBackup | undefined> {
  try {
    return await readManifest(target, folder)
  } catch (error) {
    // A target that fails must not look like one without backups.
    if (!(error instanceof Problem && error.status === 409)) throw error
  }
}

/** Returns the ids of the tenants that have backups in a target. */
export const listBackedUpTenants = async (target: BackupTarget) =>
  (await target.list('')).filter((name) => /^[a-z0-9][a-z0-9-]{0,62}$/.test(name))
