import { crc32, deflateSync } from 'node:zlib'

/** Returns a JPEG of four quarters: red and green above, blue and white below. */
export const makeJpeg = async (width: number, height: number) =>
  Buffer.from(await new Bun.Image(makePng(width, height)).jpeg({ quality: 95 }).bytes())

/** Returns a PNG of the same quarters. */
export function makePng(width: number, height: number): Buffer {
  const colors = [
    [255, 0, 0],
    [0, 255, 0],
    [0, 0, 255],
    [255, 255, 255],
  ]
  const rows = Buffer.alloc(height * (1 + width * 3))
  for (let y = 0; y < height; y++)
    for (let x = 0; x < width; x++)
      rows.set(colors[(y * 2 < height ? 0 : 2) + (x * 2 < width ? 0 : 1)]!, y * (1 + width * 3) + 1 + x * 3)
  return wrapPng({ width, height }, deflateSync(rows))
}

type PngHeader = { width: number; height: number; bits?: number; colorType?: number }

/** Returns a PNG with this header, whatever its data are. */
export function wrapPng({ width, height, bits = 8, colorType = 2 }: PngHeader, data: Uint8Array): Buffer {
  const header = Buffer.alloc(13)
  header.writeUInt32BE(width, 0)
  header.writeUInt32BE(height, 4)
  header.set([bits, colorType], 8)
  return Buffer.concat([
    Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'),
    ...[wrapChunk('IHDR', header), wrapChunk('IDAT', data), wrapChunk('IEND', Buffer.alloc(0))],
  ])
}

function wrapChunk(type: string, data: Uint8Array): Buffer {
  const chunk = Buffer.concat([Buffer.alloc(4), Buffer.from(type), data, Buffer.alloc(4)])
  chunk.writeUInt32BE(data.length, 0)
  chunk.writeUInt32BE(crc32(chunk.subarray(4, -4)), chunk.length - 4)
  return chunk
}

/** Returns a JPEG with Exif as a phone writes it: the maker, the orientation, and where it was. */
export function withExif(jpeg: Buffer, orientation: number, isLittleEndian = false): Buffer {
  const maker = 'Somephone\0'
  const [entries, latitude] = [3, [52, 31, 12]]
  const [makerAt, placeAt] = [8 + 2 + entries * 12 + 4, 8 + 2 + entries * 12 + 4 + maker.length]
  const tiff = Buffer.alloc(placeAt + 2 + 12 + 4 + 24)
  const write16 = (value: number, at: number) =>
    isLittleEndian ? tiff.writeUInt16LE(value, at) : tiff.writeUInt16BE(value, at)
  const write32 = (value: number, at: number) =>
    isLittleEndian ? tiff.writeUInt32LE(value, at) : tiff.writeUInt32BE(value, at)
  const writeEntry = (at: number, tag: number, type: number, count: number) => {
    write16(tag, at)
    write16(type, at + 2)
    write32(count, at + 4)
  }
  tiff.write(isLittleEndian ? 'II' : 'MM')
  write16(42, 2)
  write32(8, 4)
  write16(entries, 8)
  writeEntry(10, 0x010f, 2, maker.length)
  write32(makerAt, 18)
  writeEntry(22, 0x0112, 3, 1)
  write16(orientation, 30)
  writeEntry(34, 0x8825, 4, 1) // the directory of the place
  write32(placeAt, 42)
  tiff.write(maker, makerAt)
  write16(1, placeAt)
  writeEntry(placeAt + 2, 0x0002, 5, 3)
  write32(placeAt + 18, placeAt + 10)
  for (const [n, value] of latitude.entries()) {
    write32(value, placeAt + 18 + n * 8)
    write32(1, placeAt + 22 + n * 8)
  }
  return withSegment(jpeg, Buffer.concat([Buffer.from('Exif\0\0'), tiff]))
}

/** Returns a JPEG with one more APP1 segment before the others. */
export function withSegment(jpeg: Buffer, data: Buffer): Buffer {
  const head = Buffer.from([0xff, 0xe1, 0, 0])
  head.writeUInt16BE(data.length + 2, 2)
  return Buffer.concat([jpeg.subarray(0, 2), head, data, jpeg.subarray(2)])
}

/** Returns a WebP of two frames. */
export async function makeAnimatedWebp(side: number): Promise<Buffer> {
  const still = Buffer.from(await new Bun.Image(makePng(side, side)).webp({ lossless: true }).bytes())
  const frame = Buffer.alloc(16)
  const canvas = Buffer.alloc(10)
  frame.set([side - 1, 0, 0, side - 1, 0, 0, 100], 6)
  canvas.set([2, 0, 0, 0, side - 1, 0, 0, side - 1], 0)
  const animated = wrapRiff('ANMF', Buffer.concat([frame, still.subarray(12)]))
  const chunks = [wrapRiff('VP8X', canvas), wrapRiff('ANIM', Buffer.alloc(6)), animated, animated]
  return wrapRiff('RIFF', Buffer.concat([Buffer.from('WEBP'), ...chunks]))
}

function wrapRiff(type: string, data: Buffer): Buffer {
  const head = Buffer.alloc(8)
  head.write(type)
  head.writeUInt32LE(data.length, 4)
  return Buffer.concat([head, data, Buffer.alloc(data.length % 2)])
}

/** Returns the width, the height and the color of the middle of each quarter of a picture. */
export async function inspect(picture: Uint8Array) {
  const { width, height, format } = await new Bun.Image(picture).metadata()
  return { width, height, format, quarters: await readQuarters(picture) }
}

/** Returns a letter for each quarter: the color it is closest to; "-" for a transparent one. */
async function readQuarters(picture: Uint8Array): Promise<string> {
  const { inflateSync } = await import('node:zlib')
  const png = Buffer.from(
    await new Bun.Image(picture).resize(4, 4, { filter: 'nearest' }).png({ compressionLevel: 0 }).bytes(),
  )
  const at = png.indexOf('IDAT')
  const rows = inflateSync(png.subarray(at + 4, at + 4 + png.readUInt32BE(at - 4)))
  const letterAt = (x: number, y: number) => {
    const [red = 0, green = 0, blue = 0, alpha = 0] = rows.subarray(y * 17 + 1 + x * 4, y * 17 + 5 + x * 4)
    if (alpha < 128) return '-'
    return (
      { '100': 'R', '010': 'G', '001': 'B', '111': 'W', '000': 'K' }[
        [red, green, blue].map((value) => (value > 127 ? 1 : 0)).join('')
      ] ?? '?'
    )
  }
  return [letterAt(1, 1), letterAt(2, 1), letterAt(1, 2), letterAt(2, 2)].join('')
}

type BmpForm = { bits: 1 | 4 | 8 | 16; runs?: boolean; isTopDown?: boolean; masks?: [number, number, number] }

/** Returns a BMP of the quarters of `makePng`; one with 1 bit has red and green above and below. */
export function makeBmp(width: number, height: number, { bits, runs, isTopDown, masks }: BmpForm): Buffer {
  const colors = [0x0000ff, 0x00ff00, 0xff0000, 0xffffff].map((bgr) => [(bgr >> 16) & 255, (bgr >> 8) & 255, bgr & 255])
  const indexAt = (x: number, y: number) => (y * 2 < height ? 0 : 2) + (x * 2 < width ? 0 : 1)
  const rows = Array.from({ length: height }, (_, row) => {
    const y = isTopDown ? row : height - 1 - row
    const indexes = Array.from({ length: width }, (_, x) => indexAt(x, y) & ((1 << bits) - 1))
    if (bits === 16) return indexes.flatMap((index) => to16Bits(colors[index]!, masks))
    return runs ? [...toRuns(indexes, bits), 0, 0] : packIndexes(indexes, bits)
  }).map((row) => (runs ? row : [...row, ...Array((4 - (row.length % 4)) % 4).fill(0)]))
  const palette = bits === 16 ? [] : colors.slice(0, 1 << bits).flatMap((color) => [...color, 0])
  const header = Buffer.alloc(54 + (masks ? 12 : 0))
  header.write('BM')
  header.writeUInt32LE(header.length + palette.length, 10)
  header.writeUInt32LE(40, 14)
  header.writeInt32LE(width, 18)
  header.writeInt32LE(isTopDown ? -height : height, 22)
  header.writeUInt16LE(1, 26)
  header.writeUInt16LE(bits, 28)
  header.writeUInt32LE(masks ? 3 : runs ? (bits === 8 ? 1 : 2) : 0, 30)
  header.writeUInt32LE(palette.length / 4, 46)
  for (const [n, mask] of (masks ?? []).entries()) header.writeUInt32LE(mask, 54 + n * 4)
  return Buffer.concat([header, Buffer.from(palette), Buffer.from(rows.flat()), Buffer.from(runs ? [0, 1] : [])])
}

function to16Bits([blue = 0, green = 0, red = 0]: number[], masks = [0x7c00, 0x3e0, 0x1f]): number[] {
  const value = [red, green, blue].reduce((sum, channel, n) => (channel ? sum | masks[n]! : sum), 0)
  return [value & 255, value >> 8]
}

const packIndexes = (indexes: number[], bits: number): number[] =>
  Array.from({ length: Math.ceil((indexes.length * bits) / 8) }, (_, at) =>
    Array.from({ length: 8 / bits }, (_, n) => indexes[(at * 8) / bits + n] ?? 0).reduce(
      (byte, index) => (byte << bits) | index,
      0,
    ),
  )

/** Returns the left half as runs, and the right half as it is written without runs. */
function toRuns(indexes: number[], bits: 1 | 4 | 8 | 16): number[] {
  const half = indexes.length / 2
  const literal = packIndexes(indexes.slice(half), bits)
  const first = indexes[0]!
  return [half, bits === 8 ? first : first * 17, 0, half, ...literal, ...Array(literal.length % 2).fill(0)]
}

/** Returns a grey JPEG with the four channels of print. */
export function makeCmykJpeg(side: number): Buffer {
  const segment = (marker: number, ...data: number[]) => Buffer.from([0xff, marker, 0, data.length + 2, ...data])
  const channels = [1, 2, 3, 4]
  // One code of one bit, for "no difference" and for "end of block": the data are zeros only.
  const huffmanTable = (id: number) => segment(0xc4, id, 1, ...Array(15).fill(0), 0)
  const blocks = Math.ceil(side / 8) ** 2
  return Buffer.concat([
    Buffer.from([0xff, 0xd8]),
    segment(0xdb, 0, ...Array(64).fill(1)),
    segment(0xc0, 8, side >> 8, side & 255, side >> 8, side & 255, 4, ...channels.flatMap((id) => [id, 0x11, 0])),
    huffmanTable(0x00),
    huffmanTable(0x10),
    segment(0xda, 4, ...channels.flatMap((id) => [id, 0]), 0, 63, 0),
    Buffer.alloc(blocks),
    Buffer.from([0xff, 0xd9]),
  ])
}
