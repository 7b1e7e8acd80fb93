import { now, toIsoString } from '../../core/clock'
import type { LogFrames } from '../../tenancy/databases'
import { type BackupEncryption, KEY_FILE_NAME } from '../encryption'
import { toFolderName } from '../folder-name'
import { storeBytes, storeCompressed } from '../stored-file'
import type { BackupTarget } from '../targets/backup-target'
import { countBytes, encodeSegment, formatSegmentName, type LogBlock } from './log-segment'

/** The folder of a tenant's log, below that of its backups. */
export const LOG_FOLDER = 'log'

/**
 * The log of one database on its way to the target. A generation is a series of segments without a gap; each begins
 * before a backup from which it goes on.
 */
export class ShippedLog {
  #blocks: LogBlock[] = []
  #generation?: { folder: string; nextNumber: number; hasKeyFile: boolean }
  #closedState?: string
  /** How much waits to be stored (bytes). */
  pendingBytes = 0
  /** Since when it waits (ms since 1970). */
  pendingSince?: number

  constructor(readonly folder: string) {}

  /** The database was opened: the generation goes on if nobody wrote to it since it was closed. */
  open(state: string) {
    if (state !== this.#closedState) this.endGeneration()
    this.#closedState = undefined
  }

  close(state: string) {
    this.#closedState = state
  }

  /** Adds transactions. Returns whether they begin a generation, which needs a backup to go on from. */
  add({ frames, pageSize, isGap }: LogFrames): boolean {
    if (isGap) this.endGeneration()
    if (!frames.length) return false
    const time = now()
    const isNew = !this.#generation
    this.#generation ??= {
      folder: `${this.folder}/${LOG_FOLDER}/${toFolderName(toIsoString(time))}`,
      nextNumber: 1,
      hasKeyFile: false,
    }
    this.#blocks.push({ time, pageSize, frames })
    this.pendingBytes += countBytes(frames)
    this.pendingSince ??= time
    return isNew
  }

  /** Ends the series, because something is missing in it. What was not stored yet is of no use any more. */
  endGeneration() {
    this.#generation = undefined
    this.#blocks = []
    this.pendingBytes = 0
    this.pendingSince = undefined
  }

  /** Stores what was added. What cannot be stored stays for the next call. @throws 502 BACKUP_TARGET_FAILED */
  async ship(target: BackupTarget, encryption: BackupEncryption | undefined): Promise<void> {
    const [generation, blocks] = [this.#generation, this.#blocks]
    if (!generation || !blocks.length) return
    const count = blocks.length
    const content = await Bun.zstdCompress(await encodeSegment(blocks.slice(0, count)), { level: 1 })
    const name = formatSegmentName({
      number: generation.nextNumber,
      first: blocks[0]!.time,
      last: blocks[count - 1]!.time,
    })
    if (encryption?.keyFile && !generation.hasKeyFile)
      await storeBytes(target, generation.folder, KEY_FILE_NAME, encryption.keyFile)
    generation.hasKeyFile = true
    await storeCompressed(target, generation.folder, name, content, encryption)
    // It may have ended meanwhile.
    if (this.#generation !== generation) return
    generation.nextNumber++
    this.#blocks = this.#blocks.slice(count)
    this.pendingBytes = this.#blocks.reduce((sum, { frames }) => sum + countBytes(frames), 0)
    this.pendingSince = this.#blocks[0]?.time
  }
}
