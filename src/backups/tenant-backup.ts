import { join } from 'node:path'
import { tenantMigrations } from '../../migrations'
import { version } from '../../package.json'
import { now, toIsoString } from '../core/clock'
import { Problem } from '../core/problem'
import { measureDatabase } from '../tenancy/database-size'
import { copyDatabase, databases, inspectDatabaseFile } from '../tenancy/databases'
import { getKeyFingerprints } from '../tenancy/installation-keys'
import { locationOf, type TenantRecord } from '../tenancy/placement'
import { createStagedFolder, type StagedFolder } from '../tenancy/staged-folder'
import { type BackedUpContents, NO_CONTENTS, storeContents } from './contents/content-backup'
import { type ContentHold, holdContents } from './contents/content-hold'
import { ContentCollector, listContentsOfFile, type NamedContent } from './contents/named-contents'
import { type BackupEncryption, KEY_FILE_NAME } from './encryption'
import { INSTALLATION_FOLDER, nextNumber, toFolderName } from './folder-name'
import { findCopyPlace, readLogState } from './log/log-state'
import { createManifest, MANIFEST_NAME, type Manifest } from './manifest'
import { writeRows } from './rows'
import { storeBytes, storeFile } from './stored-file'
import type { BackupTarget } from './targets/backup-target'

/** What a backup or a restore reports while it runs, and what ends it early. */
export type BackupControl = {
  /** Receives what is being done, and how much of it, from 0 to 1, where that is known. */
  onProgress?(step: string, fraction?: number): void
  signal?: AbortSignal
}

/** A backup that was made: `place` is its address, `bytes` its size in the target, `ms` how long it took. */
export type MadeBackup = {
  tenant: string
  place: string
  created: string
  bytes: number
  ms: number
  encrypted: boolean
  /** The contents of files, whose bytes are not among `bytes`. */
  files: BackedUpContents
}

/**
 * A copy in the staging folder, and what it contains, which is known once it is checked; of a tenant also the contents of
 * files that it names.
 */
export type StagedCopy = {
  path: string
  name: string
  contents: Promise<CopyContents>
  fileContents?: NamedContent[]
  log?: Manifest['log']
}
type CopyContents = Pick<Manifest, 'content' | 'schemaVersion' | 'rows' | 'readBy'>

/**
 * Makes a backup of a tenant while it is used. It counts as one only when its copy is complete and sound, and what was
 * stored was read back.
 * @throws 409 DATABASE_DAMAGED when the copy is not sound
 * @throws 502 BACKUP_TARGET_FAILED, 507 STORAGE_FULL
 */
export async function backUpTenant(
  entry: TenantRecord,
  target: BackupTarget,
  encryption: BackupEncryption | undefined,
  control: BackupControl = {},
): Promise<MadeBackup> {
  using staged = createStagedFolder((await measureDatabase(entry)) ?? 0)
  await using hold = await holdContents(entry)
  const copy = () => (entry.home ? stageRows(entry, staged, control) : stageDatabase(entry, staged, control))
  const uids = [entry.uid, ...(entry.earlierUids ?? [])]
  return await storeBackup({ tenant: entry.id, uids, copy, hold, target, encryption, control })
}

async function stageDatabase(entry: TenantRecord, { file }: StagedFolder, control: BackupControl): Promise<StagedCopy> {
  const onBytes = (copied: number, total: number) => control.onProgress?.('copying', copied / total)
  const state = readLogState(entry.id)
  const end = await copyDatabase(locationOf(entry), file, { onBytes, signal: control.signal })
  const log = findCopyPlace(end, state)
  return { ...toStagedCopy(file), ...(log && { log }), fileContents: await listContentsOfFile(file) }
}

/** Returns a copy of a database file, which is being checked. */
export const toStagedCopy = (path: string): StagedCopy => ({ path, name: 'data.db', contents: checkCopy(path) })

/** @throws 409 DATABASE_DAMAGED */
async function checkCopy(path: string): Promise<CopyContents> {
  const { flaws, contents } = await inspectDatabaseFile(path)
  if (!contents) {
    const details = flaws.map((message) => ({ path: '', message }))
    throw new Problem(409, 'DATABASE_DAMAGED', `The copy of the database is damaged: ${flaws[0]}`, { details })
  }
  const { drivers: readBy, ...counted } = contents
  return { content: 'sqlite', ...counted, readBy }
}

/** Writes the rows of a tenant in PostgreSQL into a staged file. */
export async function stageRows(
  entry: TenantRecord,
  { path }: StagedFolder,
  control: BackupControl,
): Promise<StagedCopy> {
  const file = join(path, 'rows.jsonl')
  const source = await databases.openTenantCopy(locationOf(entry), tenantMigrations)
  try {
    const onRows = (count: number) => control.onProgress?.(`copied ${count} rows`)
    const collector = new ContentCollector()
    const { filter } = collector
    const rows = await writeRows(entry.id, source, Bun.file(file).writer(), { onRows, signal: control.signal, filter })
    const schemaVersion = tenantMigrations.postgres.length
    const contents: CopyContents = { content: 'rows', schemaVersion, rows, readBy: ['postgres'] }
    return { path: file, name: 'rows.jsonl', contents: Promise.resolve(contents), fileContents: collector.list() }
  } finally {
    await source.close()
  }
}

type BackupOrder = {
  /** The tenant, or undefined for the installation. */
  tenant?: string
  uids?: string[]
  copy(): Promise<StagedCopy>
  /** Keeps the contents of the tenant's files until they are stored. */
  hold?: ContentHold
  /** Small files that are stored only in an encrypted backup, by name. */
  secretFiles?: Record<string, string>
  target: BackupTarget
  encryption: BackupEncryption | undefined
  control: BackupControl
}

/** Stores a staged copy, and its manifest last: a folder without one is no backup. */
export async function storeBackup({
  tenant,
  uids,
  copy,
  hold,
  secretFiles,
  target,
  encryption,
  control,
}: BackupOrder): Promise<MadeBackup> {
  const startedAt = performance.now()
  const created = toIsoString(now())
  const parent = tenant ?? INSTALLATION_FOLDER
  const folder = `${parent}/${toFolderName(created, nextNumber(await target.list(parent)))}`
  try {
    const { path, name, contents: checked, fileContents = [], log } = await copy()
    const complete = toIsoString(now())
    control.onProgress?.('checking and storing')
    const stored = storeFile(target, folder, { name, open: () => Bun.file(path).stream() }, encryption)
    await Promise.allSettled([checked, stored]) // the staged copy is in use until both have ended
    const [contents, files] = [await checked, [await stored]]
    for (const [name, text] of encryption ? Object.entries(secretFiles ?? {}) : [])
      files.push(await storeFile(target, folder, { name, open: () => new Blob([text]).stream() }, encryption))
    const contentOrder = tenant && hold && { tenant, contents: fileContents, target, folder, encryption, hold, control }
    const storedContents = contentOrder ? await storeContents(contentOrder) : undefined
    files.push(...(storedContents?.files ?? []))
    if (encryption?.keyFile) await storeBytes(target, folder, KEY_FILE_NAME, encryption.keyFile)
    const manifest = createManifest({
      ...{
        kind: tenant ? 'tenant' : 'installation',
        tenant: tenant ?? '',
        ...(uids && { uids }),
        created,
        complete,
        version,
        ...contents,
        files,
        ...(storedContents && { contents: storedContents.summary }),
        ...(log && { log }),
      },
      encryption: encryption ? 'age' : 'none',
      keys: await getKeyFingerprints(),
    })
    control.signal?.throwIfAborted()
    await storeBytes(target, folder, MANIFEST_NAME, Buffer.from(`${JSON.stringify(manifest, null, 2)}\n`))
    const bytes = files.reduce((sum, { bytes }) => sum + bytes, 0)
    const ms = Math.round(performance.now() - startedAt)
    const made = { tenant: tenant ?? '', place: target.addressOf(folder), created, bytes, ms, encrypted: !!encryption }
    return { ...made, files: storedContents?.summary ?? NO_CONTENTS }
  } catch (error) {
    // Without a manifest it is no backup; its rest would only take room.
    await target.removeFolder(folder).catch(() => {})
    throw error
  }
}
