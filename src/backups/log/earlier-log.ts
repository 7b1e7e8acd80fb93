import { closeSync, openSync } from 'node:fs'
import { joinPath, type StoredBackup } from '../backup-list'
import { type BackupSecrets, createDecryption, KEY_FILE_NAME } from '../encryption'
import { numberOf, parseFolderName } from '../folder-name'
import { decodeStored } from '../stored-file'
import { applyBlock } from './block-writer'
import { decodeSegment, type LogBlock, parseSegmentName } from './log-segment'
import { LOG_FOLDER } from './shipped-log'

/** How much earlier than a backup its log is read: the clocks of the processes may differ a little (ms). */
const OVERLAP_MS = 5_000

/**
 * Does the same for a log that an earlier version stored, which says only by time where a backup is in it. Writes what the
 * log has after a backup, until a moment (ms since 1970), into the restored file of the backup. Returns
 * the time of the last transactions, or undefined when there are none.
 * @throws 409 BACKUP_DAMAGED, 403 WRONG_BACKUP_KEY
 */
export async function applyEarlierLog(
  backup: StoredBackup,
  secrets: BackupSecrets,
  file: string,
  until: number,
): Promise<number | undefined> {
  const output = openSync(file, 'r+')
  const complete = Date.parse(backup.manifest.complete)
  let last: number | undefined
  try {
    let blocksBeforeCompletion: LogBlock[] | undefined = []
    for await (const block of readLog(backup, secrets)) {
      if (block.time > until) break
      blocksBeforeCompletion?.push(block)
      // Blocks from before would take pages back that the backup has; only those after it make them whole again.
      if (block.time <= complete) continue
      for (const due of blocksBeforeCompletion ?? [block]) applyBlock(due, output)
      blocksBeforeCompletion = undefined
      last = block.time
    }
  } finally {
    closeSync(output)
  }
  return last
}

/** Yields the blocks of the generation in which a backup was made, from shortly before it, as far as none is missing. */
async function* readLog(
  { target, folder: own, manifest }: StoredBackup,
  secrets: BackupSecrets,
): AsyncGenerator<LogBlock> {
  const folder = joinPath(own.slice(0, Math.max(0, own.lastIndexOf('/'))), LOG_FOLDER)
  const created = Date.parse(manifest.created)
  const generations = (await target.list(folder)).filter(
    (name) => !numberOf(name) && (parseFolderName(name) ?? created + 1) <= created,
  )
  const generation = generations.at(-1)
  if (!generation) return
  const path = joinPath(folder, generation)
  const all = (await target.list(path)).flatMap((name) => {
    const segment = parseSegmentName(name)
    return segment ? { name, ...segment } : []
  })
  const segments = all.filter(({ last }) => last >= created - OVERLAP_MS)
  const first = segments[0]?.number ?? 1
  // Without the one before the first, nothing tells whether others are missing there.
  if (first > 1 && !all.some(({ number }) => number === first - 1)) return
  const decrypt = segments.some(({ name }) => name.endsWith('.age'))
    ? await createDecryption(secrets, async () => {
        const keyFile = await target.read(joinPath(path, KEY_FILE_NAME))
        return keyFile ? [await new Response(keyFile).bytes()] : []
      })
    : undefined
  let expected = first
  for (const { name, number } of segments) {
    if (number !== expected) return
    expected = number + 1
    const address = joinPath(path, name)
    const content = await decodeStored((await target.read(address))!, name, decrypt)
    yield* decodeSegment(Buffer.concat(await Array.fromAsync(content)), true)
  }
}
