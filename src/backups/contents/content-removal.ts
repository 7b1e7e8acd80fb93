import { DAY_MS, HOUR_MS, MINUTE_MS, now, toIsoString } from '../../core/clock'
import { joinPath } from '../backup-list'
import { parseFolderName, toFolderName } from '../folder-name'
import { MANIFEST_NAME, parseManifest } from '../manifest'
import { storeBytes } from '../stored-file'
import type { BackupTarget } from '../targets/backup-target'
import { CONTENTS_FOLDER, findListing, readListing, readUnfinishedListing } from './content-list'

const PRUNING_FOLDER = 'pruning'
const MAX_PRUNING_MS = 30 * MINUTE_MS
const MARK_EXPIRES_MS = HOUR_MS // the mark of a process that died; longer by what clocks may differ
const POLL_MS = 500

/**
 * Removes the contents of a tenant that no backup needs. A mark in the target tells backups that begin meanwhile to
 * wait. A backup writes its list before it looks for marks, and here the mark is written before the lists are read: so at
 * least one of both sees the other, and no content is removed that a backup found in the target.
 * @throws 409 BACKUP_DAMAGED when a list cannot be read; then nothing is removed
 */
export async function pruneContents(target: BackupTarget, tenant: string): Promise<number> {
  const stored = await target.list(`${tenant}/${CONTENTS_FOLDER}`)
  if (!stored.length) return 0
  const startedAt = now()
  const mark = toFolderName(toIsoString(startedAt))
  await storeBytes(target, `${tenant}/${PRUNING_FOLDER}`, mark, new Uint8Array([10]))
  try {
    const needed = await readNeededNames(target, tenant)
    let removed = 0
    for (const name of await target.list(`${tenant}/${CONTENTS_FOLDER}`)) {
      if (needed.has(name)) continue
      if (now() > startedAt + MAX_PRUNING_MS) break // the next run goes on
      await target.removeFile(`${tenant}/${CONTENTS_FOLDER}/${name}`)
      removed++
    }
    return removed
  } finally {
    await target.removeFile(`${tenant}/${PRUNING_FOLDER}/${mark}`)
  }
}

/** Returns what all backups of a tenant need, also those that are being made. */
async function readNeededNames(target: BackupTarget, tenant: string): Promise<Set<string>> {
  const needed = new Set<string>()
  for (const name of await target.list(tenant)) {
    if (parseFolderName(name) === undefined) continue
    for (const needs of await readNames(target, joinPath(tenant, name))) needed.add(needs)
  }
  return needed
}

async function readNames(target: BackupTarget, folder: string): Promise<Set<string>> {
  const place = target.addressOf(folder)
  const content = await target.read(joinPath(folder, MANIFEST_NAME))
  if (!content) return readUnfinishedListing(target, folder)
  const manifest = parseManifest(await new Response(content).text(), place)
  return findListing(manifest) ? readListing({ target, folder, place, manifest }) : new Set()
}

/** Waits until nobody removes contents of a tenant from the target. */
export async function waitForPruning(target: BackupTarget, tenant: string, signal: AbortSignal | undefined) {
  for (;;) {
    const marks = (await target.list(`${tenant}/${PRUNING_FOLDER}`)).map((name) => parseFolderName(name) ?? 0)
    // A clock may be wrong by more than a day, but then its mark is not waited for forever.
    if (!marks.some((time) => time > now() - MARK_EXPIRES_MS && time < now() + DAY_MS)) return
    signal?.throwIfAborted()
    await Bun.sleep(POLL_MS)
  }
}
