import { beforeAll, describe, expect, setDefaultTimeout, spyOn, test } from 'bun:test'
import { HOUR_MS, moveClock, now } from '../../src/core/clock'
import { removeUnusedContents, sumContentBytes } from '../../src/files/contents'
import { createTestTenant, fullAccessRules, statusAndCode } from '../test-tenant'
import { fileClient, listStored } from './fixtures'
import { inspect, makeBmp, makeJpeg, makePng, withExif } from './pictures'

setDefaultTimeout(60_000)

let tenant: Awaited<ReturnType<typeof createTestTenant>>
let user: ReturnType<typeof fileClient>
let photo: string
beforeAll(async () => {
  tenant = await createTestTenant()
  user = fileClient(tenant, tenant.tokens.user)
  photo = await upload(await makeJpeg(600, 300), 'photo.jpg')
})

/** Uploads a picture and returns the path of its content. */
async function upload(picture: Buffer, name: string, client = user): Promise<string> {
  const { status, body } = await client.upload(new Uint8Array(picture), name)
  expect(status).toBe(201)
  return body.url.replace('/api', '')
}

/** Returns what a thumbnail shows. */
async function show(path: string, client = user) {
  const response = await client.send('GET', path)
  expect([response.status, response.ok || (await response.text())]).toEqual([200, true])
  return inspect(new Uint8Array(await response.arrayBuffer()))
}

describe('thumbnails', () => {
  test('a picture is cut to fill the size, unless another fit is asked for', async () => {
    const whole = { format: 'jpeg', quarters: 'RGBW' } as const
    expect(await show(`${photo}?thumb=100x100`)).toEqual({ width: 100, height: 100, ...whole })
    expect(await show(`${photo}?thumb=100x100&fit=cover`)).toEqual({ width: 100, height: 100, ...whole })
    expect(await show(`${photo}?thumb=100x100&fit=inside`)).toEqual({ width: 100, height: 50, ...whole })
    const framed = await user.send('GET', `${photo}?thumb=100x100&fit=contain`)
    const frame = new Bun.Image(new Uint8Array(await framed.arrayBuffer()))
    expect(await frame.metadata()).toMatchObject({ width: 100, height: 100 })
    expect(statusAndCode(await tenant.as('user').get(`${photo}?thumb=100x100&fit=fill`))).toEqual([
      400,
      'INVALID_INPUT',
    ])
  })

  test('a picture is put into a transparent frame where its format has transparency, else into a white one', async () => {
    const png = await upload(makePng(300, 30), 'wide.png')
    expect(await show(`${png}?thumb=100x100&fit=contain`)).toMatchObject({
      width: 100,
      quarters: '----',
      format: 'png',
    })
    const jpeg = await upload(await makeJpeg(300, 30), 'wide.jpg')
    expect(await show(`${jpeg}?thumb=100x100&fit=contain`)).toMatchObject({ width: 100, quarters: 'WWWW' })
  })

  test('a small picture stays as it is inside a size, and is enlarged to fill it', async () => {
    const small = await upload(makePng(40, 20), 'small.png')
    expect(await show(`${small}?thumb=400x400&fit=inside`)).toMatchObject({ width: 40, height: 20 })
    expect(await show(`${small}?thumb=400x400`)).toMatchObject({ width: 400, height: 400, quarters: 'RGBW' })
    expect(await show(`${small}?thumb=400x400&fit=contain`)).toMatchObject({ width: 400, height: 400 })
    const line = await upload(makePng(2, 6_000), 'line.png')
    expect(await show(`${line}?thumb=400x400`)).toMatchObject({ width: 400, height: 400, quarters: 'RGBW' })
    expect(await show(`${line}?thumb=400x400&fit=inside`)).toMatchObject({ width: 1, height: 400 })
  })

  test('a thumbnail has the format of its picture, or PNG where only that keeps it whole', async () => {
    const webp = await upload(Buffer.from(await new Bun.Image(makePng(90, 60)).webp().bytes()), 'a.webp')
    expect(await show(`${webp}?thumb=100x100`)).toMatchObject({ format: 'webp', quarters: 'RGBW' })
    const gif = await upload(Buffer.from('R0lGODlhAQABAIAAAP8AAP///ywAAAAAAQABAAACAkQBADs=', 'base64'), 'dot.gif')
    const { status, headers } = await user.send('GET', `${gif}?thumb=100x100&download`)
    expect([status, headers.get('content-type')]).toEqual([200, 'image/png'])
    expect(headers.get('content-disposition')).toStartWith('attachment; filename="dot.png"')
    expect(await show(`${gif}?thumb=100x100`)).toMatchObject({ format: 'png', quarters: 'RRRR' })
  })

  test.each([
    ['1 bit', { bits: 1 }, 'RGRG'],
    ['4 bits', { bits: 4 }, 'RGBW'],
    ['8 bits', { bits: 8 }, 'RGBW'],
    ['8 bits, from the top', { bits: 8, isTopDown: true }, 'RGBW'],
    ['16 bits', { bits: 16 }, 'RGBW'],
    ['16 bits with masks', { bits: 16, masks: [0xf800, 0x7e0, 0x1f] }, 'RGBW'],
    ['run lengths of 4 bits', { bits: 4, runs: true }, 'RGBW'],
    ['run lengths of 8 bits', { bits: 8, runs: true }, 'RGBW'],
  ] as const)('a BMP of %s has a thumbnail', async (_, form, quarters) => {
    const bmp = makeBmp(60, 40, form as Parameters<typeof makeBmp>[2])
    const path = await upload(bmp, `${crypto.randomUUID()}.bmp`)
    expect(await show(`${path}?thumb=100x100`)).toEqual({ width: 100, height: 100, format: 'png', quarters })
    expect(await show(`${path}?thumb=100x100&fit=inside`)).toMatchObject({ width: 60, height: 40, quarters })
    const cut = await upload(bmp.subarray(0, Math.floor(bmp.length * 0.6)), `${crypto.randomUUID()}.bmp`)
    const { status } = await user.send('GET', `${cut}?thumb=100x100`)
    expect(status).toBe(415)
  })

  test('the first frame of a GIF is where it is on the canvas', async () => {
    const gif = Buffer.from('R0lGODlhAgACAIAAAP8AAP///ywBAAAAAQABAAACAkQBADs=', 'base64')
    const path = await upload(gif, 'frame.gif')
    expect(await show(`${path}?thumb=100x100&fit=inside`)).toMatchObject({ width: 2, height: 2, quarters: '-R--' })
    const outside = Buffer.from(gif)
    outside.writeUInt16LE(9, gif.indexOf(0x2c) + 1)
    const cut = await upload(outside, 'outside.gif')
    expect(await show(`${cut}?thumb=100x100&fit=inside`)).toMatchObject({ width: 2, height: 2, quarters: '----' })
  })

  test('a photo is turned as its Exif says, and keeps neither that nor where it was taken', async () => {
    const turned = ['RGBW', 'GRWB', 'WBGR', 'BWRG', 'RBGW', 'BRWG', 'WGBR', 'GWRB']
    const jpeg = await makeJpeg(160, 80)
    for (const [n, quarters] of turned.entries()) {
      const { body } = await user.upload(new Uint8Array(withExif(jpeg, n + 1, n % 2 === 0)), 'p.jpg')
      const path = body.url.replace('/api', '')
      const [width, height] = n < 4 ? [160, 80] : [80, 160]
      expect(body).toMatchObject({ width, height })
      expect(await show(`${path}?thumb=400x400&fit=inside`), `${n + 1}`).toMatchObject({ width, height, quarters })
      expect(await show(`${path}?thumb=100x100`), `${n + 1}`).toMatchObject({ width: 100, height: 100, quarters })
      const bytes = Buffer.from(await (await user.send('GET', `${path}?thumb=100x100`)).arrayBuffer())
      expect([bytes.includes('Exif'), bytes.includes('Somephone')]).toEqual([false, false])
    }
  })

  test('files of other types and unknown sizes are refused by a sentence', async () => {
    const { body } = await user.upload('text', 'a.txt')
    const text = await tenant.as('user').get(`${body.url.replace('/api', '')}?thumb=100x100`)
    expect(statusAndCode(text)).toEqual([415, 'NOT_A_PICTURE'])
    for (const size of ['101x100', '100', '0x0', '-1x5', '', '100x100x', '1e2x100']) {
      const response = await tenant.as('user').get(`${photo}?thumb=${size}`)
      expect(statusAndCode(response)).toEqual([400, 'INVALID_INPUT'])
      expect(response.body.message).toBe(
        'There are no thumbnails of this size. The allowed sizes are 100x100, 400x400, 1200x1200.',
      )
    }
  })

  test('an admin names other sizes in the files-configuration', async () => {
    const island = await createTestTenant()
    const client = fileClient(island, island.tokens.user)
    const path = await upload(await makeJpeg(90, 60), 'p.jpg', client)
    const write = (thumbs: unknown) =>
      island.as('admin').put('/configurations/files-configuration', { metadata: { thumbs } })
    for (const wrong of [['100'], ['0x10'], ['2001x10'], ['10x10', '10x10'], '10x10', Array(21).fill('1x1')])
      expect(statusAndCode(await write(wrong))).toEqual([400, 'INVALID_INPUT'])
    expect((await write(['30x20'])).status).toBe(200)
    expect(await show(`${path}?thumb=30x20`, client)).toMatchObject({ width: 30, height: 20, quarters: 'RGBW' })
    expect((await client.send('GET', `${path}?thumb=100x100`)).status).toBe(400)
    expect((await write([])).status).toBe(200)
    expect((await island.as('user').get(`${path}?thumb=30x20`)).body.message).toEndWith('No sizes are allowed.')
  })

  test('a field allows more sizes for the files that it names, as long as it does', async () => {
    const island = await createTestTenant()
    const client = fileClient(island, island.tokens.user)
    await island.as('admin').post('/blueprints', {
      ...{ key: 'pages', name: 'Pages', permissions: fullAccessRules('user', '*') },
      fields: [
        { key: 'cover', type: 'file', thumbs: ['30x20', '100x100'] },
        { key: 'pictures', type: 'file', multi: true, thumbs: ['20x30'] },
        { key: 'plain', type: 'file' },
      ],
    })
    const [covered, listed, other] = [
      await upload(await makeJpeg(90, 60), 'a.jpg', client),
      await upload(makePng(60, 90), 'b.png', client),
      await upload(makePng(60, 60), 'c.png', client),
    ]
    const refusal = async (path: string) => (await island.as('user').get(path)).body.message
    expect(await refusal(`${covered}?thumb=30x20`)).toEndWith('sizes are 100x100, 400x400, 1200x1200.')
    const toUrl = (path: string) => `/api${path}`
    const values = { cover: toUrl(covered!), pictures: [toUrl(other!), toUrl(listed!)], plain: toUrl(other!) }
    const { status, body: page } = await island.as('user').post('/blueprints/pages/entities', values)
    expect(status).toBe(201)
    expect(await show(`${covered}?thumb=30x20`, client)).toMatchObject({ width: 30, height: 20, quarters: 'RGBW' })
    expect(await show(`${listed}?thumb=20x30`, client)).toMatchObject({ width: 20, height: 30 })
    expect(await refusal(`${covered}?thumb=20x30`)).toEndWith('sizes are 100x100, 400x400, 1200x1200, 30x20.')
    expect(await refusal(`${other}?thumb=30x20`)).toEndWith('sizes are 100x100, 400x400, 1200x1200, 20x30.')
    await island.as('user').put(`/blueprints/pages/entities/${page._id}`, { cover: toUrl(other!) })
    expect((await island.as('user').get(`${covered}?thumb=30x20`)).status).toBe(400)
    expect(await show(`${other}?thumb=30x20`, client)).toMatchObject({ width: 30, height: 20 })
  })

  test('a client revalidates a thumbnail, reads a range of it, and asks for its headers alone', async () => {
    const path = `${photo}?thumb=400x400`
    const whole = await user.send('GET', path)
    const bytes = Buffer.from(await whole.arrayBuffer())
    const etag = whole.headers.get('etag')!
    expect(whole.headers.get('cache-control')).toBe('private, no-cache')
    const unchanged = await user.send('GET', path, { 'if-none-match': etag })
    expect([unchanged.status, await unchanged.text()]).toEqual([304, ''])
    const other = await user.send('GET', `${photo}?thumb=400x400&fit=inside`, { 'if-none-match': etag })
    expect([other.status, (await other.arrayBuffer()).byteLength > 100]).toEqual([200, true])
    const head = await user.send('HEAD', path)
    expect([head.status, head.headers.get('content-length'), await head.text()]).toEqual([200, `${bytes.length}`, ''])
    const part = await user.send('GET', path, { range: 'bytes=2-9' })
    expect([part.status, part.headers.get('content-range')]).toEqual([206, `bytes 2-9/${bytes.length}`])
    expect(Buffer.from(await part.arrayBuffer()).equals(bytes.subarray(2, 10))).toBeTrue()
  })

  test('a thumbnail is read by those who may read its file, also with a token', async () => {
    expect((await tenant.anonymous.get(`${photo}?thumb=100x100`)).status).toBe(401)
    expect((await tenant.as('other').get(`${photo}?thumb=100x100`)).status).toBe(404)
    const link = await tenant.as('user').post(`${photo.split('/').slice(0, 3).join('/')}/token`)
    expect((await tenant.anonymous.get(`${link.body.url.replace('/api', '')}&thumb=100x100`)).status).toBe(200)
  })
})

describe('stored thumbnails', () => {
  test('requests for one thumbnail at the same time share its making, and later ones read what is stored', async () => {
    const island = await createTestTenant()
    const client = fileClient(island, island.tokens.user)
    const path = await upload(await makeJpeg(600, 300), 'p.jpg', client)
    const spawn = spyOn(Bun, 'spawn')
    try {
      const ask = () => client.send('GET', `${path}?thumb=100x100`)
      const responses = await Promise.all(Array.from({ length: 20 }, ask))
      responses.push(await ask())
      expect(responses.map(({ status }) => status)).toEqual(Array(21).fill(200))
      expect(spawn).toHaveBeenCalledTimes(1)
    } finally {
      spawn.mockRestore()
    }
    expect(listStored(island.id)).toHaveLength(2)
  })

  test('thumbnails count as storage once, and are removed with their content', async () => {
    const island = await createTestTenant()
    const client = fileClient(island, island.tokens.user)
    const picture = await makeJpeg(600, 300)
    const path = await upload(picture, 'p.jpg', client)
    expect(await sumContentBytes(island.tenant)).toBe(picture.length)
    let bytes = picture.length
    for (const query of ['thumb=100x100', 'thumb=100x100', 'thumb=400x400&fit=inside']) {
      const { byteLength } = await (await client.send('GET', `${path}?${query}`)).arrayBuffer()
      if (query !== 'thumb=100x100' || bytes === picture.length) bytes += byteLength
    }
    expect(await sumContentBytes(island.tenant)).toBe(bytes)
    expect(listStored(island.id)).toHaveLength(3)
    await island.as('user').delete(path.split('/').slice(0, 3).join('/'))
    moveClock(now() + 2 * HOUR_MS)
    await removeUnusedContents({ ...island.tenant, signal: new AbortController().signal } as never).finally(() =>
      moveClock(),
    )
    expect(listStored(island.id)).toEqual([])
    expect(await sumContentBytes(island.tenant)).toBe(0)
  })

  test('a thumbnail that the store has lost is made again, and one of a lost content is told as missing', async () => {
    const island = await createTestTenant()
    const client = fileClient(island, island.tokens.user)
    const { rmSync } = await import('node:fs')
    const { tenantFolder } = await import('../../src/tenancy/databases')
    const path = await upload(await makeJpeg(60, 30), 'p.jpg', client)
    expect((await client.send('GET', `${path}?thumb=100x100`)).status).toBe(200)
    for (const name of listStored(island.id).filter((one) => one.endsWith('.jpeg')))
      rmSync(`${tenantFolder(island.id)}/files/${name}`)
    expect((await client.send('GET', `${path}?thumb=100x100`)).status).toBe(200)
    for (const name of listStored(island.id)) rmSync(`${tenantFolder(island.id)}/files/${name}`)
    expect(statusAndCode(await island.as('user').get(`${path}?thumb=100x100`))).toEqual([404, 'FILE_CONTENT_MISSING'])
  })
})
