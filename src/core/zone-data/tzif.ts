import { parsePosixRule } from './posix-rule'
import { addYearlyChanges, type ZoneRules } from './zone-rules'

const HEADER_BYTES = 44

/**
 * Reads a compiled file of the time zone database (RFC 9636). Returns undefined for another file, and for one that
 * counts leap seconds, which no clock of ours does.
 */
export function parseTzif(bytes: Uint8Array): ZoneRules | undefined {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const text = (from: number, to: number) => String.fromCharCode(...bytes.subarray(from, to))
  if (bytes.byteLength < HEADER_BYTES || text(0, 4) !== 'TZif') return
  const first = readBlock(view, 0, 4)
  // Since version 2, a second block has times of 64 bits, and behind it the rule of later years.
  const block = bytes[4] === 0 ? first : readBlock(view, first.end, 8)
  if (block.leapSeconds) return
  const footer = bytes[4] === 0 ? '' : text(block.end, bytes.byteLength).trim()
  const rules = { starts: [Number.NEGATIVE_INFINITY, ...block.starts], offsets: block.offsets }
  const changes = parsePosixRule(footer)
  return changes ? addYearlyChanges(rules, changes) : { ...rules, repeats: false }
}

/** Reads a block whose times have some bytes. The first offset is that before the first time. */
function readBlock(view: DataView, at: number, timeBytes: 4 | 8) {
  const [utcFlags, wallFlags, leapSeconds, times, types, names] = [20, 24, 28, 32, 36, 40].map((offset) =>
    view.getUint32(at + offset),
  ) as [number, number, number, number, number, number]
  const timesAt = at + HEADER_BYTES
  const indexesAt = timesAt + times * timeBytes
  const typesAt = indexesAt + times
  const offsetOf = (type: number) => view.getInt32(typesAt + type * 6) * 1_000
  const readTime = (index: number) =>
    timeBytes === 4 ? view.getInt32(timesAt + index * 4) : Number(view.getBigInt64(timesAt + index * 8))
  return {
    leapSeconds,
    starts: Array.from({ length: times }, (_, index) => readTime(index) * 1_000),
    offsets: [offsetOf(0), ...Array.from({ length: times }, (_, index) => offsetOf(view.getUint8(indexesAt + index)))],
    end: typesAt + types * 6 + names + leapSeconds * (timeBytes + 4) + wallFlags + utcFlags,
  }
}
