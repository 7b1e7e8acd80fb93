import { Command } from 'commander'
import {
  type BackupChoice,
  findBackup,
  findLatest,
  folderAbove,
  type StoredBackup,
  withLatestSound,
} from '../backups/backup-list'
import { configuredEncryption, readIdentityFile, readPassphraseFile } from '../backups/encryption'
import { restoreInstallation } from '../backups/installation-backup'
import { findOwnBackups } from '../backups/lineage'
import { type RestoreOptions, restoreTenant } from '../backups/restore'
import type { RestoredTenant } from '../backups/shapes'
import { parseIsoDateTime, toIsoString } from '../core/clock'
import { getErrorChain } from '../core/log'
import { Problem } from '../core/problem'
import { isRegistered, listTenants } from '../tenancy/tenant-list'
import { requireConfirmation } from './confirmation'
import { findRemoteServer } from './installation'
import { invocation } from './invocation'
import { describeMissingFiles, pluralize, runAndPrint } from './output'
import { type ProgressDisplay, showProgress } from './progress'

type CommandOptions = {
  as?: string
  at?: string
  passphraseFile?: string
  identityFile?: string
  dropSecrets?: boolean
  untilGap?: boolean
  yes?: boolean
}

/** What was restored; of an installation also the tenants without a backup, and those that could not be restored. */
type RestoreResult = {
  restored: RestoredTenant[]
  missing: string[]
  failed: { tenant: string; code: string; message: string }[]
  /** Damaged backups in whose place earlier ones were used. */
  skipped?: string[]
}

/** Restores a tenant, or a whole installation, from a backup. */
export const restore = new Command('restore')
  .description('Restore a tenant, or a whole installation, from a backup')
  .argument('<backup>', "a backup, a tenant's backups, or a whole target; a folder or s3://bucket/prefix")
  .option('--as <id>', 'restore a copy under this ID, without hosts and sessions')
  .option(
    '--at <time>',
    'point in time, such as 2030-01-31T12:00:00Z (default zone: UTC); without a log, the latest backup before it',
  )
  .option('--until-gap', 'if the log has a gap, restore to the last moment before the gap')
  .option('--passphrase-file <file>', 'file with the passphrase in its first line (default: ATOLL_BACKUP_PASSPHRASE)')
  .option('--identity-file <file>', 'file with age identities (AGE-SECRET-KEY-…)')
  .option('--drop-secrets', "omit secrets encrypted with another installation's keys")
  .option('--yes', "replace an existing tenant's data without confirmation")
  .option('--json', 'print JSON')
  .addHelpText(
    'after',
    `

Examples:
  atoll restore /mnt/backups/acme --yes
  atoll restore s3://backups/atoll/acme --as acme-copy --at 2030-01-31T12:00:00Z`,
  )
  .action(
    runAndPrint(
      async (address: string, options: CommandOptions, command: Command): Promise<RestoreResult> => {
        const at = options.at === undefined ? undefined : parseTime(options.at, command)
        const server = findRemoteServer(command)
        if (server) return restoreRemotely(server, address, options, command)
        await import('../app') // areas name the tables of their credentials
        const backup = await findBackup(address, at)
        if (at !== undefined && !backup.folder) assertMoment(backup, at)
        const restoreOptions: RestoreOptions = {
          secrets: {
            passphrase: options.passphraseFile
              ? readPassphraseFile(options.passphraseFile)
              : configuredEncryption().passphrase,
            identities: options.identityFile ? readIdentityFile(options.identityFile) : [],
          },
          dropSecrets: options.dropSecrets,
          untilGap: options.untilGap,
          // A backup that is named itself is restored as it is.
          logUntil: backup.folder ? (at ?? Number.POSITIVE_INFINITY) : undefined,
        }
        using progress = showProgress()
        if (backup.manifest.kind === 'installation') {
          if (options.as) command.error('--as requires the backup of a single tenant.')
          const range = { until: at ?? Number.POSITIVE_INFINITY, untilGap: options.untilGap }
          const { result: registryTime, skipped } = await withLatestSound(backup, at, async (found) => {
            await restoreInstallation(found, restoreOptions.secrets, range)
            return found.manifest.created
          })
          return restoreAll(backup.target, restoreOptions, { at, registryTime }, progress, skipped)
        }
        const id = options.as ?? backup.manifest.tenant
        const isReplaced = await isRegistered(id)
        const isOwn = id === backup.manifest.tenant && backup.folder ? await findOwnBackups(id) : undefined
        if (isOwn) await assertOwnBackup(backup, at, isOwn)
        if (isReplaced) requireConfirmation(command, `Replace all data of the tenant "${id}"?`, options)
        const control = { onProgress: (step: string, done?: number) => progress.update(id, step, done) }
        const { result: restored, skipped } = await withLatestSound(
          backup,
          at,
          (found) => restoreTenant(found, { ...restoreOptions, as: id, mayReplace: isReplaced }, control),
          isOwn,
        )
        return { restored: [restored], missing: [], failed: [], ...(skipped.length && { skipped }) }
      },
      ({ restored, missing, failed, skipped = [] }) =>
        [
          ...skipped.map((place) => `WARNING: ${place} is damaged; used an earlier backup instead.`),
          ...restored.map(
            ({ tenant, created, until, rows, files, ms, lostSecrets, trash, outgoingHeld }) =>
              `Restored the tenant "${tenant}" as of ${until ?? created}: ${pluralize(rows, 'row')}, ${pluralize(files.count, 'content')} of files in ${ms} ms.` +
              describeMissingFiles(files) +
              (lostSecrets ? ` ${pluralize(lostSecrets, 'secret')} could not be restored; enter them again.` : '') +
              (trash ? ` The replaced files are in ${trash}.` : '') +
              (outgoingHeld
                ? ` The copy makes no outgoing calls until you run: ${invocation} tenant resume ${tenant} --outgoing`
                : ''),
          ),
          ...missing.map((id) => `${id}: no backup of this tenant found.`),
          ...failed.map(({ tenant, message }) => `${tenant}: FAILED. ${message}`),
        ].join('\n'),
    ),
  )

/** Lets a server restore a backup in the target of its settings. */
async function restoreRemotely(
  server: NonNullable<ReturnType<typeof findRemoteServer>>,
  address: string,
  options: CommandOptions,
  command: Command,
): Promise<RestoreResult> {
  const [tenant, backup, ...rest] = address.split('/')
  if (!tenant || !backup || rest.length || options.at || options.passphraseFile || options.identityFile)
    command.error(
      'With --url, name the backup as <tenant>/<name>, the last two parts of its address. Only --as, --drop-secrets and --yes are supported.',
    )
  if (!options.as) requireConfirmation(command, `Replace all data of the tenant "${tenant}"?`, options)
  const { as, dropSecrets } = options
  using progress = showProgress()
  const restored = await server.runTask<RestoredTenant>(
    `/tenants/${encodeURIComponent(tenant)}/restore${as ? '' : `?confirm=${encodeURIComponent(tenant)}`}`,
    { backup, ...(as && { as }), ...(dropSecrets && { dropSecrets }) },
    progress.update,
  )
  return { restored: [restored], missing: [], failed: [] }
}

/** Restores all tenants of the registry that was just restored. */
async function restoreAll(
  target: Parameters<typeof findLatest>[0],
  options: RestoreOptions,
  { at, registryTime }: { at: number | undefined; registryTime: string },
  progress: ProgressDisplay,
  skipped: string[],
): Promise<RestoreResult> {
  const result: RestoreResult = { restored: [], missing: [], failed: [], ...(skipped.length && { skipped }) }
  for (const { id } of await listTenants()) {
    const control = { onProgress: (step: string, done?: number) => progress.update(id, step, done) }
    try {
      const isOwn = await findOwnBackups(id)
      // What was made later is of a tenant that this registry does not know yet.
      const isWanted: BackupChoice = (manifest) => isOwn?.(manifest) || manifest.created > registryTime
      const backup = await findLatest(target, id, at, isWanted)
      if (!backup) {
        result.missing.push(id)
        continue
      }
      const sound = await withLatestSound(
        backup,
        at,
        (found) => restoreTenant(found, { ...options, as: id, mayReplace: true }, control),
        isWanted,
      )
      result.restored.push(sound.result)
      if (sound.skipped.length) result.skipped = [...(result.skipped ?? []), ...sound.skipped]
    } catch (error) {
      const { message } = getErrorChain(error).at(-1) as Error
      result.failed.push({ tenant: id, code: error instanceof Problem ? error.code : 'INTERNAL', message })
    }
  }
  if (result.failed.length || result.missing.length) process.exitCode = 1
  return result
}

/** @throws 409 OTHER_TENANT when all backups beside one are of an earlier tenant */
async function assertOwnBackup(
  { target, folder, manifest, place }: StoredBackup,
  at: number | undefined,
  isOwn: BackupChoice,
) {
  if (isOwn(manifest) || (await findLatest(target, folderAbove(folder), at, isOwn))) return
  const message = `The backups at ${target.addressOf(folderAbove(folder))} belong to an earlier tenant "${manifest.tenant}", not to the current one. To replace its data anyway, name a single backup, such as ${place}. To restore a copy beside it, pass --as.`
  throw new Problem(409, 'OTHER_TENANT', message)
}

/** A backup that is named itself has one state only. @throws 404 BACKUP_NOT_FOUND for another moment */
function assertMoment({ manifest: { created, complete }, place }: StoredBackup, at: number) {
  const [from, until] = [Math.floor(Date.parse(created) / 1_000) * 1_000, Date.parse(complete)]
  if (at >= from && at <= until) return
  const message = `${place} has the state of ${complete}, not of ${toIsoString(at)}. Omit --at, or name its parent folder to search all backups in it.`
  throw new Problem(404, 'BACKUP_NOT_FOUND', message)
}

function parseTime(text: string, command: Command): number {
  return parseIsoDateTime(text) ?? command.error('--at takes a time such as 2030-01-31T12:00:00Z.')
}
