import { crc32, deflateRawSync, gzipSync } from 'node:zlib'

/** A file of an archive. */
export type Entry = { path: string; content: Uint8Array; isExecutable?: boolean }

const mode = ({ isExecutable }: Entry) => (isExecutable ? 0o755 : 0o644)

/** Returns a `.tar.gz` that depends on nothing but its files and the time (s since 1970). */
export function createTarGz(entries: Entry[], time: number): Uint8Array {
  const blocks = entries.flatMap((entry) => [tarHeader(entry, time), entry.content, padding(entry.content.length)])
  return gzipSync(Buffer.concat([...blocks, new Uint8Array(2 * TAR_BLOCK)]), { level: 9 })
}

const TAR_BLOCK = 512
const padding = (length: number) => new Uint8Array((TAR_BLOCK - (length % TAR_BLOCK)) % TAR_BLOCK)

/** Returns a header of the format ustar (POSIX.1-1988). */
function tarHeader(entry: Entry, time: number): Uint8Array {
  const header = Buffer.alloc(TAR_BLOCK)
  if (entry.path.length > 100) throw new Error(`The path ${entry.path} is too long for an archive.`)
  const writeOctal = (value: number, offset: number, length: number) =>
    header.write(`${value.toString(8).padStart(length - 1, '0')}\0`, offset)
  header.write(entry.path, 0)
  writeOctal(mode(entry), 100, 8)
  writeOctal(0, 108, 8)
  writeOctal(0, 116, 8)
  writeOctal(entry.content.length, 124, 12)
  writeOctal(time, 136, 12)
  header.write('        ', 148) // the checksum is made with blanks in its place
  header.write('0ustar\x0000root', 156)
  header.write('root', 297)
  const checksum = header.reduce((sum, byte) => sum + byte, 0)
  header.write(`${checksum.toString(8).padStart(6, '0')}\0 `, 148)
  return header
}

/** Returns a `.zip` that depends on nothing but its files and the time (s since 1970). */
export function createZip(entries: Entry[], time: number): Uint8Array {
  const parts: Uint8Array[] = []
  const directory: Uint8Array[] = []
  let offset = 0
  for (const entry of entries) {
    const name = Buffer.from(entry.path)
    const packed = deflateRawSync(entry.content, { level: 9 })
    const common = zipFields(entry, packed.length, name.length, time)
    const local = Buffer.concat([signature(0x04034b50), common, uint16(0), name])
    const attributes = Buffer.alloc(14) // no comment, first disk, no internal attributes
    attributes.writeUInt32LE(((0o100000 | mode(entry)) * 0x10000) >>> 0, 6)
    attributes.writeUInt32LE(offset, 10)
    const madeBy = uint16(0x0314) // Unix, version 2.0
    directory.push(Buffer.concat([signature(0x02014b50), madeBy, common, uint16(0), attributes, name]))
    parts.push(local, packed)
    offset += local.length + packed.length
  }
  const index = Buffer.concat(directory)
  const end = Buffer.alloc(22)
  end.writeUInt32LE(0x06054b50, 0)
  end.writeUInt16LE(entries.length, 8)
  end.writeUInt16LE(entries.length, 10)
  end.writeUInt32LE(index.length, 12)
  end.writeUInt32LE(offset, 16)
  return Buffer.concat([...parts, index, end])
}

const signature = (value: number) => {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32LE(value)
  return bytes
}
const uint16 = (value: number) => {
  const bytes = Buffer.alloc(2)
  bytes.writeUInt16LE(value)
  return bytes
}

/** Returns the fields that the local header and the directory of a zip share. */
function zipFields({ content }: Entry, packedLength: number, nameLength: number, time: number): Uint8Array {
  const date = new Date(time * 1_000)
  const fields = Buffer.alloc(24)
  fields.writeUInt16LE(20, 0) // version 2.0 is needed
  fields.writeUInt16LE(0x0800, 2) // names are UTF-8
  fields.writeUInt16LE(8, 4) // deflated
  fields.writeUInt16LE((date.getUTCHours() << 11) | (date.getUTCMinutes() << 5) | (date.getUTCSeconds() >> 1), 6)
  fields.writeUInt16LE(((date.getUTCFullYear() - 1980) << 9) | ((date.getUTCMonth() + 1) << 5) | date.getUTCDate(), 8)
  fields.writeUInt32LE(crc32(content), 10)
  fields.writeUInt32LE(packedLength, 14)
  fields.writeUInt32LE(content.length, 18)
  fields.writeUInt16LE(nameLength, 22)
  return fields
}
