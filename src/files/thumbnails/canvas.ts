import { crc32, deflateSync, inflateSync } from 'node:zlib'
import type { Dimensions } from '../dimensions'

const SIGNATURE = Buffer.from('\x89PNG\r\n\x1a\n', 'latin1')
const RGBA_OF_8_BITS = '0806000000' // bits, color type, and no compression, filter or interlacing beyond the usual
const PIXEL_BYTES = 4

/** Where the picture is on a canvas; its middle without it. */
type Place = { left: number; top: number }

/**
 * Returns an uncompressed PNG with a canvas of another size, on which the picture is: what is beyond the canvas is cut
 * off, and the rest of the canvas has the background (RGBA). Only takes what `Bun.Image` writes without compression.
 */
export function resizeCanvas(png: Uint8Array, canvas: Dimensions, background: number[], place?: Place): Uint8Array {
  const chunks = [...readChunks(Buffer.from(png.buffer, png.byteOffset, png.byteLength))]
  const { data: header } = chunks.find(({ type }) => type === 'IHDR')!
  if (header.toString('hex', 8) !== RGBA_OF_8_BITS) throw new Error('This PNG does not have 8 bits of RGBA.')
  const picture = { width: header.readUInt32BE(0), height: header.readUInt32BE(4) }
  const rows = inflateSync(Buffer.concat(chunks.filter(({ type }) => type === 'IDAT').map(({ data }) => data)))
  const size = Buffer.from(header)
  size.writeUInt32BE(canvas.width, 0)
  size.writeUInt32BE(canvas.height, 4)
  // What describes the colors stays.
  const others = chunks.filter(({ type }) => !['IHDR', 'IDAT', 'IEND'].includes(type))
  return Buffer.concat([
    SIGNATURE,
    writeChunk('IHDR', size),
    ...others.map(({ type, data }) => writeChunk(type, data)),
    writeChunk('IDAT', deflateSync(placeRows(rows, picture, canvas, background, place), { level: 0 })),
    writeChunk('IEND', Buffer.alloc(0)),
  ])
}

function placeRows(rows: Buffer, picture: Dimensions, canvas: Dimensions, background: number[], place?: Place): Buffer {
  const [from, to] = [1 + picture.width * PIXEL_BYTES, 1 + canvas.width * PIXEL_BYTES]
  const left = place?.left ?? Math.floor((canvas.width - picture.width) / 2)
  const top = place?.top ?? Math.floor((canvas.height - picture.height) / 2)
  const blank = Buffer.concat([Buffer.of(0), Buffer.alloc(to - 1, Buffer.from(background))])
  const placed = Buffer.alloc(to * canvas.height)
  for (let y = 0; y < canvas.height; y++) {
    blank.copy(placed, y * to)
    const row = y - top
    if (row < 0 || row >= picture.height) continue
    if (rows[row * from] !== 0) throw new Error('A row of this PNG is filtered.')
    const first = Math.max(0, -left)
    const count = Math.max(0, Math.min(picture.width - first, canvas.width - Math.max(0, left)))
    const start = row * from + 1 + first * PIXEL_BYTES
    rows.copy(placed, y * to + 1 + Math.max(0, left) * PIXEL_BYTES, start, start + count * PIXEL_BYTES)
  }
  return placed
}

function* readChunks(png: Buffer) {
  for (let at = SIGNATURE.length; at < png.length; ) {
    const length = png.readUInt32BE(at)
    yield { type: png.toString('latin1', at + 4, at + 8), data: png.subarray(at + 8, at + 8 + length) }
    at += 12 + length
  }
}

/** Returns a chunk with its length and its checksum. @see https://www.w3.org/TR/png-3/#5Chunk-layout */
function writeChunk(type: string, data: Buffer): Buffer {
  const chunk = Buffer.alloc(12 + data.length)
  chunk.writeUInt32BE(data.length, 0)
  chunk.write(type, 4, 'latin1')
  data.copy(chunk, 8)
  chunk.writeUInt32BE(crc32(chunk.subarray(4, 8 + data.length)), 8 + data.length)
  return chunk
}
