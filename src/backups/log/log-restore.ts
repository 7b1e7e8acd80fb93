import { closeSync, openSync } from 'node:fs'
import { toIsoString } from '../../core/clock'
import { Problem } from '../../core/problem'
import { joinPath, type StoredBackup } from '../backup-list'
import { type BackupSecrets, createDecryption, isKeyFile } from '../encryption'
import { boundByLater, numberOf, orderFolders } from '../folder-name'
import { decodeStored } from '../stored-file'
import type { BackupTarget } from '../targets/backup-target'
import { applyBlock } from './block-writer'
import { applyEarlierLog } from './earlier-log'
import { decodeSegment, type LogBlock, parseSegmentName } from './log-segment'
import { LOG_FOLDER } from './shipped-log'

/** What a restore takes of the log: until a moment (ms since 1970), and whether a gap may end it before. */
export type LogRange = { until: number; untilGap?: boolean }

type Segment = { name: string; number: number; time: number; bound: number }

/**
 * Writes what the log has after a backup, until a moment, into the restored file of the backup. Returns the time of the
 * last transactions, or undefined when there are none.
 * @throws 409 BACKUP_GAP when the log has more, but not all until then
 * @throws 409 BACKUP_DAMAGED, 403 WRONG_BACKUP_KEY
 */
export async function applyShippedLog(
  backup: StoredBackup,
  secrets: BackupSecrets,
  file: string,
  { until, untilGap = false }: LogRange,
): Promise<number | undefined> {
  const { target, folder, manifest } = backup
  const place = manifest.log
  const logFolder = joinPath(folder.slice(0, Math.max(0, folder.lastIndexOf('/'))), LOG_FOLDER)
  const generations = orderFolders(await target.list(logFolder))
  if (!place) return applyEarlierLog(backup, secrets, file, until)
  const path = joinPath(logFolder, place.generation)
  const segments = await listSegments(target, path, place.segment)
  const decrypt = await openSegments(target, path, segments, secrets)
  const output = openSync(file, 'r+')
  const applied: { last?: number; hasEnded?: boolean } = {}
  let gap: string | undefined
  try {
    let isReached = false
    let expected = segments[0]?.number === place.segment ? place.segment : place.segment + 1
    for (const segment of segments) {
      const address = joinPath(path, segment.name)
      if (segment.number !== expected) gap = `segment ${expected} is missing in ${target.addressOf(path)}`
      const blocks = gap ? [] : await readBlocks(target, address, segment, decrypt)
      if (!blocks) gap = `${target.addressOf(address)} is torn or was changed`
      if (gap) {
        applied.hasEnded = segment.time > until
        break
      }
      expected++
      for (const block of boundByLater(blocks ?? [], segment.bound)) {
        if (block.time > until) applied.hasEnded = true
        if (applied.hasEnded) break
        // A block has what its transactions changed, and the copy ends within the first one that goes on after it.
        isReached ||= block.end?.log === place.log && block.end.offset >= place.offset
        if (!isReached) continue
        applyBlock(block, output)
        applied.last = block.time
      }
      if (applied.hasEnded) break
    }
  } finally {
    closeSync(output)
  }
  const later = generations.find(({ name, time }) => numberOf(name) > numberOf(place.generation) && time <= until)
  if (!gap && !applied.hasEnded && later && (await target.list(joinPath(logFolder, later.name))).length)
    gap = `the log begins anew at ${toIsoString(later.time)}, and no backup was completed since`
  if (gap && !applied.hasEnded && !untilGap) throw gapFound(gap, applied.last ?? Date.parse(manifest.complete))
  return applied.last
}

function gapFound(reason: string, last: number): Problem {
  const until = toIsoString(last)
  return new Problem(
    409,
    'BACKUP_GAP',
    `Everything until ${until} can be restored, but not what was written later: ${reason}. Add --until-gap to restore until ${until}.`,
  )
}

/** Returns the segments from a number on, in their order; `bound` is the earliest time that later ones have. */
async function listSegments(target: BackupTarget, path: string, from: number): Promise<Segment[]> {
  const found = (await target.list(path)).flatMap((name) => {
    const parsed = parseSegmentName(name)
    return parsed && parsed.number >= from ? [{ name, ...parsed }] : []
  })
  found.sort((one, other) => one.number - other.number)
  const bounded = boundByLater(
    found.map(({ name, number, first, last }) => ({ name, number, time: Math.min(first, last) })),
  )
  return bounded.map((segment, place) => ({ ...segment, bound: bounded[place + 1]?.time ?? Number.POSITIVE_INFINITY }))
}

/** Returns what decrypts the segments of a generation; undefined where none is encrypted. */
async function openSegments(target: BackupTarget, path: string, segments: { name: string }[], secrets: BackupSecrets) {
  if (!segments.some(({ name }) => name.endsWith('.age'))) return
  return createDecryption(secrets, async () => {
    const names = (await target.list(path)).filter(isKeyFile)
    const stored = await Promise.all(names.map((name) => target.read(joinPath(path, name))))
    return Promise.all(stored.flatMap((keyFile) => (keyFile ? [new Response(keyFile).bytes()] : [])))
  })
}

/** Returns the blocks of a segment, or undefined for one that is not what was stored. */
async function readBlocks(
  target: BackupTarget,
  address: string,
  { name }: Segment,
  decrypt: Awaited<ReturnType<typeof openSegments>>,
): Promise<LogBlock[] | undefined> {
  try {
    const stored = await target.read(address)
    if (!stored) return
    const content = await decodeStored(stored, name, decrypt)
    return [...decodeSegment(Buffer.concat(await Array.fromAsync(content)))]
  } catch (error) {
    if (error instanceof Problem && error.code !== 'BACKUP_DAMAGED') throw error
  }
}
