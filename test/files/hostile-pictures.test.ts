// engine: sqlite
import { beforeAll, describe, expect, setDefaultTimeout, spyOn, test } from 'bun:test'
import { deflateSync } from 'node:zlib'
import type { ThumbnailOrder } from '../../src/files/thumbnails/order'
import { runThumbnailProcess } from '../../src/files/thumbnails/thumbnail-process'
import { errorOf } from '../rejections'
import { createTestTenant, statusAndCode, withoutRateLimits } from '../test-tenant'
import { fileClient, listStored } from './fixtures'
import { inspect, makeAnimatedWebp, makeCmykJpeg, makeJpeg, makePng, wrapPng } from './pictures'

setDefaultTimeout(60_000)

let tenant: Awaited<ReturnType<typeof createTestTenant>>
let user: ReturnType<typeof fileClient>
beforeAll(async () => {
  tenant = await createTestTenant()
  user = fileClient(tenant, tenant.tokens.user)
})

async function uploadPicture(picture: Uint8Array): Promise<{ url: string; width?: number; height?: number }> {
  const { status, body } = await user.upload(new Uint8Array(picture), 'a.png')
  expect(status).toBe(201)
  return body
}
const thumbnailPath = (url: string, size = '100x100') => `${url.replace('/api', '')}?thumb=${size}`

/** Asks for the thumbnail of a picture; `shown` is undefined where there is none. */
async function ask(picture: Uint8Array) {
  const { url, width, height } = await uploadPicture(picture)
  const response = await user.send('GET', thumbnailPath(url))
  const shown = response.ok ? await inspect(new Uint8Array(await response.arrayBuffer())) : undefined
  const { code, message } = shown ? {} : ((await response.json()) as { code?: string; message?: string })
  return { status: response.status, code, message, shown, claimed: [width, height] }
}

const order: ThumbnailOrder = { width: 100, height: 100, fit: 'cover', from: 'png', to: 'png' }
const limits = { pixels: 64_000_000, memoryBytes: 512 << 20, timeMs: 20_000 }
const owner = { tenant: 'hostile', caller: 'somebody' }
const collect = async (bytes: AsyncIterable<Uint8Array>) => Buffer.concat(await Array.fromAsync(bytes))

describe('hostile pictures', () => {
  test('a header of 50,000 x 50,000 pixels is refused before anything is decoded', async () => {
    const bomb = wrapPng({ width: 50_000, height: 50_000 }, deflateSync(Buffer.alloc(1_000)))
    expect(await ask(bomb)).toMatchObject({
      ...{ status: 415, code: 'PICTURE_UNREADABLE', claimed: [50_000, 50_000] },
      message: 'No thumbnail can be made of this picture: it has more than 64 million pixels.',
    })
  })

  test('data that inflate to a gigabyte are read only as far as the header says', async () => {
    const gigabyte = deflateSync(Buffer.alloc(1 << 30), { level: 9 })
    const began = performance.now()
    const { status, shown } = await ask(wrapPng({ width: 10, height: 10 }, gigabyte))
    expect([status, shown?.quarters]).toEqual([200, 'KKKK'])
    expect(performance.now() - began).toBeLessThan(10_000)
  })

  test('a picture that ends early, or has fewer rows than its header says, is refused, and nothing is stored', async () => {
    const island = await createTestTenant()
    const client = fileClient(island, island.tokens.user)
    const png = makePng(600, 300)
    const jpeg = await makeJpeg(600, 300)
    const few = wrapPng({ width: 100, height: 100 }, deflateSync(Buffer.alloc(10 * 301)))
    const none = wrapPng({ width: 0, height: 100 }, deflateSync(Buffer.alloc(301)))
    for (const picture of [png.subarray(0, png.length / 2), jpeg.subarray(0, 100), few, none]) {
      const { body } = await client.upload(new Uint8Array(picture), 'a.png')
      const response = await island.as('user').get(thumbnailPath(body.url))
      expect(statusAndCode(response)).toEqual([415, 'PICTURE_UNREADABLE'])
    }
    expect(listStored(island.id)).toHaveLength(4)
  })

  test('a JPEG that ends early is shown as far as it goes', async () => {
    const jpeg = await makeJpeg(600, 300)
    expect(await ask(jpeg.subarray(0, jpeg.length - 200))).toMatchObject({ status: 200 })
  })

  test('pictures of print, of 16 bits, of one bit, and those that are pages as well are read', async () => {
    expect(await ask(makeCmykJpeg(64))).toMatchObject({ status: 200, claimed: [64, 64] })
    const deep = wrapPng({ width: 20, height: 20, bits: 16 }, deflateSync(Buffer.alloc(20 * 121, 0)))
    expect((await ask(deep)).shown?.quarters).toBe('KKKK')
    const gray = wrapPng({ width: 16, height: 16, bits: 1, colorType: 0 }, deflateSync(Buffer.alloc(3 * 16)))
    expect((await ask(gray)).shown?.quarters).toBe('KKKK')
    const page = Buffer.concat([makePng(60, 60), Buffer.from('<script>alert(1)</script>')])
    expect((await ask(page)).shown?.quarters).toBe('RGBW')
  })

  test('an animation is shown by its first frame where the library can, else refused', async () => {
    const gif = Buffer.from('R0lGODlhAQABAIAAAP8AAP///ywAAAAAAQABAAACAkQBADs=', 'base64')
    const frame = gif.subarray(gif.indexOf(0x2c), -1)
    const animated = Buffer.concat([gif.subarray(0, -1), ...Array(50).fill(frame), Buffer.from(';')])
    expect((await ask(animated)).shown?.quarters).toBe('RRRR')
    expect(await ask(await makeAnimatedWebp(20))).toMatchObject({ status: 415, code: 'PICTURE_UNREADABLE' })
  })

  test('a picture whose format is not the detected one is refused', async () => {
    const picture = new Blob([new Uint8Array(await makeJpeg(60, 30))])
    expect(await errorOf(runThumbnailProcess(owner, picture, order, collect))).toMatchObject({ status: 415 })
  })
})

describe('processes of thumbnails', () => {
  const large = new Blob([
    new Uint8Array(wrapPng({ width: 5_000, height: 4_000 }, deflateSync(Buffer.alloc(4_000 * 15_001)))),
  ])

  test('a process ends itself beyond its memory and beyond its time', async () => {
    expect((await runThumbnailProcess(owner, large, order, collect, limits)).length).toBeGreaterThan(100)
    for (const limit of [{ memoryBytes: 100 << 20 }, { timeMs: 10 }])
      expect(await errorOf(runThumbnailProcess(owner, large, order, collect, { ...limits, ...limit }))).toMatchObject({
        message: 'No thumbnail can be made of this picture: it takes too much time or memory.',
      })
  })

  test('a process that crashes leaves the server as it is, and one that somebody ends is told as BUSY', async () => {
    const spawn = spyOn(Bun, 'spawn')
    try {
      for (const [signal, expected] of [
        ['SIGSEGV', { status: 415, code: 'PICTURE_UNREADABLE' }],
        ['SIGKILL', { status: 503, code: 'BUSY' }],
      ] as const) {
        const made = runThumbnailProcess(owner, large, order, collect)
        const { value: child } = spawn.mock.results.at(-1)! as { value: Bun.Subprocess }
        child.kill(signal)
        expect(await errorOf(made)).toMatchObject(expected)
      }
    } finally {
      spawn.mockRestore()
    }
  })

  test.skipIf(process.platform !== 'linux')('a process can open no file and gives way to the server', async () => {
    const spawn = spyOn(Bun, 'spawn')
    try {
      const made = runThumbnailProcess(owner, large, order, collect)
      const { value: child } = spawn.mock.results.at(-1)! as { value: Bun.Subprocess }
      const read = (file: string) => Bun.file(`/proc/${child.pid}/${file}`).text()
      while (!/Seccomp:\s+2/.test(await read('status'))) await Bun.sleep(1)
      expect(Number((await read('stat')).split(') ')[1]!.split(' ')[16])).toBe(10)
      await made
    } finally {
      spawn.mockRestore()
    }
  })
})

test('a tenant that asks for too many thumbnails at once is told BUSY, while another one gets its own', async () => {
  using _ = withoutRateLimits()
  const { url } = await uploadPicture(makePng(2_000, 2_000))
  const sizes = Array.from({ length: 20 }, (_, n) => `${n + 1}x50`)
  const busy = await createTestTenant()
  await busy.as('admin').put('/configurations/files-configuration', { metadata: { thumbs: sizes } })
  const client = fileClient(busy, busy.tokens.user)
  const uploads = await Promise.all(
    Array.from({ length: 3 }, (_, n) => client.upload(new Uint8Array(makePng(100, 100 + n)), `${n}.png`)),
  )
  const paths = uploads.flatMap(({ body }) =>
    sizes.flatMap((size) => ['cover', 'inside', 'contain'].map((fit) => `${thumbnailPath(body.url, size)}&fit=${fit}`)),
  )
  const answers = paths.map((path) => client.send('GET', path).then(({ status }) => status))
  const first = await Promise.race([user.send('GET', thumbnailPath(url)), Promise.all(answers)])
  expect((first as Response).status).toBe(200)
  const statuses = await Promise.all(answers)
  expect([...new Set(statuses)].sort()).toEqual([200, 503])
  expect(statuses.filter((status) => status === 200).length).toBeGreaterThanOrEqual(100)
})
