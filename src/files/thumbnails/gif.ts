import type { Dimensions } from '../dimensions'
import { resizeCanvas } from './canvas'
import { imageError } from './image-error'
import { TRANSPARENT, toUncompressed } from './resize'

const [EXTENSION, FRAME] = [0x21, 0x2c]

/**
 * Returns a PNG of a GIF's canvas with its first frame, which `Bun.Image` does not place on it. A GIF whose first frame
 * covers its canvas is returned as it is. @throws an error with a code of `Bun.Image`
 */
export async function composeFirstFrame(picture: Uint8Array, maxPixels: number): Promise<Uint8Array> {
  const gif = Buffer.from(picture)
  const at = findFirstFrame(gif)
  if (at === undefined || at + 9 > gif.length) return picture
  const canvas = readSize(gif, 6)
  const place = { left: gif.readUInt16LE(at + 1), top: gif.readUInt16LE(at + 3) }
  const frame = readSize(gif, at + 5)
  if (!place.left && !place.top && frame.width === canvas.width && frame.height === canvas.height) return picture
  if (canvas.width * canvas.height > maxPixels) throw imageError('ERR_IMAGE_TOO_MANY_PIXELS')
  // The frame alone: a GIF whose canvas it is.
  gif.copy(gif, 6, at + 5, at + 9)
  gif.fill(0, at + 1, at + 5)
  return resizeCanvas(await toUncompressed(new Bun.Image(gif, { maxPixels })), canvas, TRANSPARENT, place)
}

const readSize = (gif: Buffer, at: number): Dimensions => ({
  width: gif.readUInt16LE(at),
  height: gif.readUInt16LE(at + 2),
})

/** @see https://www.w3.org/Graphics/GIF/spec-gif89a.txt */
function findFirstFrame(gif: Buffer): number | undefined {
  const flags = gif[10] ?? 0
  let at = 13 + (flags & 0x80 ? 3 << ((flags & 7) + 1) : 0)
  while (gif[at] === EXTENSION) {
    at += 2
    while (gif[at]) at += gif[at]! + 1
    at++
  }
  return gif[at] === FRAME ? at : undefined
}
