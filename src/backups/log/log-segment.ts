import { Problem } from '../../core/problem'

const EARLIER_HEADER_BYTES = 16
const HEADER_BYTES = 32
const HASH_BYTES = 32

/**
 * Transactions that were read from a log together: when (ms since 1970), and their frames, in buffers of whole ones; and
 * where in which log they end, which earlier versions did not store.
 */
export type LogBlock = { time: number; pageSize: number; frames: Buffer[]; end?: { log: string; offset: number } }

export const countBytes = (frames: Buffer[]): number => frames.reduce((sum, { length }) => sum + length, 0)

/**
 * Returns the bytes of a segment: the SHA-256 of the rest; and for each block its time (a double), the page size and the
 * length (32 bits each), the name of its log (8 bytes), and where it ends there (a double), in little-endian order, and its
 * frames.
 */
export async function encodeSegment(blocks: LogBlock[]): Promise<Buffer<ArrayBuffer>> {
  const parts = blocks.flatMap(({ time, pageSize, frames, end }) => {
    const header = Buffer.alloc(HEADER_BYTES)
    header.writeDoubleLE(time, 0)
    header.writeUInt32LE(pageSize, 8)
    header.writeUInt32LE(countBytes(frames), 12)
    header.write(end?.log ?? '', 16, 'hex')
    header.writeDoubleLE(end?.offset ?? 0, 24)
    return [header, ...frames]
  })
  const bytes = Buffer.concat([Buffer.alloc(HASH_BYTES), ...parts])
  // In another thread, because it is done for all that is written.
  bytes.set(new Uint8Array(await crypto.subtle.digest('SHA-256', bytes.subarray(HASH_BYTES))), 0)
  return bytes
}

/** Yields the blocks of a segment, or of one of an earlier version. @throws 409 BACKUP_DAMAGED for a torn or changed one */
export function* decodeSegment(bytes: Buffer, isEarlier = false): Generator<LogBlock> {
  const headerBytes = isEarlier ? EARLIER_HEADER_BYTES : HEADER_BYTES
  const hash = new Bun.CryptoHasher('sha256').update(bytes.subarray(HASH_BYTES)).digest()
  if (!hash.equals(bytes.subarray(0, HASH_BYTES)))
    throw new Problem(409, 'BACKUP_DAMAGED', 'A segment of the log is torn or was changed.')
  for (let start = HASH_BYTES; start < bytes.length; ) {
    const end = start + headerBytes
    const length = bytes.readUInt32LE(start + 12)
    const [time, pageSize] = [bytes.readDoubleLE(start), bytes.readUInt32LE(start + 8)]
    const place = isEarlier
      ? undefined
      : { log: bytes.toString('hex', start + 16, start + 24), offset: bytes.readDoubleLE(start + 24) }
    yield { time, pageSize, frames: [bytes.subarray(end, end + length)], ...(place && { end: place }) }
    start = end + length
  }
}

/** The name of a segment: its number within its generation, and the times of its first and last block. */
export type SegmentName = { number: number; first: number; last: number }

export const formatSegmentName = ({ number, first, last }: SegmentName): string =>
  `${String(number).padStart(8, '0')}-${first}-${last}.log`

/** Returns what the name of a stored segment says, or undefined for other files. */
export function parseSegmentName(name: string): SegmentName | undefined {
  const [, number, first, last] = /^(\d{8,})-(\d+)-(\d+)\.log\.zst(\.age)?$/.exec(name) ?? []
  return number ? { number: Number(number), first: Number(first), last: Number(last) } : undefined
}
