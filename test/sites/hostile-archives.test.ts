// engine: sqlite
import { afterEach, beforeEach, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { gzipSync } from 'node:zlib'
import { config } from '../../src/config'
import { listStored } from '../files/fixtures'
import { createTestTenant, statusAndCode } from '../test-tenant'
import { type ArchiveEntry, INDEX, packTar, siteClient } from './fixtures'

setDefaultTimeout(60_000)

let tenant: Awaited<ReturnType<typeof createTestTenant>>
let site: ReturnType<typeof siteClient>
const limit = config.ATOLL_SITE_LIMIT
beforeEach(async () => {
  tenant = await createTestTenant()
  site = siteClient(tenant)
})
afterEach(() => {
  config.ATOLL_SITE_LIMIT = limit
})

const INVALID = [400, 'INVALID_INPUT']
const MALFORMED = [400, 'MALFORMED_BODY']

describe('hostile archives', () => {
  test('entries that are no plain files, and names that lead elsewhere, are refused and change nothing', async () => {
    await site.deploy(await packTar(['index.html', 'before']))
    const stored = listStored(tenant.id)
    const entries: ArchiveEntry[] = [
      { header: { name: 'link', type: 'symlink', linkname: '/etc/passwd' } },
      { header: { name: 'index2.html', type: 'link', linkname: 'index.html' } },
      { header: { name: 'null', type: 'character-device', devmajor: 1, devminor: 3 } },
      { header: { name: 'disk', type: 'block-device' } },
      { header: { name: 'pipe', type: 'fifo' } },
      ...['/etc/passwd', '../up.html', 'a/../../up.html', 'a//b', 'a/./b', 'C:/x', 'a\\b', 'a\nb', '..', '.env'].map(
        (name): ArchiveEntry => [name, 'x'],
      ),
      ...['.git/config', 'a/.hidden', '.well-known/.x', `${'x/'.repeat(250)}y`, 'ü'.repeat(250)].map(
        (name): ArchiveEntry => [name, 'x'],
      ),
      ...['api/x.js', 'API/x.js', 'admin', 'admin/index.html', 'health', 'metrics.html', 'openapi/x', 'ready'].map(
        (name): ArchiveEntry => [name, 'x'],
      ),
      ['index.html', 'twice'],
      ['./index.html', 'twice'],
    ]
    for (const entry of entries) {
      const name = Array.isArray(entry) ? entry[0] : entry.header.name
      const answer = await site.deploy(await packTar(INDEX, entry))
      expect(statusAndCode(answer), name).toEqual(INVALID)
      expect(answer.body.message, name).toContain('The archive has')
    }
    expect(listStored(tenant.id)).toEqual(stored)
    expect(await site.read('/')).toEqual([200, 'before'])
    expect((await tenant.as('admin').get('/sites')).body).toHaveLength(1)
  })

  test.each([
    ['1', 'a hard link'],
    ['2', 'a symbolic link'],
    ['6', 'a named pipe'],
    ...['S', 'M', 'V', 'D'].map((flag) => [flag, 'an extension of GNU tar: a sparse file']),
  ])('an entry of the type %p is refused with what it is', async (flag, what) => {
    const archive = await packTar(INDEX, ['odd.bin', 'content'])
    const at = Buffer.from(archive).indexOf('odd.bin')
    archive[at + 156] = flag!.charCodeAt(0)
    const header = archive.subarray(at, at + 512)
    header.fill(32, 148, 156)
    const checksum = header.reduce((sum, byte) => sum + byte, 0)
    header.set(Buffer.from(`${checksum.toString(8).padStart(6, '0')}\0 `), 148)
    const answer = await site.deploy(archive)
    expect(statusAndCode(answer)).toEqual(INVALID)
    expect(answer.body.message).toContain(what!)
    expect(answer.body.message).not.toContain('null')
  })

  test('names that one encoding writes in two ways count as twice', async () => {
    const answer = await site.deploy(await packTar(INDEX, ['ä.txt', '1'], ['a\u0308.txt', '2']))
    expect(statusAndCode(answer)).toEqual(INVALID)
  })

  test('an archive without index.html at its top is refused, also an empty one', async () => {
    expect(statusAndCode(await site.deploy(await packTar(['dist/index.html', 'x'])))).toEqual(INVALID)
    expect(statusAndCode(await site.deploy(await packTar()))).toEqual(INVALID)
    expect(statusAndCode(await site.deploy(new Uint8Array(1_024)))).toEqual(INVALID)
  })

  test('an archive with folders, a leading dot and long names is accepted', async () => {
    const long = `${'folder/'.repeat(30)}file.txt`
    const archive = await packTar(
      { header: { name: './', type: 'directory' } },
      ['./index.html', 'home'],
      { header: { name: './a', type: 'directory' } },
      ['./a/empty.txt', ''],
      [`./${long}`, 'deep'],
    )
    expect((await site.deploy(archive)).body).toMatchObject({ files: 3, bytes: 8 })
    expect(await site.read(`/${long}`)).toEqual([200, 'deep'])
    expect(await site.read('/a/empty.txt')).toEqual([200, ''])
  })

  test('a body that is no archive, or ends early, is refused and leaves nothing', async () => {
    const archive = await packTar(INDEX, ['a.txt', 'x'.repeat(50_000)])
    const zipped = new Uint8Array(gzipSync(archive))
    for (const body of [
      new Uint8Array(Buffer.from('not a tar archive at all'.repeat(100))),
      archive.slice(0, 20_000),
      zipped.slice(0, zipped.length - 20),
      new Uint8Array([0x1f, 0x8b, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]),
    ])
      expect(statusAndCode(await site.deploy(body))).toEqual(MALFORMED)
    const brokenOff = new ReadableStream({
      start: (controller) => controller.enqueue(archive.slice(0, 10_000)),
      async pull(controller) {
        await Bun.sleep(20)
        controller.error(new Error('gone'))
      },
    })
    expect(statusAndCode(await site.deploy(brokenOff))).toEqual(MALFORMED)
    expect(statusAndCode(await site.deploy(archive, '', 'application/zip'))).toEqual([415, 'UNSUPPORTED_MEDIA_TYPE'])
    expect(listStored(tenant.id)).toEqual([])
    expect((await tenant.as('admin').get('/sites')).body).toEqual([])
  })

  test('a site that is too large is refused, with and without an announced length', async () => {
    config.ATOLL_SITE_LIMIT = 100_000
    const fits = await packTar(INDEX, ['a.bin', 'x'.repeat(99_000)])
    expect((await site.deploy(fits)).status).toBe(201)
    const tooLarge = await packTar(INDEX, ['a.bin', 'x'.repeat(60_000)], ['b.bin', 'y'.repeat(60_000)])
    expect(statusAndCode(await site.deploy(tooLarge))).toEqual([413, 'SITE_TOO_LARGE'])
    expect(statusAndCode(await site.deploy(new Response(tooLarge).body!))).toEqual([413, 'SITE_TOO_LARGE'])
    // A header that announces more than there is.
    const lying = await packTar(INDEX, ['a.bin', 'x'])
    lying.set(Buffer.from('77777777777\0'), 1_024 + 124)
    fixChecksum(lying, 1_024)
    expect(statusAndCode(await site.deploy(lying))).toEqual([413, 'SITE_TOO_LARGE'])
  })

  test('a bomb of gzip is refused as soon as it unpacks to too much', async () => {
    config.ATOLL_SITE_LIMIT = 1 << 20
    const zeros = gzipSync(new Uint8Array(256 << 20))
    expect(zeros.length).toBeLessThan(300_000)
    const before = process.memoryUsage().rss
    expect(statusAndCode(await site.deploy(new Uint8Array(zeros)))).toEqual([413, 'SITE_TOO_LARGE'])
    expect(process.memoryUsage().rss - before).toBeLessThan(150 << 20)
    const header = (await packTar(INDEX, ['bomb.bin', ''])).slice(0, 1_536)
    header.set(Buffer.from('00400000000\0'), 1_024 + 124)
    fixChecksum(header, 1_024)
    const bomb = gzipSync(Buffer.concat([header, new Uint8Array(64 << 20)]))
    expect(statusAndCode(await site.deploy(new Uint8Array(bomb)))).toEqual([413, 'SITE_TOO_LARGE'])
    expect(listStored(tenant.id)).toEqual([])
  })

  test('more than 10,000 files, and a header that is longer than 4 MiB, are refused', async () => {
    const many = Array.from({ length: 10_001 }, (_, n): ArchiveEntry => [`${n}.txt`, ''])
    expect(statusAndCode(await site.deploy(await packTar(INDEX, ...many)))).toEqual([413, 'SITE_TOO_LARGE'])
    const pax = { name: 'a.txt', pax: { comment: 'x'.repeat(5 << 20) } }
    expect(statusAndCode(await site.deploy(await packTar(INDEX, { header: pax as never })))).toEqual(MALFORMED)
    expect(listStored(tenant.id)).toEqual([])
  })
})

/** Writes the checksum of the tar header at an offset. */
function fixChecksum(archive: Uint8Array, offset: number) {
  archive.fill(32, offset + 148, offset + 156)
  const sum = archive.subarray(offset, offset + 512).reduce((total, byte) => total + byte, 0)
  archive.set(Buffer.from(`${sum.toString(8).padStart(6, '0')}\0 `), offset + 148)
}
