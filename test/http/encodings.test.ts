import { beforeAll, expect, test } from 'bun:test'
import { gzipSync } from 'node:zlib'
import { packTar } from '../sites/fixtures'
import { callApi, createTestTenant, statusAndCode } from '../test-tenant'

let tenant: Awaited<ReturnType<typeof createTestTenant>>
beforeAll(async () => {
  tenant = await createTestTenant()
  const fields = [{ key: 'text', type: 'text' }]
  await tenant.as('admin').post('/blueprints', { key: 'things', name: 'Things', fields })
})

const send = (method: string, path: string, headers: Record<string, string>, raw: Uint8Array | ReadableStream) =>
  callApi(method, `${tenant.origin}/api${path}`, { headers: { 'x-api-key': tenant.tokens.admin, ...headers }, raw })

const latin1 = (text: string) => Buffer.from(text, 'latin1')
const json = { 'content-type': 'application/json' }
const form = { 'content-type': 'multipart/form-data; boundary=b' }
const toForm = (value: Buffer, type = '') =>
  Buffer.concat([
    Buffer.from(`--b\r\ncontent-disposition: form-data; name="text"\r\n${type}\r\n`),
    value,
    Buffer.from('\r\n--b--\r\n'),
  ])
const ENTITIES = '/blueprints/things/entities'

/** Bodies that hold a text, of all kinds of routes. */
const bodies: Record<
  string,
  (text: Buffer) => [method: string, path: string, headers: Record<string, string>, body: Buffer]
> = {
  'an entity': (text) => ['POST', ENTITIES, json, wrap('{"text":"', text, '"}')],
  'a large entity': (text) => ['POST', ENTITIES, json, wrap(`{"text":"${'x'.repeat(100_000)}`, text, '"}')],
  'a configuration': (text) => ['POST', '/configurations', json, wrap('{"key":"k","metadata":{"a":"', text, '"}}')],
  'a part of a form': (text) => ['POST', ENTITIES, form, toForm(text)],
}
const wrap = (before: string, text: Buffer, after: string) =>
  Buffer.concat([Buffer.from(before), text, Buffer.from(after)])

/** Bytes that a decoder replaces: Latin-1, a cut character, a surrogate, an overlong zero, and a lone continuation. */
const invalid = [
  latin1('café'),
  Buffer.from([0xf0, 0x9f, 0x98]),
  Buffer.from([0xed, 0xa0, 0x80]),
  Buffer.from([0xc0, 0x80]),
  Buffer.from([0x61, 0xbf]),
]

test.each(Object.entries(bodies))(
  '%s that is not UTF-8 is refused with 400, and stores nothing',
  async (name, create) => {
    const before = await count()
    for (const bytes of invalid) {
      const answer = await send(...create(bytes))
      expect(statusAndCode(answer), name).toEqual([400, 'MALFORMED_BODY'])
    }
    expect(await count()).toBe(before)
    expect((await send(...create(Buffer.from('café 🏝 \ufffd')))).status, name).toBeLessThan(300)
  },
)

const count = async () => (await tenant.as('admin').get(ENTITIES)).body.length

test('a file whose name is not UTF-8 is refused with 400, and not stored', async () => {
  const upload = (name: Buffer) =>
    send(
      'POST',
      '/files',
      form,
      wrap('--b\r\ncontent-disposition: form-data; name="file"; filename="', name, '"\r\n\r\nx\r\n--b--\r\n'),
    )
  expect(statusAndCode(await upload(latin1('café.txt')))).toEqual([400, 'MALFORMED_BODY'])
  expect((await tenant.as('admin').get('/files')).body).toEqual([])
  expect((await upload(Buffer.from('café.txt'))).body.name).toBe('café.txt')
})

test('a chunked body is checked like one of announced length', async () => {
  const chunks = new ReadableStream({
    start(controller) {
      for (const chunk of [Buffer.from('{"text":"a'), latin1('é'), Buffer.from('"}')]) controller.enqueue(chunk)
      controller.close()
    },
  })
  expect(statusAndCode(await send('POST', ENTITIES, json, chunks))).toEqual([400, 'MALFORMED_BODY'])
})

test('a charset other than UTF-8 is refused with 415, and UTF-8 by any of its names is taken', async () => {
  const body = Buffer.from('{"text":"a"}')
  for (const charset of ['iso-8859-1', 'windows-1252', 'UTF-16', '"latin1"', 'utf-7'])
    expect(
      statusAndCode(await send('POST', ENTITIES, { 'content-type': `application/json; charset=${charset}` }, body)),
      charset,
    ).toEqual([415, 'UNSUPPORTED_MEDIA_TYPE'])
  for (const charset of ['utf-8', 'UTF-8', '"utf-8"', 'utf8', 'us-ascii'])
    expect(
      (await send('POST', ENTITIES, { 'content-type': `application/json;charset=${charset}` }, body)).status,
      charset,
    ).toBe(201)
})

test('a body with a Content-Encoding is refused with 415 by every route, and identity is none', async () => {
  const archive = await packTar(['index.html', 'home'])
  const routes: [method: string, path: string, type: string, body: Uint8Array][] = [
    ['POST', ENTITIES, 'application/json', Buffer.from('{"text":"a"}')],
    ['POST', ENTITIES, form['content-type'], toForm(Buffer.from('a'))],
    ['POST', `${ENTITIES}/import`, 'application/x-ndjson', Buffer.from('{"text":"a"}\n')],
    ['POST', '/files?name=a.txt', 'text/plain', Buffer.from('a text')],
    ['PUT', '/sites', 'application/x-tar', archive],
  ]
  for (const [method, path, type, body] of routes) {
    for (const encoding of ['gzip', 'br', 'zstd', 'GZIP', 'gzip, gzip']) {
      const answer = await send(method, path, { 'content-type': type, 'content-encoding': encoding }, gzipSync(body))
      expect(statusAndCode(answer), `${path} ${encoding}`).toEqual([415, 'UNSUPPORTED_MEDIA_TYPE'])
      expect([answer.body.message, answer.headers.get('accept-encoding')]).toEqual([
        expect.stringContaining('Content-Encoding'),
        'identity',
      ])
    }
    const plain = await send(method, path, { 'content-type': type, 'content-encoding': 'identity' }, body)
    expect(plain.status, path).toBeLessThan(300)
  }
  const guest = { 'content-encoding': 'gzip', ...json }
  const refused = await callApi('POST', `${tenant.origin}/api/blocks`, { headers: guest, raw: gzipSync('{}') })
  expect(refused.status).toBe(401)
})

test.each(['text=caf%E9', 'text[$like]=%de%', '$q=%F0%9F%98', 'text=a&%FF=b'])(
  'the query %s, which is not UTF-8, is refused with 400 INVALID_INPUT',
  async (query) => {
    const answer = await tenant.as('admin').get(`${ENTITIES}?${query}`)
    expect(statusAndCode(answer)).toEqual([400, 'INVALID_INPUT'])
    expect(answer.body.details[0].message).toContain('is not UTF-8')
  },
)

test('a query of UTF-8 and lone percent signs is taken', async () => {
  for (const query of ['text=caf%C3%A9', 'text[$like]=%z%', 'text[$like]=%25de%25', 'text=%F0%9F%8F%9D'])
    expect((await tenant.as('admin').get(`${ENTITIES}?${query}`)).status, query).toBe(200)
  expect((await tenant.as('admin').get('/events?source=caf%E9')).status).toBe(400)
})
