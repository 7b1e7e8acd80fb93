import { closeSync, openSync, readSync } from 'node:fs'
import { LastFrames } from './last-frames'

const HEADER_BYTES = 32
const FRAMES_PER_READ = 256
const FRAME_HEADER_BYTES = 24
const MAX_READ_BUFFER_BYTES = 4 << 20
const LITTLE_ENDIAN_MAGIC = 0x377f0682
const BIG_ENDIAN_MAGIC = 0x377f0683

/**
 * A place in the log of a database, after a transaction: which log it is, how far it was read (bytes), and the checksum of
 * all frames until there. It says which state of the database a copy has, whatever the clocks say.
 */
export type LogPosition = { log: string; offset: number; checksum: [number, number] }

/**
 * Frames of a log up to the end of a transaction, the last one of each page, in buffers of whole ones. `end` is the place
 * after them. `isGap` tells that frames before them may be missing.
 */
export type LogFrames = { frames: Buffer[]; pageSize: number; isGap: boolean; end?: LogPosition }

type LogHeader = { bytes: Buffer; pageSize: number; isBigEndian: boolean; checksum: Checksum }
type Checksum = [number, number]

/**
 * Reads what is added to the log of a database (https://sqlite.org/fileformat2.html#walformat), as long as the database
 * is open: the log is the same file until it is closed. Only whole transactions are returned.
 */
export class LogReader {
  #file: number
  #header?: LogHeader
  #position = HEADER_BYTES
  #checksum: Checksum = [0, 0]

  /** @param database the path of an open database */
  constructor(database: string) {
    this.#file = openSync(`${database}-wal`, 'r')
  }

  /** Returns the transactions since the last call, or undefined when there are none. */
  read(): LogFrames | undefined {
    const header = this.#readHeader()
    if (!header) return
    const isGap = !!this.#header && !this.#header.bytes.equals(header.bytes)
    if (isGap || !this.#header) this.#begin(header)
    const frames = this.#readFrames(header)
    return frames.length || isGap ? { frames, pageSize: header.pageSize, isGap, end: this.#end(header) } : undefined
  }

  /** Goes on after a place, if the log still has everything until there. Returns whether it does. */
  resume({ log, offset, checksum }: LogPosition): boolean {
    const header = this.#readHeader()
    if (!header || toLogName(header) !== log) return false
    this.#begin(header)
    this.#readFrames(header, offset)
    const isThere = this.#position === offset && this.#checksum.every((sum, place) => sum === checksum[place])
    if (!isThere) this.#begin(header)
    return isThere
  }

  /** Returns the place after the last whole transaction; undefined for a log that has none. */
  findEnd(): LogPosition | undefined {
    this.read()
    return this.#header && this.#position > HEADER_BYTES ? this.#end(this.#header) : undefined
  }

  #end = (header: LogHeader): LogPosition => ({
    log: toLogName(header),
    offset: this.#position,
    checksum: this.#checksum,
  })

  /**
   * Follows a log that began anew with the write before this call. Everything was read before that write, so nothing is
   * missing.
   */
  followRestart() {
    const header = this.#readHeader()
    if (header && this.#header && !this.#header.bytes.equals(header.bytes)) this.#begin(header)
  }

  close() {
    closeSync(this.#file)
  }

  #begin(header: LogHeader) {
    this.#header = header
    this.#position = HEADER_BYTES
    this.#checksum = header.checksum
  }

  #readHeader(): LogHeader | undefined {
    const bytes = Buffer.alloc(HEADER_BYTES)
    if (readSync(this.#file, bytes, 0, HEADER_BYTES, 0) < HEADER_BYTES) return
    const magic = bytes.readUInt32BE(0)
    if (magic !== LITTLE_ENDIAN_MAGIC && magic !== BIG_ENDIAN_MAGIC) return
    return {
      bytes,
      pageSize: bytes.readUInt32BE(8),
      isBigEndian: magic === BIG_ENDIAN_MAGIC,
      checksum: [bytes.readInt32BE(24), bytes.readInt32BE(28)],
    }
  }

  /** Reads frames as long as they belong to this log, and keeps them up to the last end of a transaction before a place. */
  #readFrames(header: LogHeader, until = Number.POSITIVE_INFINITY): Buffer[] {
    const frameBytes = FRAME_HEADER_BYTES + header.pageSize
    const lastFrames = new LastFrames(frameBytes)
    for (let frames = FRAMES_PER_READ; ; ) {
      const left = Math.floor((until - this.#position) / frameBytes)
      if (left <= 0) return lastFrames.finish()
      const piece = takeReadBuffer(Math.min(frames, left) * frameBytes)
      const length = readSync(this.#file, piece, 0, piece.length, this.#position)
      const { end, isLast } = this.#findEnd(piece, length, header, frameBytes)
      lastFrames.add(piece.subarray(0, end))
      this.#position += end
      if (isLast) return lastFrames.finish()
      if (!end && frames >= left) return lastFrames.finish()
      if (!end) frames *= 2 // a single transaction is longer
    }
  }

  /**
   * Returns where the last whole transaction in a piece of the log ends, and whether the log ends there, too: after it,
   * the file may have frames of an earlier log.
   */
  #findEnd(piece: Buffer, length: number, { bytes: header, isBigEndian }: LogHeader, frameBytes: number) {
    const [firstSalt, secondSalt] = [header.readUInt32BE(16), header.readUInt32BE(20)]
    const words = toWords(piece, isBigEndian)
    const sums = Int32Array.from(this.#checksum)
    let [end, start] = [0, 0]
    for (; start + frameBytes <= length; start += frameBytes) {
      if (piece.readUInt32BE(start + 8) !== firstSalt || piece.readUInt32BE(start + 12) !== secondSalt) break
      addToChecksum(sums, words, start, start + 8)
      addToChecksum(sums, words, start + FRAME_HEADER_BYTES, start + frameBytes)
      if (sums[0] !== piece.readInt32BE(start + 16) || sums[1] !== piece.readInt32BE(start + 20)) break
      if (!piece.readUInt32BE(start + 4)) continue // its transaction goes on
      end = start + frameBytes
      this.#checksum = [sums[0]!, sums[1]!]
    }
    return { end, isLast: start < piece.length }
  }
}

/** Returns the name of a log, which it has until it begins anew: its salts. */
const toLogName = ({ bytes }: LogHeader) => bytes.toString('hex', 16, 24)

/** Adds the words between two places (bytes) to a checksum. All that is written passes here. */
function addToChecksum(sums: Int32Array, words: Int32Array, from: number, to: number) {
  let s0 = sums[0]! | 0
  let s1 = sums[1]! | 0
  for (let place = from >> 2, end = to >> 2; place < end; place += 2) {
    s0 = (s0 + words[place]! + s1) | 0
    s1 = (s1 + words[place + 1]! + s0) | 0
  }
  sums[0] = s0
  sums[1] = s1
}

let readBuffer = Buffer.alloc(0)

/** Returns a buffer that is used again: new ones for all that is written would cost more than reading it. */
function takeReadBuffer(bytes: number): Buffer {
  if (bytes > MAX_READ_BUFFER_BYTES) return Buffer.allocUnsafeSlow(bytes)
  if (bytes > readBuffer.length) readBuffer = Buffer.allocUnsafeSlow(bytes)
  return readBuffer.subarray(0, bytes)
}

/** Returns the numbers of 32 bits in a buffer that has memory of its own; little-endian unless it says otherwise. */
function toWords(bytes: Buffer, isBigEndian: boolean): Int32Array {
  if (!isBigEndian) return new Int32Array(bytes.buffer)
  const swapped = Buffer.allocUnsafeSlow(bytes.length)
  bytes.copy(swapped)
  return new Int32Array(swapped.swap32().buffer)
}

/** Yields the page numbers and contents of frames, and the size of the database after each transaction (pages). */
export function* listFramePages(frames: Buffer, pageSize: number) {
  const frameBytes = FRAME_HEADER_BYTES + pageSize
  for (let start = 0; start + frameBytes <= frames.length; start += frameBytes) {
    const pages = frames.readUInt32BE(start + 4)
    const page = frames.subarray(start + FRAME_HEADER_BYTES, start + frameBytes)
    yield { number: frames.readUInt32BE(start), page, databasePages: pages || undefined }
  }
}
