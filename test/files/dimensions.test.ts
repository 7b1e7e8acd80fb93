// engine: sqlite
import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { readDimensions } from '../../src/files/dimensions'
import { createTempFolder } from '../temp-folder'
import { makeAnimatedWebp, makeCmykJpeg, makeJpeg, makePng, withExif, withSegment } from './pictures'

const path = join(createTempFolder('dimensions'), 'draft')

async function read(picture: Uint8Array, type: string) {
  await Bun.write(path, picture)
  return readDimensions({ path, beginning: picture.subarray(0, 64 << 10) }, type)
}

const size = (width: number, height: number) => ({ width, height })
const encode = async (image: Bun.Image) => Buffer.from(await image.bytes())
const open = () => new Bun.Image(makePng(30, 20))

describe('sizes of pictures', () => {
  test('the header of each format has the size', async () => {
    expect(await read(makePng(30, 20), 'image/png')).toEqual(size(30, 20))
    expect(await read(await makeJpeg(30, 20), 'image/jpeg')).toEqual(size(30, 20))
    expect(await read(await encode(open().jpeg({ progressive: true })), 'image/jpeg')).toEqual(size(30, 20))
    expect(await read(makeCmykJpeg(16), 'image/jpeg')).toEqual(size(16, 16))
    expect(await read(await encode(open().webp()), 'image/webp')).toEqual(size(30, 20))
    expect(await read(await encode(open().webp({ lossless: true })), 'image/webp')).toEqual(size(30, 20))
    expect(await read(await makeAnimatedWebp(20), 'image/webp')).toEqual(size(20, 20))
    expect(await read(Buffer.from('GIF89a\x1e\0\x14\0'), 'image/gif')).toEqual(size(30, 20))
    const bmp = Buffer.alloc(54)
    bmp.writeUInt32LE(40, 14)
    bmp.writeInt32LE(30, 18)
    bmp.writeInt32LE(-20, 22)
    expect(await read(bmp, 'image/bmp')).toEqual(size(30, 20))
  })

  test('a JPEG has the size in which it is shown, in either order of bytes', async () => {
    const jpeg = await makeJpeg(30, 20)
    for (const orientation of [1, 2, 3, 4])
      expect(await read(withExif(jpeg, orientation), 'image/jpeg')).toEqual(size(30, 20))
    for (const orientation of [5, 6, 7, 8])
      for (const isLittleEndian of [true, false])
        expect(await read(withExif(jpeg, orientation, isLittleEndian), 'image/jpeg')).toEqual(size(20, 30))
  })

  test('a size is found behind profiles and previews of hundreds of kilobytes', async () => {
    let jpeg: Buffer = await makeJpeg(30, 20)
    for (let n = 0; n < 8; n++) jpeg = withSegment(jpeg, Buffer.alloc(60_000))
    expect(await read(jpeg, 'image/jpeg')).toEqual(size(30, 20))
  })

  test('broken headers and other types have no size, which is found out fast', async () => {
    const jpeg = withExif(await makeJpeg(30, 20), 6)
    expect(await read(jpeg.subarray(0, 40), 'image/jpeg')).toBeUndefined()
    expect(await read(Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'), 'image/png')).toBeUndefined()
    expect(await read(Buffer.alloc(100), 'image/webp')).toBeUndefined()
    expect(await read(Buffer.from('text'), 'text/plain')).toBeUndefined()
    // Each segment points to one directory of 65,535 entries.
    const tiff = Buffer.alloc(18)
    tiff.write('Exif\0\0MM')
    const segments = Array.from({ length: 40_000 }, (_, n) => {
      const segment = Buffer.concat([Buffer.from([0xff, 0xe1, 0, 20]), tiff])
      segment.writeUInt32BE(900_000 - n * 22, 14)
      return segment
    })
    const bomb = Buffer.concat([Buffer.from([0xff, 0xd8]), ...segments, Buffer.alloc(1 << 20, 0xff)])
    const began = performance.now()
    expect(await read(bomb, 'image/jpeg')).toBeUndefined()
    expect(performance.now() - began).toBeLessThan(500)
  })
})
