import { Command } from 'commander'
import { findLatest, listBackedUpTenants, listBackups } from '../backups/backup-list'
import { type BackupResult, backUp, removeExpired } from '../backups/backups'
import { configuredEncryption, createEncryption, readPassphraseFile } from '../backups/encryption'
import { INSTALLATION_FOLDER } from '../backups/folder-name'
import { parseRetention } from '../backups/retention'
import type { ListedBackup } from '../backups/shapes'
import { claimTarget } from '../backups/target-owner'
import { openTarget } from '../backups/targets'
import type { MadeBackup } from '../backups/tenant-backup'
import { config } from '../config'
import { formatBytes } from '../core/byte-size'
import { Problem } from '../core/problem'
import { lowerPriority } from '../core/process-priority'
import { backupVerify } from './backup-verify'
import { findRemoteServer } from './installation'
import { collectValues } from './option-values'
import { describeMissingFiles, formatTable, pluralize, runAndPrint } from './output'
import { showProgress } from './progress'

type BackupOptions = {
  to?: string
  passphraseFile?: string
  recipient?: string[]
  prune?: boolean
  list?: boolean
  json?: boolean
}

async function listAll(to: string, ids: string[]) {
  const target = openTarget(to)
  await target.probe()
  const installation = ids.length ? undefined : await findLatest(target, INSTALLATION_FOLDER)
  const tenants = ids.length ? ids : await listBackedUpTenants(target)
  const backups = installation ? [installation] : []
  for (const tenant of tenants) backups.push(...(await listBackups(target, tenant)))
  return backups.map(({ place, manifest }) => ({
    tenant: manifest.tenant,
    place,
    created: manifest.created,
    bytes: manifest.files.reduce((sum, { bytes }) => sum + bytes, 0),
    schemaVersion: manifest.schemaVersion,
    encrypted: manifest.encryption !== 'none',
  }))
}

type Listed = Awaited<ReturnType<typeof listAll>>
type Output = Listed | (BackupResult & { removed?: string[] })

/** Makes backups of tenants that may be in use, or lists those that were made. */
export const backup = new Command('backup')
  .description('Back up tenants without downtime')
  .argument('[tenants...]', 'tenant IDs (default: all, the registry, and the keys if the backup is encrypted)')
  .addCommand(backupVerify)
  .option('--to <target>', 'a folder, or s3://bucket/prefix; default: ATOLL_BACKUP_TO')
  .option('--passphrase-file <file>', 'encrypt with the first line of this file (default: ATOLL_BACKUP_PASSPHRASE)')
  .option('--recipient <age1…>', 'encrypt for an age recipient; may be repeated', collectValues)
  .option('--prune', 'delete old backups afterwards, as set by ATOLL_BACKUP_KEEP')
  .option('--list', 'list backups instead')
  .option('--json', 'print JSON')
  .addHelpText(
    'after',
    `

Examples:
  atoll backup --to /mnt/backups
  atoll backup acme --to s3://backups/atoll --passphrase-file passphrase.txt`,
  )
  .action(
    runAndPrint(
      async (ids: string[], options: BackupOptions, command: Command): Promise<Output> => {
        const server = findRemoteServer(command)
        if (server) return backUpRemotely(server, ids, options, command)
        const to =
          options.to ?? (config.ATOLL_BACKUP_TO || command.error('Pass a target with --to, or set ATOLL_BACKUP_TO.'))
        if (options.list) return listAll(to, ids)
        await import('../app') // the store of the contents of files
        lowerPriority(process.pid)
        const target = openTarget(to)
        await claimTarget(target).catch((error) => {
          if (error instanceof Problem && error.code === 'BACKUP_TARGET_TAKEN') throw error
          // What is wrong with the target is told for each tenant.
        })
        const configured = configuredEncryption()
        const encryption = await createEncryption(
          options.passphraseFile ? readPassphraseFile(options.passphraseFile) : configured.passphrase,
          options.recipient ?? configured.recipients,
        )
        using progress = showProgress()
        const result = await backUp(ids, target, encryption, { onProgress: progress.update })
        if (result.failed.length) process.exitCode = 1
        const retention = parseRetention(config.ATOLL_BACKUP_KEEP)
        if (!options.prune || !retention) return result
        return { ...result, removed: await removeExpired(target, retention) }
      },
      (output) => (Array.isArray(output) ? formatList(output) : formatResult(output)),
    ),
  )

type RemoteServer = NonNullable<ReturnType<typeof findRemoteServer>>

/** Lets a server back up tenants into the target of its settings, or list its backups. */
async function backUpRemotely(server: RemoteServer, ids: string[], options: BackupOptions, command: Command) {
  const { to, passphraseFile, recipient, prune, list } = options
  if (to || passphraseFile || recipient || prune)
    command.error('With --url, the server uses its own settings. Only --list, --url and --token are supported.')
  const tenants = ids.length ? ids : (await server.listTenants()).map(({ id }) => id)
  const pathOf = (tenant: string) => `/tenants/${encodeURIComponent(tenant)}/backups`
  if (list) {
    const backups: Listed = []
    for (const tenant of tenants)
      for (const found of await server.call<ListedBackup[]>('GET', pathOf(tenant))) {
        const { place, created, bytes, schemaVersion, encrypted } = found
        backups.push({ tenant, place, created, bytes, schemaVersion, encrypted })
      }
    return backups
  }
  using progress = showProgress()
  const result: BackupResult = { installation: null, backups: [], failed: [] }
  for (const tenant of tenants)
    try {
      result.backups.push(await server.runTask<MadeBackup>(pathOf(tenant), {}, progress.update))
    } catch (error) {
      if (!(error instanceof Problem)) throw error
      result.failed.push({ tenant, code: error.code, message: error.message })
    }
  if (result.failed.length) process.exitCode = 1
  return result
}

const formatList = (backups: Listed) =>
  backups.length
    ? formatTable(
        backups.map(({ tenant, created, bytes, encrypted, place }) => [
          ...[tenant || 'installation', created, formatBytes(bytes, 'en'), encrypted ? 'encrypted' : ''],
          place,
        ]),
      )
    : 'No backups.'

function formatResult({ installation, backups, failed, removed = [] }: BackupResult & { removed?: string[] }) {
  const made = [...(installation ? [{ ...installation, tenant: 'installation' }] : []), ...backups]
  return [
    ...made.map(
      ({ tenant, place, bytes, files, ms }) =>
        `${tenant}: ${formatBytes(bytes, 'en')} in ${ms} ms, ${place}` +
        (files.count ? `, and ${pluralize(files.count, 'content')} of files (${files.added} new)` : '') +
        (files.mended ? `. Stored ${pluralize(files.mended, 'content')} again that were damaged in the target` : '') +
        describeMissingFiles(files),
    ),
    ...failed.map(({ tenant, message }) => `${tenant}: FAILED. ${message}`),
    ...(installation && !installation.encrypted
      ? ['Unencrypted backups do not include the keys (secrets.json). Store a copy elsewhere.']
      : []),
    ...(removed.length ? [`Deleted ${pluralize(removed.length, 'old backup')}.`] : []),
  ].join('\n')
}
