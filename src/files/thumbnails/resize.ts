import type { Dimensions } from '../dimensions'
import { resizeCanvas } from './canvas'
import type { Fit, ThumbnailFormat, ThumbnailOrder } from './order'

export const TRANSPARENT = [0, 0, 0, 0]
const WHITE = [255, 255, 255, 255]

/** How `Bun.Image` writes each format. Nothing but the color profile of the picture is written with its pixels. */
const encoders: Record<ThumbnailFormat, (image: Bun.Image) => Promise<Uint8Array>> = {
  jpeg: (image) => image.jpeg({ quality: 82 }).bytes(),
  png: (image) => image.png().bytes(),
  webp: (image) => image.webp({ quality: 80 }).bytes(),
}

/** An intermediate picture, whose rows `resizeCanvas` can read. */
export const toUncompressed = (image: Bun.Image) => image.png({ compressionLevel: 0 }).bytes()

type Resize = (open: () => Bun.Image, size: Dimensions, to: ThumbnailFormat) => Promise<Bun.Image>

/** Each way to fit a size. `Bun.Image` only stretches, or fits within a size. */
const resizers: Record<Fit, Resize> = {
  inside: async (open, { width, height }) => open().resize(width, height, { fit: 'inside', withoutEnlargement: true }),
  async contain(open, size, to) {
    const whole = await toUncompressed(open().resize(size.width, size.height, { fit: 'inside' }))
    return new Bun.Image(resizeCanvas(whole, size, to === 'jpeg' ? WHITE : TRANSPARENT))
  },
  async cover(open, { width, height }) {
    const full = await open().metadata()
    const scale = Math.max(width / full.width, height / full.height)
    // It is made larger only after the cut, because a line as wide as a pixel would become enormous.
    const shrunk = Math.min(1, scale)
    const length = (pixels: number, factor: number) => Math.max(1, Math.round(pixels * factor))
    const covering = open().resize(length(full.width, shrunk), length(full.height, shrunk))
    const enlarged = scale / shrunk
    const cut = { width: length(width, 1 / enlarged), height: length(height, 1 / enlarged) }
    return new Bun.Image(resizeCanvas(await toUncompressed(covering), cut, TRANSPARENT)).resize(width, height)
  },
}

/** Returns the thumbnail of a picture, turned as its orientation says. @throws an error with a code of `Bun.Image` */
export async function makeThumbnail(picture: Uint8Array, { fit, to, ...size }: ThumbnailOrder, maxPixels: number) {
  const open = () => new Bun.Image(picture, { maxPixels })
  return encoders[to](await resizers[fit](open, size, to))
}

/** Returns the format that the picture really has. @throws an error with a code of `Bun.Image` */
export const readFormat = async (picture: Uint8Array, maxPixels: number): Promise<Bun.Image.Format> =>
  (await new Bun.Image(picture, { maxPixels }).metadata()).format
