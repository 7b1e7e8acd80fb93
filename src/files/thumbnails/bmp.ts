import { imageError } from './image-error'

const [RGB, RLE8, RLE4, BIT_FIELDS] = [0, 1, 2, 3]
const CORE_HEADER_BYTES = 12
const MASKS_OF_16_BITS = [0x7c00, 0x3e0, 0x1f]
const HEADER_BYTES = 54

type Bmp = {
  bytes: Buffer
  width: number
  height: number
  isTopDown: boolean
  bits: number
  compression: number
  /** Where the pixels begin. */
  at: number
  /** Where the palette begins, and how many bytes each of its colors has. */
  palette: { at: number; colorBytes: number }
}
/** Sets the color of a pixel: blue, green and red. Rows count from the top. */
type Paint = (x: number, y: number, color: ArrayLike<number>) => void

/**
 * Returns a BMP whose colors have 24 bits, which is what `Bun.Image` reads, of one with 1, 4, 8 or 16 bits or run
 * lengths. Another one is returned as it is. @throws an error with a code of `Bun.Image`
 */
export function toTrueColorBmp(picture: Uint8Array, maxPixels: number): Uint8Array {
  const bytes = Buffer.from(picture.buffer, picture.byteOffset, picture.byteLength)
  try {
    const bmp = readHeader(bytes)
    if (![1, 4, 8, 16].includes(bmp.bits)) return picture
    if (bmp.width <= 0 || bmp.height <= 0) throw imageError('ERR_IMAGE_DECODE_FAILED')
    if (bmp.width * bmp.height > maxPixels) throw imageError('ERR_IMAGE_TOO_MANY_PIXELS')
    const { written, paint } = createTrueColor(bmp)
    readPixels(bmp, paint)
    return written
  } catch (error) {
    if (error instanceof RangeError) throw imageError('ERR_IMAGE_DECODE_FAILED') // it ends early
    throw error
  }
}

function readHeader(bytes: Buffer): Bmp {
  const headerBytes = bytes.readUInt32LE(14)
  const at = bytes.readUInt32LE(10)
  if (headerBytes === CORE_HEADER_BYTES)
    return {
      ...{ bytes, at, width: bytes.readUInt16LE(18), height: bytes.readUInt16LE(20), isTopDown: false },
      ...{ bits: bytes.readUInt16LE(24), compression: RGB, palette: { at: 14 + headerBytes, colorBytes: 3 } },
    }
  const height = bytes.readInt32LE(22)
  const compression = bytes.readUInt32LE(30)
  return {
    ...{ bytes, at, width: bytes.readInt32LE(18), height: Math.abs(height), isTopDown: height < 0 },
    ...{ bits: bytes.readUInt16LE(28), compression, palette: { at: 14 + headerBytes, colorBytes: 4 } },
  }
}

const toStride = (width: number, bits: number) => Math.ceil((width * bits) / 32) * 4

function createTrueColor({ width, height }: Bmp): { written: Buffer; paint: Paint } {
  const stride = toStride(width, 24)
  const written = Buffer.alloc(HEADER_BYTES + stride * height)
  written.write('BM', 'latin1')
  written.writeUInt32LE(written.length, 2)
  written.writeUInt32LE(HEADER_BYTES, 10)
  written.writeUInt32LE(HEADER_BYTES - 14, 14)
  written.writeUInt32LE(width, 18)
  written.writeUInt32LE(height, 22)
  written.writeUInt16LE(1, 26)
  written.writeUInt16LE(24, 28)
  const paint: Paint = (x, y, color) => {
    const at = HEADER_BYTES + (height - 1 - y) * stride + x * 3
    for (let n = 0; n < 3; n++) written[at + n] = color[n]!
  }
  return { written, paint }
}

function readPixels(bmp: Bmp, paint: Paint) {
  const { compression, bits } = bmp
  if (bits === 16 && (compression === RGB || compression === BIT_FIELDS)) return read16Bits(bmp, paint)
  const colors = readPalette(bmp)
  const paintIndex = (x: number, y: number, index: number) => paint(x, y, colors[index] ?? colors[0]!)
  if (compression === RGB) return readIndexes(bmp, paintIndex)
  if ((compression === RLE8 && bits === 8) || (compression === RLE4 && bits === 4)) return readRuns(bmp, paintIndex)
  throw imageError('ERR_IMAGE_DECODE_FAILED')
}

function readPalette({ bytes, bits, at: end, palette: { at, colorBytes } }: Bmp): Buffer[] {
  const count = Math.max(1, Math.min(1 << bits, Math.floor((end - at) / colorBytes)))
  return Array.from({ length: count }, (_, n) => bytes.subarray(at + n * colorBytes, at + n * colorBytes + 3))
}

type PaintIndex = (x: number, y: number, index: number) => void

function readIndexes({ bytes, width, height, isTopDown, bits, at }: Bmp, paint: PaintIndex) {
  const stride = toStride(width, bits)
  const perByte = 8 / bits
  for (let row = 0; row < height; row++)
    for (let x = 0; x < width; x++) {
      const byte = bytes.readUInt8(at + row * stride + Math.floor(x / perByte))
      const shift = 8 - bits * ((x % perByte) + 1)
      paint(x, isTopDown ? row : height - 1 - row, (byte >> shift) & ((1 << bits) - 1))
    }
}

function read16Bits({ bytes, width, height, isTopDown, compression, at }: Bmp, paint: Paint) {
  // The masks follow the fields that all of these headers have.
  const masks = compression === BIT_FIELDS ? [54, 58, 62].map((place) => bytes.readUInt32LE(place)) : MASKS_OF_16_BITS
  const channels = masks
    .toReversed()
    .map((mask) => ({ mask, max: mask / (mask & -mask) || 1, unit: mask & -mask || 1 }))
  const stride = toStride(width, 16)
  for (let row = 0; row < height; row++)
    for (let x = 0; x < width; x++) {
      const value = bytes.readUInt16LE(at + row * stride + x * 2)
      const color = channels.map(({ mask, max, unit }) => Math.round((((value & mask) / unit) * 255) / max))
      paint(x, isTopDown ? row : height - 1 - row, color)
    }
}

/** Reads run lengths, and what they leave out has the first color. Rows are written from the bottom. */
function readRuns({ bytes, width, height, bits, at: start }: Bmp, paint: PaintIndex) {
  for (let y = 0; y < height; y++) for (let x = 0; x < width; x++) paint(x, y, 0)
  const put = (x: number, row: number, index: number) => {
    if (x < width && row < height) paint(x, height - 1 - row, index)
  }
  const indexAt = (at: number, n: number) => {
    if (bits === 8) return bytes.readUInt8(at + n)
    const pair = bytes.readUInt8(at + (n >> 1))
    return n % 2 ? pair & 15 : pair >> 4
  }
  let [at, x, row] = [start, 0, 0]
  while (row < height && at + 1 < bytes.length) {
    const count = bytes.readUInt8(at)
    const code = bytes.readUInt8(at + 1)
    at += 2
    if (count) {
      for (let n = 0; n < count; n++) put(x + n, row, bits === 8 ? code : n % 2 ? code & 15 : code >> 4)
      x += count
    } else if (code === 0) [x, row] = [0, row + 1]
    else if (code === 1) return
    else if (code === 2) [x, row, at] = [x + bytes.readUInt8(at), row + bytes.readUInt8(at + 1), at + 2]
    else {
      for (let n = 0; n < code; n++) put(x + n, row, indexAt(at, n))
      x += code
      at += Math.ceil((code * bits) / 16) * 2
    }
  }
}
