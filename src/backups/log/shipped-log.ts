import { now, toIsoString } from '../../core/clock'
import type { LogFrames, LogPosition } from '../../tenancy/databases'
import { type BackupEncryption, toKeyFileName } from '../encryption'
import { nextNumber, toFolderName } from '../folder-name'
import { storeBytes, storeCompressed } from '../stored-file'
import type { BackupTarget } from '../targets/backup-target'
import { countBytes, encodeSegment, formatSegmentName, type LogBlock, parseSegmentName } from './log-segment'
import { inodeOf, type LogState, readLogState, writeLogState } from './log-state'

/** The folder of a tenant's log, below that of its backups. */
export const LOG_FOLDER = 'log'

/** A series of segments without a gap. It has no name until the target was asked which number is the next. */
type Generation = {
  name?: string
  /** Whether the target was found to have what was stored before a restart. */
  isVerified: boolean
  hasKeyFile: boolean
  hasBackup: boolean
  /** The number and the name of the last segment. */
  segment: number
  segmentName?: string
  end?: LogPosition
  beganAt: number
}
type PendingBlock = LogBlock & { end: LogPosition }

/**
 * The log of one database on its way to the target. A generation needs a backup from which it goes on. How far it is stored
 * is kept beside the database, so that it goes on after a restart, if the log still has everything since then.
 */
export class ShippedLog {
  #blocks: PendingBlock[] = []
  #generation?: Generation
  #saved?: LogState
  #inode = ''
  #closedState?: string
  #shipping?: Promise<string | undefined>
  /** How much waits to be stored (bytes). */
  pendingBytes = 0
  /** Why the log could not be stored the last time. */
  problem?: string

  constructor(
    readonly folder: string,
    private target: BackupTarget,
  ) {
    const saved = readLogState(folder)
    if (saved?.target === target.addressOf('')) this.#saved = saved
  }

  /**
   * The database was opened. Returns where its log has to go on; undefined for its beginning, which is right where nobody
   * wrote to the file since it was closed. Otherwise the generation ends.
   */
  open(fileState: string): LogPosition | undefined {
    const [saved, before] = [this.#saved, this.#closedState]
    this.#saved = undefined
    this.#closedState = undefined
    this.#inode = inodeOf(fileState)
    if (this.#generation) {
      if (fileState !== before) this.endGeneration()
      return
    }
    if (!saved || saved.inode !== this.#inode) return
    this.#generation = resumeGeneration(saved)
    return saved.closed === fileState ? undefined : saved.end
  }

  close(fileState: string) {
    this.#closedState = fileState
    if (!this.#blocks.length) this.#save()
  }

  /** Adds transactions. */
  add({ frames, pageSize, isGap, end }: LogFrames) {
    if (isGap) this.endGeneration()
    if (!frames.length || !end) return
    const time = now()
    this.#generation ??= createGeneration(time)
    this.#blocks.push({ time, pageSize, frames, end })
    this.pendingBytes += countBytes(frames)
  }

  /** Ends the series, because something is missing in it. What was not stored yet is of no use any more. */
  endGeneration() {
    this.#generation = undefined
    this.#saved = undefined
    this.#blocks = []
    this.pendingBytes = 0
  }

  /**
   * Begins a new series with what waits, because the target lost what was stored before. Returns whether there was a
   * series.
   */
  restartGeneration(): boolean {
    if (!this.#generation) return false
    const { end } = this.#generation
    this.#generation = { ...createGeneration(this.#blocks[0]?.time ?? now()), end }
    return true
  }

  /** Tells whether the generation has no backup yet from which it goes on, and is ready for one. */
  get needsBackup(): boolean {
    return !!this.#generation?.name && !this.#generation.hasBackup
  }

  get generationName(): string | undefined {
    return this.#generation?.name
  }

  /** Notes that a backup was made since the generation began. */
  confirmBackup(generation: string | undefined) {
    // A backup that began before the series had a name does not go on with it.
    if (!generation || this.#generation?.name !== generation) return
    this.#generation.hasBackup = true
    this.#save()
  }

  /** Since when something was written that cannot be restored from the target (ms since 1970). */
  get unprotectedSince(): number | undefined {
    const generation = this.#generation
    if (generation && !generation.hasBackup) return generation.beganAt
    return this.#blocks[0]?.time
  }

  /**
   * Stores what was added, and returns the path of its segment, if there was something. What cannot be stored stays for the
   * next call. @throws 502 BACKUP_TARGET_FAILED
   */
  ship(encryption: BackupEncryption | undefined): Promise<string | undefined> {
    this.#shipping ??= this.#ship(encryption).finally(() => {
      this.#shipping = undefined
    })
    return this.#shipping
  }

  async #ship(encryption: BackupEncryption | undefined): Promise<string | undefined> {
    const generation = this.#generation
    if (!generation) return
    if (!generation.isVerified && !(await this.#verify(generation))) return void this.restartGeneration()
    if (!generation.name) {
      const names = await this.target.list(`${this.folder}/${LOG_FOLDER}`)
      if (this.#generation !== generation) return
      generation.name = toFolderName(toIsoString(generation.beganAt), nextNumber(names))
      this.#save()
    }
    const blocks = this.#blocks.slice()
    if (blocks.length) return this.#store(generation, generation.name, blocks, encryption)
  }

  async #store(
    generation: Generation,
    generationName: string,
    blocks: PendingBlock[],
    encryption: BackupEncryption | undefined,
  ): Promise<string | undefined> {
    const folder = `${this.folder}/${LOG_FOLDER}/${generationName}`
    const content = await Bun.zstdCompress(await encodeSegment(blocks), { level: 1 })
    const [first, last] = [blocks[0]!, blocks.at(-1)!]
    const number = generation.segment + 1
    const name = formatSegmentName({ number, first: first.time, last: last.time })
    if (encryption?.keyFile && !generation.hasKeyFile)
      await storeBytes(this.target, folder, toKeyFileName(number), encryption.keyFile)
    generation.hasKeyFile = true
    if (this.#generation !== generation) return
    this.#save({ name, end: last.end })
    await storeCompressed(this.target, folder, name, content, encryption)
    // It may have ended meanwhile.
    if (this.#generation !== generation) return
    Object.assign(generation, { segment: number, segmentName: name, end: last.end })
    this.#blocks = this.#blocks.slice(blocks.length)
    this.pendingBytes = this.#blocks.reduce((sum, { frames }) => sum + countBytes(frames), 0)
    this.#save()
    return `${folder}/${name}`
  }

  /**
   * Asks the target whether it has the last segment of a generation that goes on after a restart. One that was being
   * stored then may be there as well; others would be of a data folder that was set back.
   */
  async #verify(generation: Generation): Promise<boolean> {
    const names = await this.target.list(`${this.folder}/${LOG_FOLDER}/${generation.name}`)
    const numbers = names.flatMap((name) => parseSegmentName(name)?.number ?? [])
    const last = Math.max(0, ...numbers)
    const wasStored = names.some((name) => generation.segmentName && name.startsWith(generation.segmentName))
    if (last === generation.segment + 1 && wasStored) generation.segment = last
    // Each process has a key of its own.
    generation.hasKeyFile = false
    generation.isVerified = last === generation.segment && (last > 0 || generation.hasBackup)
    return generation.isVerified
  }

  #save(next?: LogState['next']) {
    const { name, segment, end, hasBackup } = this.#generation ?? {}
    if (!name || segment === undefined) return
    const closed = this.#blocks.length ? undefined : this.#closedState
    writeLogState(this.folder, {
      ...{ target: this.target.addressOf(''), generation: name, inode: this.#inode, segment, hasBackup: !!hasBackup },
      ...(end && { end }),
      ...(next && { next }),
      ...(closed && { closed }),
    })
  }
}

const createGeneration = (beganAt: number): Generation => ({
  ...{ isVerified: true, hasKeyFile: false, hasBackup: false, segment: 0, beganAt },
})

const resumeGeneration = ({ generation, segment, end, next, hasBackup }: LogState): Generation => ({
  ...{ name: generation, isVerified: false, hasKeyFile: false, hasBackup, segment, end, beganAt: now() },
  ...(next && { segmentName: next.name }),
})
