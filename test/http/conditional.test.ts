import { beforeAll, describe, expect, test } from 'bun:test'
import { handleRequest } from '../../src/gateway'
import { packTar, siteClient } from '../sites/fixtures'
import { callApi, createTestTenant, type TestResponse } from '../test-tenant'

let tenant: Awaited<ReturnType<typeof createTestTenant>>
beforeAll(async () => {
  tenant = await createTestTenant()
})

describe('resources of the API', () => {
  test('GET and HEAD answer 304 to the ETag of the version, and 200 to another one', async () => {
    const admin = tenant.as('admin')
    await admin.post('/blueprints', { key: 'notes', name: 'Notes', fields: [{ key: 'text', type: 'text' }] })
    await admin.post('/blueprints/notes/entities', { identifier: 'one', text: 'a' })
    await admin.post('/configurations', { key: 'dashboard', metadata: {} })
    const { _id } = (await admin.post('/lambdas', { name: 'one', code: 'export default () => 1' })).body
    const paths = [
      '/blueprints/notes',
      '/blueprints/notes/entities/one',
      '/configurations/dashboard',
      `/lambdas/${_id}`,
    ]
    for (const path of paths) {
      const { headers } = await admin.get(path)
      const etag = headers.get('etag')!
      for (const sent of [etag, `W/${etag}`, etag.replace(/"$/, '-gzip"'), `"x", ${etag}`]) {
        const again = await admin.get(path, { 'if-none-match': sent })
        expect([again.status, again.body], `${path} ${sent}`).toEqual([304, undefined])
        for (const name of ['etag', 'cache-control', 'vary']) expect(again.headers.get(name)).toBe(headers.get(name))
      }
      expect((await admin.get(path, { 'if-none-match': '"x"' })).status, path).toBe(200)
    }
  })

  test('a caller who may not read learns nothing by an ETag', async () => {
    const { headers } = await tenant.as('admin').get('/blueprints/notes')
    const ifNoneMatch = { 'if-none-match': headers.get('etag')! }
    expect((await tenant.anonymous.get('/blueprints/notes', ifNoneMatch)).status).toBe(401)
    expect((await tenant.anonymous.get('/blueprints/notes', { 'if-none-match': '*' })).status).toBe(401)
  })
})

/** Opens a file or a page of a site; `read` gives its validators. */
const places = {
  'a file': async () => {
    const url = `${tenant.origin}/api/files?name=digits.txt`
    const key = { 'x-api-key': tenant.tokens.user }
    const { body } = await callApi('POST', url, { headers: key, raw: '0123456789' })
    return (method: string, headers: Record<string, string>) =>
      callApi(method, `${tenant.origin}${body.url}`, { headers: { ...key, ...headers } })
  },
  'a file of a site': async () => {
    const archive = await packTar(['index.html', 'home'], ['digits.txt', '0123456789'])
    expect((await siteClient(tenant).deploy(archive)).status).toBe(201)
    return (method: string, headers: Record<string, string>) =>
      callApi(method, `${tenant.origin}/digits.txt`, { headers })
  },
}

describe.each(Object.entries(places))('conditions of %s', (_, open) => {
  let send: (method: string, headers: Record<string, string>) => Promise<TestResponse>
  let etag: string
  let modified: string
  beforeAll(async () => {
    send = await open()
    const { headers } = await send('GET', {})
    etag = headers.get('etag')!
    modified = headers.get('last-modified')!
  })
  const shift = (seconds: number) => new Date(Date.parse(modified) + seconds * 1000).toUTCString()
  const asctime = (at: string) =>
    at.replace(
      /^(\w+), (\d\d) (\w+) (\d+) ([\d:]+) GMT$/,
      (_, day, date, month, year, time) => `${day} ${month} ${date} ${time} ${year}`,
    )
  const rfc850 = (at: string) =>
    at.replace(
      /^\w+, (\d\d) (\w+) \d\d(\d\d) ([\d:]+) GMT$/,
      (_, date, month, year, time) => `Sunday, ${date}-${month}-${year} ${time} GMT`,
    )

  /** Conditions, and the statuses with GET and HEAD. */
  type Row = [headers: Record<string, string>, get: number, head?: number]
  const rows = (): Row[] => [
    [{}, 200],
    [{ 'if-match': etag }, 200],
    [{ 'if-match': `W/${etag}` }, 200],
    [{ 'if-match': etag.replace(/"$/, '-gzip"') }, 200],
    [{ 'if-match': `"x", ${etag}` }, 200],
    [{ 'if-match': '*' }, 200],
    [{ 'if-match': '"x"' }, 412],
    [{ 'if-match': '"x"', 'if-none-match': etag }, 412],
    [{ 'if-match': '"x"', range: 'bytes=2-4' }, 412],
    [{ 'if-match': etag, range: 'bytes=2-4' }, 206, 200],
    [{ 'if-match': etag, 'if-none-match': etag }, 304],
    [{ 'if-unmodified-since': modified }, 200],
    [{ 'if-unmodified-since': shift(60) }, 200],
    [{ 'if-unmodified-since': shift(-60) }, 412],
    [{ 'if-unmodified-since': asctime(shift(-60)) }, 412],
    [{ 'if-unmodified-since': 'yesterday' }, 200],
    [{ 'if-match': etag, 'if-unmodified-since': shift(-60) }, 200],
    [{ 'if-match': '"x"', 'if-unmodified-since': shift(60) }, 412],
    [{ 'if-none-match': etag }, 304],
    [{ 'if-none-match': `W/${etag}` }, 304],
    [{ 'if-none-match': '*' }, 304],
    [{ 'if-none-match': '"x"' }, 200],
    [{ 'if-none-match': '"x"', 'if-modified-since': shift(60) }, 200],
    [{ 'if-none-match': etag, 'if-modified-since': shift(-60) }, 304],
    [{ 'if-none-match': etag, range: 'bytes=2-4' }, 304],
    [{ 'if-none-match': '"x"', range: 'bytes=2-4' }, 206, 200],
    [{ 'if-modified-since': modified }, 304],
    [{ 'if-modified-since': asctime(modified) }, 304],
    [{ 'if-modified-since': rfc850(modified) }, 304],
    [{ 'if-modified-since': shift(60) }, 304],
    [{ 'if-modified-since': shift(-60) }, 200],
    [{ 'if-modified-since': new Date(Date.parse(modified) + 60_000).toISOString() }, 200],
    [{ 'if-modified-since': modified, range: 'bytes=2-4' }, 304],
    [{ range: 'bytes=2-4' }, 206, 200],
    [{ range: 'bytes=9-' }, 206, 200],
    [{ range: 'bytes=-3' }, 206, 200],
    [{ range: 'BYTES=2-4' }, 206, 200],
    [{ range: 'bytes=10-' }, 416, 200],
    [{ range: 'bytes=-0' }, 416, 200],
    [{ range: 'bytes=4-2' }, 200],
    [{ range: 'bytes=a-b' }, 200],
    [{ range: 'lines=2-4' }, 200],
    [{ range: 'bytes=0-1,4-5' }, 200],
    [{ range: 'bytes=2-4', 'if-range': etag }, 206, 200],
    [{ range: 'bytes=2-4', 'if-range': `W/${etag}` }, 200],
    [{ range: 'bytes=2-4', 'if-range': etag.replace(/"$/, '-gzip"') }, 200],
    [{ range: 'bytes=2-4', 'if-range': '"x"' }, 200],
    [{ range: 'bytes=2-4', 'if-range': modified }, 206, 200],
    [{ range: 'bytes=2-4', 'if-range': shift(60) }, 200],
    [{ range: 'bytes=2-4', 'if-range': 'x' }, 200],
    [{ range: 'bytes=20-', 'if-range': '"x"' }, 200],
    [{ 'if-range': '"x"' }, 200],
  ]

  test('GET and HEAD answer as RFC 9110 says', async () => {
    for (const [headers, status, headStatus = status] of rows()) {
      const name = JSON.stringify(headers)
      const get = await send('GET', headers)
      expect(get.status, name).toBe(status)
      const head = await send('HEAD', headers)
      expect(head.status, `HEAD ${name}`).toBe(headStatus)
      if (status === 200) expect(String(get.body), name).toBe('0123456789')
      if (status === 206) expect(get.headers.get('content-range'), name).toStartWith('bytes ')
      if (status === 304)
        expect([get.body, get.headers.get('etag'), get.headers.get('last-modified')], name).toEqual([
          undefined,
          etag,
          modified,
        ])
      if (status === 412) expect(get.body.code).toBe('VERSION_MISMATCH')
      if (headStatus === 200)
        expect([head.headers.get('content-length'), head.headers.get('content-range'), head.body], name).toEqual([
          '10',
          null,
          undefined,
        ])
    }
  })
})

test('a site that is rolled back, or deployed again within a second, is later than before', async () => {
  const rolled = await createTestTenant()
  const site = siteClient(rolled)
  const modifiedOf = async () => Date.parse((await site.open('/')).headers.get('last-modified')!)
  const deploy = async (text: string) =>
    expect((await site.deploy(await packTar(['index.html', text]))).status).toBe(201)
  await deploy('first')
  const first = (await site.open('/')).headers.get('last-modified')!
  await deploy('second')
  const answer = await site.open('/', { 'if-modified-since': first })
  expect([answer.status, await answer.text()]).toEqual([200, 'second'])
  expect(await modifiedOf()).toBeLessThanOrEqual(Date.now())
  const rollback = { method: 'POST', headers: { 'x-api-key': rolled.tokens.admin, host: new URL(rolled.origin).host } }
  expect((await handleRequest(new Request(`${rolled.origin}/api/sites/rollback`, rollback))).status).toBe(200)
  expect(await (await site.open('/', { 'if-modified-since': first })).text()).toBe('first')
})

test('a refused caller is told how to authenticate, whatever route refuses', async () => {
  const { origin, anonymous, as } = tenant
  const refusals = [
    await anonymous.get('/me'),
    await anonymous.post('/blueprints', {}),
    await anonymous.get('/files/01a22344-2e51-74c9-9eb0-cde40fe3c43a/a.txt'),
    await callApi('GET', `${origin}/operator/tenants`),
    await anonymous.post('/signin', { username: 'nobody', password: 'wrong password' }),
    await anonymous.post('/token/refresh', { refreshToken: 'x' }),
  ]
  for (const { status, headers } of refusals)
    expect([status, headers.get('www-authenticate')]).toEqual([401, 'Bearer realm="atoll"'])
  const invalid = await anonymous.get('/me', { authorization: 'Bearer x' })
  expect([invalid.status, invalid.headers.get('www-authenticate')]).toEqual([
    401,
    'Bearer realm="atoll", error="invalid_token"',
  ])
  expect((await as('user').get('/blueprints/none')).headers.get('www-authenticate')).toBeNull()
})
