/** The pixels of a picture. */
export type Dimensions = { width: number; height: number }

type Draft = { path: string; beginning: Uint8Array }
type Reader = (header: DataView) => Dimensions | undefined

const MAX_HEADER_BYTES = 1 << 20 // profiles and previews of a JPEG may be before its size
const ORIENTATION_TAG = 0x0112
const FIRST_TURNED_ORIENTATION = 5 // from here on width and height are exchanged

/**
 * Returns the size of a picture as it is shown, by its header. Returns undefined for a broken header, and for types
 * other than JPEG, PNG, WebP, GIF and BMP.
 */
export async function readDimensions({ path, beginning }: Draft, type: string): Promise<Dimensions | undefined> {
  const read = readers[type]
  if (!read) return
  const header = type === 'image/jpeg' ? await Bun.file(path).slice(0, MAX_HEADER_BYTES).bytes() : beginning
  try {
    const dimensions = read(new DataView(header.buffer, header.byteOffset, header.byteLength))
    return dimensions?.width && dimensions.height ? dimensions : undefined
  } catch (error) {
    if (error instanceof RangeError) return // it ends early
    throw error
  }
}

/** @see https://www.w3.org/TR/png-3/#11IHDR */
const readPng: Reader = (header) => ({ width: header.getUint32(16), height: header.getUint32(20) })

const readGif: Reader = (header) => ({ width: header.getUint16(6, true), height: header.getUint16(8, true) })

const readBmp: Reader = (header) =>
  header.getUint32(14, true) === 12
    ? { width: header.getUint16(18, true), height: header.getUint16(20, true) }
    : { width: header.getInt32(18, true), height: Math.abs(header.getInt32(22, true)) }

/** @see https://developers.google.com/speed/webp/docs/riff_container */
const readWebp: Reader = (header) => {
  const format = readText(header, 12, 4)
  if (format === 'VP8X') return { width: 1 + readUint24(header, 24), height: 1 + readUint24(header, 27) }
  if (format === 'VP8 ')
    return { width: header.getUint16(26, true) & 0x3fff, height: header.getUint16(28, true) & 0x3fff }
  if (format !== 'VP8L') return
  const bits = header.getUint32(21, true)
  return { width: 1 + (bits & 0x3fff), height: 1 + ((bits >> 14) & 0x3fff) }
}

/** Walks the segments before the scan. @see https://www.w3.org/Graphics/JPEG/itu-t81.pdf, annex B */
const readJpeg: Reader = (header) => {
  let orientation: number | undefined
  for (let at = 2; header.getUint8(at) === 0xff; ) {
    const marker = header.getUint8(at + 1)
    if (marker === 0xff) {
      at++ // fill
      continue
    }
    if (isFrame(marker)) {
      const [height, width] = [header.getUint16(at + 5), header.getUint16(at + 7)]
      const isTurned = orientation !== undefined && orientation >= FIRST_TURNED_ORIENTATION
      return isTurned ? { width: height, height: width } : { width, height }
    }
    if (marker === 0xda || marker === 0xd9) return
    // Only once, because thousands of segments could share a long directory.
    if (marker === 0xe1 && orientation === undefined && readText(header, at + 4, 6) === 'Exif\0\0')
      orientation = readOrientation(header, at + 10)
    at += marker === 0x01 || (marker >= 0xd0 && marker <= 0xd7) ? 2 : 2 + header.getUint16(at + 2)
  }
}

const isFrame = (marker: number) => marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker)

/** Reads the orientation in the first directory of the TIFF structure at `start`. */
function readOrientation(header: DataView, start: number): number {
  const isLittleEndian = readText(header, start, 2) === 'II'
  const directory = start + header.getUint32(start + 4, isLittleEndian)
  const count = header.getUint16(directory, isLittleEndian)
  for (let entry = directory + 2; entry < directory + 2 + count * 12; entry += 12)
    if (header.getUint16(entry, isLittleEndian) === ORIENTATION_TAG) return header.getUint16(entry + 8, isLittleEndian)
  return 1
}

const readText = (header: DataView, at: number, length: number) =>
  String.fromCharCode(...Array.from({ length }, (_, n) => header.getUint8(at + n)))

const readUint24 = (header: DataView, at: number) => header.getUint16(at, true) | (header.getUint8(at + 2) << 16)

const readers: Record<string, Reader> = {
  'image/jpeg': readJpeg,
  'image/png': readPng,
  'image/apng': readPng,
  'image/webp': readWebp,
  'image/gif': readGif,
  'image/bmp': readBmp,
}
