import { afterAll, beforeAll, beforeEach, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { config } from '../../src/config'
import { createTestTenant, withoutRateLimits } from '../test-tenant'
import { fileClient, listStored, PNG } from './fixtures'

setDefaultTimeout(60_000)

let tenant: Awaited<ReturnType<typeof createTestTenant>>
let user: ReturnType<typeof fileClient>
const limit = config.ATOLL_FILE_LIMIT
beforeAll(() => {
  config.ATOLL_FILE_LIMIT = 1 << 20
})
afterAll(() => {
  config.ATOLL_FILE_LIMIT = limit
})
beforeEach(async () => {
  tenant = await createTestTenant()
  user = fileClient(tenant, tenant.tokens.user)
})

/** Uploads a content and returns the headers with which it is served. */
async function serve(content: string | Uint8Array<ArrayBuffer>, name: string, type: string) {
  const { body } = await user.upload(content, name, type)
  const { headers } = await user.send('GET', body.url.replace('/api', ''))
  expect(headers.get('x-content-type-options')).toBe('nosniff')
  expect(headers.get('content-security-policy')).toStartWith("default-src 'none'")
  return { type: headers.get('content-type'), disposition: headers.get('content-disposition')!.split(';')[0], headers }
}

describe('hostile uploads', () => {
  test('markup and scripts are saved and sandboxed, whatever their type is said to be', async () => {
    const contents = {
      'image/svg+xml': '<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>',
      'text/html;charset=utf-8': '  <!-- x --><html><script>alert(1)</script></html>',
      'application/xml': '<?xml version="1.0"?><a><b/></a>',
    }
    for (const [expected, content] of Object.entries(contents)) {
      const { type, disposition, headers } = await serve(content, 'a.png', 'image/png')
      expect([type, disposition]).toEqual([expected, 'attachment'])
      expect(headers.get('content-security-policy')).toContain('sandbox')
    }
    expect((await serve('alert(1)', 'a.js', 'text/javascript')).type).toBe('text/plain;charset=utf-8')
    expect((await serve('\0\x01\x02', 'a.html', 'text/html')).type).toBe('application/octet-stream')
  })

  test('a picture that is also a page is served as a picture in a sandbox', async () => {
    const polyglot = new Uint8Array(Buffer.concat([PNG, Buffer.from('<script>alert(1)</script>')]))
    const { type, disposition, headers } = await serve(polyglot, 'a.html', 'text/html')
    expect([type, disposition]).toEqual(['image/png', 'inline'])
    expect(headers.get('content-security-policy')).toContain('sandbox')
  })

  test('a name loses its path, its control characters and what changes the direction of text', async () => {
    const names = {
      '../../etc/passwd': 'passwd',
      'C:\\x\\y.txt': 'y.txt',
      '..': 'file',
      '\u061ca\u202egpj\u2028.exe': 'agpj.exe',
    }
    for (const [name, expected] of Object.entries(names))
      expect((await user.upload('x', name)).body.name).toBe(expected)
    const long = (await user.upload('x', `${'ä'.repeat(300)}.txt`)).body.name
    expect([long.length, long.endsWith('.txt')]).toEqual([200, true])
    const { body } = await user.upload('x', 'a";b=\'c.txt')
    const { headers } = await user.send('GET', body.url.replace('/api', ''))
    expect(headers.get('content-disposition')).toBe(
      "inline; filename=\"a_;b='c.txt\"; filename*=UTF-8''a%22%3Bb%3D%27c.txt",
    )
    expect(listStored(tenant.id)).toHaveLength(1)
  })

  test('a file that is too large is refused with and without an announced length, and leaves nothing', async () => {
    const large = new Uint8Array(2 << 20)
    const inChunks = new ReadableStream({
      pull(controller) {
        controller.enqueue(new Uint8Array(64 << 10))
      },
    })
    const form = new FormData()
    form.set('file', new File([large], 'large'))
    for (const { status, body } of [await user.upload(large), await user.upload(inChunks), await user.uploadForm(form)])
      expect([status, body.code]).toEqual([413, 'FILE_TOO_LARGE'])
    expect(listStored(tenant.id)).toEqual([])
  })

  test('an upload that is broken off is refused and leaves nothing', async () => {
    const breakingOff = () =>
      new ReadableStream({
        start(controller) {
          controller.enqueue(new Uint8Array(100_000))
        },
        async pull(controller) {
          await Bun.sleep(20)
          controller.error(new Error('gone'))
        },
      })
    expect(await user.upload(breakingOff())).toMatchObject({ status: 400, body: { code: 'MALFORMED_BODY' } })
    const head = '--b\r\ncontent-disposition: form-data; name="file"; filename="a"\r\n\r\nhalf'
    const response = await user.send('POST', '/files', { 'content-type': 'multipart/form-data; boundary=b' }, head)
    expect([response.status, ((await response.json()) as { code: string }).code]).toEqual([400, 'MALFORMED_BODY'])
    expect(listStored(tenant.id)).toEqual([])
    expect((await tenant.as('user').get('/files')).body).toEqual([])
  })

  test('a form without a boundary is refused', async () => {
    for (const type of ['multipart/form-data; x', 'multipart/form-data', 'multipart/form-data; boundary=']) {
      const response = await user.send('POST', '/files', { 'content-type': type }, 'x')
      expect([response.status, ((await response.json()) as { code: string }).code]).toEqual([400, 'MALFORMED_BODY'])
    }
  })

  test('200 uploads at once are all stored, and one content of them only once', async () => {
    using _ = withoutRateLimits()
    const uploads = await Promise.all(
      Array.from({ length: 200 }, (_, n) => user.upload(n % 2 ? 'the same' : `content ${n}`, `${n}.txt`)),
    )
    expect(uploads.filter(({ status }) => status !== 201)).toEqual([])
    expect(listStored(tenant.id)).toHaveLength(101)
  })
})
