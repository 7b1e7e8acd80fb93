import { createHash } from 'node:crypto'

// The format of Mach-O files and of their signatures: <mach-o/loader.h> and <Security/CSCommon.h> of macOS.
const MAGIC_64 = 0xfeedfacf
const LC_SEGMENT_64 = 0x19
const LC_CODE_SIGNATURE = 0x1d
const SUPER_BLOB = 0xfade0cc0
const CODE_DIRECTORY = 0xfade0c02
const AD_HOC = 0x2
const SHA256 = 2
const PAGE_BITS = 12
const PAGE = 1 << PAGE_BITS
const HASH_LENGTH = 32
const HEADER_LENGTH = 88 // of a code directory of version 0x20400

/** Returns the command that names the place of the signature, and the segments by their names. */
function readCommands(file: Buffer) {
  if (file.readUInt32LE(0) !== MAGIC_64) throw new Error('This is not an executable of macOS.')
  const segments = new Map<string, number>()
  let signature: number | undefined
  let offset = 32
  for (let left = file.readUInt32LE(16); left > 0; left--) {
    const command = file.readUInt32LE(offset)
    if (command === LC_CODE_SIGNATURE) signature = offset
    if (command === LC_SEGMENT_64)
      segments.set(file.toString('latin1', offset + 8, offset + 24).replace(/\0+$/, ''), offset)
    offset += file.readUInt32LE(offset + 4)
  }
  if (signature === undefined) throw new Error('This executable has no place for a signature.')
  return { signature, start: file.readUInt32LE(signature + 8), segments }
}

const hashPages = (file: Buffer, end: number): Buffer[] => {
  const hashes: Buffer[] = []
  for (let at = 0; at < end; at += PAGE)
    hashes.push(
      createHash('sha256')
        .update(file.subarray(at, Math.min(at + PAGE, end)))
        .digest(),
    )
  return hashes
}

/** Tells whether the signature covers the whole executable and each page has the hash that it names. */
export function isSignatureValid(file: Buffer): boolean {
  const { start } = readCommands(file)
  if (file.readUInt32BE(start) !== SUPER_BLOB) return false
  const directory = start + file.readUInt32BE(start + 16)
  if (file.readUInt32BE(directory) !== CODE_DIRECTORY || file[directory + 37] !== SHA256) return false
  const [hashes, count, end] = [16, 28, 32].map((at) => file.readUInt32BE(directory + at)) as [number, number, number]
  if (end !== start || count !== Math.ceil(end / PAGE)) return false
  return hashPages(file, end).every((hash, page) => {
    const at = directory + hashes + page * HASH_LENGTH
    return hash.equals(file.subarray(at, at + HASH_LENGTH))
  })
}

/**
 * Returns the executable with an ad-hoc signature in place of the one that it has. Bun leaves its own signature of the
 * runtime in executables for Intel, which names other pages: macOS would end the program at its start.
 */
export function signAdHoc(original: Buffer, identifier: string): Buffer {
  const { signature, start, segments } = readCommands(original)
  const name = Buffer.from(`${identifier}\0`)
  const count = Math.ceil(start / PAGE)
  const directoryLength = HEADER_LENGTH + name.length + count * HASH_LENGTH
  const length = 20 + directoryLength
  const file = Buffer.concat([original.subarray(0, start), Buffer.alloc(length)])
  file.writeUInt32LE(length, signature + 12)
  const linkedit = segments.get('__LINKEDIT')!
  const linkeditStart = Number(file.readBigUInt64LE(linkedit + 40))
  const linkeditLength = start + length - linkeditStart
  file.writeBigUInt64LE(BigInt(linkeditLength), linkedit + 48)
  const roundedLength = Math.ceil(linkeditLength / 0x4000) * 0x4000
  if (roundedLength > Number(file.readBigUInt64LE(linkedit + 32)))
    file.writeBigUInt64LE(BigInt(roundedLength), linkedit + 32)

  const text = segments.get('__TEXT')!
  const header = Buffer.alloc(HEADER_LENGTH)
  const fields: [value: number, offset: number][] = [
    [CODE_DIRECTORY, 0],
    [directoryLength, 4],
    [0x20400, 8],
    [AD_HOC, 12],
    [HEADER_LENGTH + name.length, 16],
    [HEADER_LENGTH, 20],
    [count, 28],
    [start, 32],
  ]
  for (const [value, offset] of fields) header.writeUInt32BE(value, offset)
  header.set([HASH_LENGTH, SHA256, 0, PAGE_BITS], 36)
  header.writeBigUInt64BE(original.readBigUInt64LE(text + 40), 64)
  header.writeBigUInt64BE(original.readBigUInt64LE(text + 48), 72)
  header.writeBigUInt64BE(1n, 80) // a main executable

  const superBlob = Buffer.alloc(20)
  for (const [index, value] of [SUPER_BLOB, length, 1, 0, 20].entries()) superBlob.writeUInt32BE(value, index * 4)
  Buffer.concat([superBlob, header, name, ...hashPages(file, start)]).copy(file, start)
  return file
}
