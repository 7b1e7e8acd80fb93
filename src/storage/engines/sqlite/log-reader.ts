import { closeSync, openSync, readSync } from 'node:fs'

const HEADER_BYTES = 32
const FRAMES_PER_READ = 1_024
const FRAME_HEADER_BYTES = 24
const LITTLE_ENDIAN_MAGIC = 0x377f0682
const BIG_ENDIAN_MAGIC = 0x377f0683

/** Frames of a log up to the end of a transaction, the last one of each page. `isGap` tells that frames before them may be missing. */
export type LogFrames = { frames: Buffer; pageSize: number; isGap: boolean }

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
    return frames.length || isGap ? { frames, pageSize: header.pageSize, isGap } : undefined
  }

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
      checksum: [bytes.readUInt32BE(24), bytes.readUInt32BE(28)],
    }
  }

  /** Reads frames as long as they belong to this log, and keeps them up to the last end of a transaction. */
  #readFrames(header: LogHeader): Buffer {
    const frameBytes = FRAME_HEADER_BYTES + header.pageSize
    const pieces: Buffer[] = []
    for (let frames = FRAMES_PER_READ; ; ) {
      const piece = Buffer.allocUnsafeSlow(frames * frameBytes)
      const length = readSync(this.#file, piece, 0, piece.length, this.#position)
      const { end, isLast } = this.#findEnd(piece, length, header, frameBytes)
      if (end) pieces.push(piece.subarray(0, end))
      this.#position += end
      if (isLast) return keepLastFrames(pieces, frameBytes)
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
    let [end, s0, s1] = [0, ...this.#checksum]
    const addToChecksum = (from: number, to: number) => {
      for (let place = from >> 2; place < to >> 2; place += 2) {
        s0 = (s0 + words[place]! + s1) | 0
        s1 = (s1 + words[place + 1]! + s0) | 0
      }
    }
    let start = 0
    for (; start + frameBytes <= length; start += frameBytes) {
      if (piece.readUInt32BE(start + 8) !== firstSalt || piece.readUInt32BE(start + 12) !== secondSalt) break
      addToChecksum(start, start + 8)
      addToChecksum(start + FRAME_HEADER_BYTES, start + frameBytes)
      if (s0 >>> 0 !== piece.readUInt32BE(start + 16) || s1 >>> 0 !== piece.readUInt32BE(start + 20)) break
      if (!piece.readUInt32BE(start + 4)) continue // its transaction goes on
      end = start + frameBytes
      this.#checksum = [s0, s1]
    }
    return { end, isLast: start < piece.length }
  }
}

/**
 * Returns the last frame of each page, as one transaction. Busy pages are in many frames, of which only the last one
 * counts.
 */
function keepLastFrames(pieces: Buffer[], frameBytes: number): Buffer {
  const last = new Map<number, Buffer>()
  let databasePages = 0
  for (const piece of pieces)
    for (let start = 0; start < piece.length; start += frameBytes) {
      last.set(piece.readUInt32BE(start), piece.subarray(start, start + frameBytes))
      databasePages = piece.readUInt32BE(start + 4) || databasePages
    }
  const frames = Buffer.concat([...last.values()])
  for (let start = 0; start < frames.length; start += frameBytes)
    frames.writeUInt32BE(start + frameBytes === frames.length ? databasePages : 0, start + 4)
  return frames
}

/** Returns the numbers of 32 bits in a buffer that has memory of its own; little-endian unless it says otherwise. */
function toWords(bytes: Buffer, isBigEndian: boolean): Uint32Array {
  if (!isBigEndian) return new Uint32Array(bytes.buffer)
  const swapped = Buffer.allocUnsafeSlow(bytes.length)
  bytes.copy(swapped)
  return new Uint32Array(swapped.swap32().buffer)
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
