import type { ChosenFile } from '../../ui/chosen-files'

const BLOCK_BYTES = 512
const ARCHIVE_TYPE = 'application/x-tar'
const NAME_BYTES = 100
const encoder = new TextEncoder()

/**
 * Returns a tar archive (POSIX.1-2001, pax) of files, which stay on the disk until they are sent: an archive of packages
 * for Node would hold them in memory.
 */
export function packArchive(files: readonly ChosenFile[]): Blob {
  const parts = files.flatMap(({ path, content }) => [
    ...toLongName(path),
    toHeader(path, content.size, '0'),
    content,
    toPadding(content.size),
  ])
  return new Blob([...parts, new Uint8Array(2 * BLOCK_BYTES)], { type: ARCHIVE_TYPE })
}

/** Returns an extended header with the name, where it does not fit into the header of the file. */
function toLongName(path: string): Uint8Array<ArrayBuffer>[] {
  if (encoder.encode(path).length <= NAME_BYTES) return []
  const record = ` path=${path}\n`
  const { length } = encoder.encode(record)
  // The length counts its own digits.
  const digits = `${length + `${length + 3}`.length}`
  const content = encoder.encode(`${digits}${record}`)
  return [toHeader('long-name', content.length, 'x'), content, toPadding(content.length)]
}

const toPadding = (size: number) => new Uint8Array((BLOCK_BYTES - (size % BLOCK_BYTES)) % BLOCK_BYTES)

function toHeader(path: string, size: number, type: '0' | 'x'): Uint8Array<ArrayBuffer> {
  const header = new Uint8Array(BLOCK_BYTES)
  const write = (offset: number, text: string) => header.set(encoder.encode(text), offset)
  header.set(encoder.encode(path).subarray(0, NAME_BYTES), 0)
  write(100, '0000644\0')
  write(108, '0000000\0')
  write(116, '0000000\0')
  write(124, `${size.toString(8).padStart(11, '0')}\0`)
  write(136, '00000000000\0')
  write(148, ' '.repeat(8))
  write(156, type)
  write(257, 'ustar\x0000')
  const checksum = header.reduce((sum, byte) => sum + byte, 0)
  write(148, `${checksum.toString(8).padStart(6, '0')}\0 `)
  return header
}
