import { beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import { app } from '../../src/app'
import { handleRequest } from '../../src/gateway'
import { chooseEncoding } from '../../src/sites/encodings'
import { isHashedName } from '../../src/sites/hashed-name'
import { findSiteTarget } from '../../src/sites/site-path'
import { createTestTenant } from '../test-tenant'
import { packTar, siteClient } from './fixtures'

setDefaultTimeout(60_000)

const SCRIPT = `console.log(${JSON.stringify('a long script '.repeat(100))})`
const LARGE = crypto.getRandomValues(new Uint8Array(400_000))
const NAVIGATION = { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' }

let tenant: Awaited<ReturnType<typeof createTestTenant>>
let site: ReturnType<typeof siteClient>
let onePage: ReturnType<typeof siteClient>
beforeAll(async () => {
  tenant = await createTestTenant()
  site = siteClient(tenant)
  const archive = await packTar(
    ['index.html', 'home'],
    ['404.html', 'no such page'],
    ['about.html', 'about'],
    ['docs/index.html', 'docs'],
    ['both.html', 'file'],
    ['both/index.html', 'folder'],
    ['data.json', '{}'],
    ['größe.txt', 'umlaut'],
    ['assets/index-B3kd92.js', SCRIPT],
    ['style.css', `body{${'color:red;'.repeat(100)}}`],
    ['large.bin', LARGE],
    ['digits.txt', '0123456789'],
    ['sw.js', 'self'],
    ['app/sw.js', 'self'],
    ['.well-known/security.txt', 'Contact: mailto:a@example.com'],
    ['valueOf', 'plain'],
    ['x.__proto__', 'plain'],
  )
  expect((await site.deploy(archive)).status).toBe(201)
  onePage = siteClient(await createTestTenant())
  expect((await onePage.deploy(await packTar(['index.html', 'app']), '?spa=1')).status).toBe(201)
})

/** Opens a path as a client may send it; a Request would resolve its dots. */
async function readUnresolved(path: string) {
  const request = new Request(`${tenant.origin}/`, { headers: { host: new URL(tenant.origin).host } })
  Object.defineProperty(request, 'url', { value: `${tenant.origin}${path}` })
  const response = await handleRequest(request)
  return [response.status, await response.text()]
}

describe('paths', () => {
  test('clean paths lead to files, and slashes at the end redirect to where a file is', async () => {
    expect(await site.read('/')).toEqual([200, 'home'])
    expect(await site.read('/about')).toEqual([200, 'about'])
    expect(await site.read('/about.html')).toEqual([200, 'about'])
    expect(await site.read('/docs/?x=1')).toEqual([200, 'docs'])
    expect(await site.read('/both')).toEqual([200, 'file'])
    expect(await site.read('/both/')).toEqual([200, 'folder'])
    expect(await site.read('/gr%C3%B6%C3%9Fe.txt')).toEqual([200, 'umlaut'])
    // A name that a Mac decomposes.
    expect(await site.read('/gro%CC%88%C3%9Fe.txt')).toEqual([200, 'umlaut'])
    expect(await site.read('/.well-known/security.txt')).toEqual([200, 'Contact: mailto:a@example.com'])
    for (const [path, location] of [
      ['/docs?a=b', '/docs/?a=b'],
      ['/about/?a', '/about?a'],
      ['/data.json/', '/data.json'],
    ]) {
      const response = await site.open(path!)
      expect([response.status, response.headers.get('location')]).toEqual([307, location!])
    }
  })

  test('unknown and hostile paths get 404.html with the status 404', async () => {
    for (const path of [
      ...['/nothing', '/nothing/', '/docs/nothing.js', '//docs/', '/docs//', '/.', '/docs/../about', '/.git/config'],
      ...['/%2e%2e/%2e%2e/etc/passwd', '/..%2f..%2fetc%2fpasswd', '/%00', '/about%00.html', '/docs%5cindex.html'],
      ...['/%zz', '/%c0%ae%c0%ae/', '/.well-known', '/docs/.well-known/x', `/${'x'.repeat(5_000)}`, '/__proto__'],
      ...['/%2Fevil.example/', '/\\evil.example', '/%0d%0aset-cookie:x', '/constructor', '/a%2f..%2f'],
    ])
      expect(await readUnresolved(path), path).toEqual([404, 'no such page'])
  })

  test('an app of one page shows index.html to navigations to unknown paths, and nothing else gets it', async () => {
    expect(await onePage.read('/users/1', NAVIGATION)).toEqual([200, 'app'])
    expect((await onePage.read('/users/1', { accept: '*/*' }))[0]).toBe(404)
    expect((await onePage.read('/missing.js', NAVIGATION))[0]).toBe(404)
    expect((await onePage.open('/users/1', NAVIGATION)).headers.get('vary')).toContain('Accept')
    expect((await site.read('/users/1', NAVIGATION))[0]).toBe(404)
  })

  test('the icon of a site is served in place of that of the server, which tenants without a site keep', async () => {
    const withIcon = siteClient(await createTestTenant())
    await withIcon.deploy(await packTar(['index.html', 'home'], ['favicon.ico', 'an icon']))
    const icon = await withIcon.open('/favicon.ico')
    expect([icon.status, icon.headers.get('content-type'), await icon.text()]).toEqual([200, 'image/x-icon', 'an icon'])
    expect(await site.read('/favicon.ico')).toEqual([404, 'no such page'])
    expect((await siteClient(await createTestTenant()).open('/favicon.ico')).status).toBe(204)
  })

  test('routes of the server stay where they are, and their first parts are all reserved', async () => {
    const site = siteClient(await createTestTenant())
    await site.deploy(await packTar(['index.html', 'app']), '?spa=true')
    expect((await site.open('/health', NAVIGATION)).headers.get('content-type')).toContain('json')
    expect(await (await site.open('/admin', NAVIGATION)).text()).toContain('id="root"')
    expect((await site.open('/api', NAVIGATION)).status).toBe(404)
    expect((await site.open('/api/v1/me', NAVIGATION)).status).toBe(401)
    expect(await site.read('/apis', NAVIGATION)).toEqual([200, 'app'])
    const get = (path: string) => findSiteTarget(new Request(`http://a.test${path}`))
    const own = ['/', '/favicon.ico']
    for (const { path } of app.routes) if (!own.includes(path)) expect(get(path), path).toBeUndefined()
    expect(findSiteTarget(new Request('http://a.test/x', { method: 'POST' }))).toBeUndefined()
  })
})

describe('headers', () => {
  test('a hashed name may be kept for a year, and everything else is revalidated by its ETag', async () => {
    const hashed = await site.open('/assets/index-B3kd92.js')
    expect(hashed.headers.get('cache-control')).toBe('public, max-age=31536000, immutable')
    const plain = await site.open('/')
    expect(plain.headers.get('cache-control')).toBe('public, no-cache')
    const etag = plain.headers.get('etag')!
    const again = await site.open('/', { 'if-none-match': `"other", W/${etag}` })
    expect([again.status, await again.text(), again.headers.get('etag')]).toEqual([304, '', etag])
    expect((await site.open('/nothing', { 'if-none-match': '*' })).status).toBe(404)
  })

  test('names with hashes of bundlers are recognized, and words, dates and sizes are not', () => {
    const names = [
      ...[
        'assets/index-B3kd92.js',
        'assets/index-B3kd92.js.map',
        'main.8f3a9c1d2b.js',
        'static/js/2.1a2b3c4d.chunk.js',
      ],
      ...['assets/logo-Dx3kP9aZ.svg', '_next/static/chunks/4bd1b696-0785427dddbba9fb.js', 'fonts/a.0f1e2d3c.woff2'],
    ]
    expect(names.filter((name) => !isHashedName(name))).toEqual([])
    const others = [
      ...['index.html', 'main-module.js', 'jquery-latest.js', 'photo-20240131.jpg', 'icon-192x192.png', 'a-1.2.3.js'],
      ...['Photo-Summer2024.jpg', 'page-B3kd92.html', 'app.min.js', 'B3kd92.js', 'sw.js', 'manifest.webmanifest'],
    ]
    expect(others.filter(isHashedName)).toEqual([])
  })

  test('media types are those of the extensions, texts are UTF-8, and nothing is sniffed', async () => {
    const types = {
      '/': 'text/html; charset=utf-8',
      '/style.css': 'text/css; charset=utf-8',
      '/data.json': 'application/json; charset=utf-8',
      '/sw.js': 'text/javascript; charset=utf-8',
      '/large.bin': 'application/octet-stream',
    }
    for (const [path, type] of Object.entries(types)) {
      const { headers } = await site.open(path)
      expect([headers.get('content-type'), headers.get('x-content-type-options')]).toEqual([type, 'nosniff'])
      expect(headers.get('content-security-policy')).toBe("frame-ancestors 'self'")
      expect(headers.get('x-request-id')).toBeTruthy()
    }
  })

  test('files that are named as properties of every object are served as bytes', async () => {
    for (const path of ['/valueOf', '/x.__proto__']) {
      const { status, headers } = await site.open(path)
      expect([status, headers.get('content-type')]).toEqual([200, 'application/octet-stream'])
    }
  })

  test('the admin page cannot be framed by a site', async () => {
    const { headers } = await site.open('/admin')
    expect(headers.get('content-security-policy')).toContain("frame-ancestors 'none'")
    expect(headers.get('x-frame-options')).toBe('DENY')
  })

  test('a service worker at the top is refused, and one in a folder is served', async () => {
    const refused = await site.open('/sw.js', { 'service-worker': 'script' })
    expect([refused.status, ((await refused.json()) as { code: string }).code]).toEqual([403, 'SERVICE_WORKER_AT_ROOT'])
    expect((await site.open('/sw.js')).status).toBe(200)
    const served = await site.open('/app/sw.js', { 'service-worker': 'script' })
    expect([served.status, served.headers.get('service-worker-allowed')]).toEqual([200, null])
  })
})

describe('contents', () => {
  test('a file is sent in the encoding that the client prefers, with a validator of its own', async () => {
    const open = (accept: string) => site.open('/assets/index-B3kd92.js', { 'accept-encoding': accept })
    const bytes = async (response: Response) => new Uint8Array(await response.arrayBuffer())
    const br = await open('gzip, deflate, br')
    expect(br.headers.get('content-encoding')).toBe('br')
    expect(brotliDecompressSync(await bytes(br)).toString()).toBe(SCRIPT)
    const gzip = await open('gzip, br;q=0.5')
    expect(gzip.headers.get('content-encoding')).toBe('gzip')
    expect(gunzipSync(await bytes(gzip)).toString()).toBe(SCRIPT)
    const plain = await open('identity')
    expect([plain.headers.get('content-encoding'), await plain.text()]).toEqual([null, SCRIPT])
    const headers = [br, gzip, plain].map((response) => response.headers)
    expect(new Set(headers.map((each) => each.get('etag'))).size).toBe(3)
    for (const each of headers) expect(each.get('vary')).toBe('Accept-Encoding')
    expect(br.headers.get('content-type')).toBe('text/javascript; charset=utf-8')
    expect((await site.open('/large.bin', { 'accept-encoding': 'br' })).headers.get('content-encoding')).toBeNull()
  })

  test('weights of Accept-Encoding choose the encoding', () => {
    const content = { sha256: '', size: 1 }
    const file = { encodings: { br: content, gzip: content } }
    type Case = [string | null, string | undefined]
    const cases: Case[] = [
      ...([
        [null, undefined],
        ['', undefined],
        ['*', 'br'],
        ['br, gzip', 'br'],
        ['gzip', 'gzip'],
      ] as Case[]),
      ...([
        ['br;q=0, gzip;q=0.1', 'gzip'],
        ['br;q=0.5, gzip;q=0.8', 'gzip'],
        ['deflate', undefined],
      ] as Case[]),
      ...([
        ['identity;q=1, br;q=0.2', undefined],
        ['BR ; Q=1', 'br'],
        ['br;q=x, gzip', 'gzip'],
      ] as Case[]),
      ...([
        ['*;q=0', undefined],
        ['gzip;q=0, *', 'br'],
        ['x-gzip', 'gzip'],
      ] as Case[]),
    ]
    for (const [accept, expected] of cases) expect(chooseEncoding(file, accept), `${accept}`).toBe(expected as never)
    expect(chooseEncoding({ encodings: { gzip: content } }, 'br, gzip;q=0.1')).toBe('gzip')
    expect(chooseEncoding({}, 'br')).toBeUndefined()
  })

  test('a client reads ranges of small and large files, and headers alone', async () => {
    const read = async (path: string, headers: Record<string, string>, method = 'GET') => {
      const response = await site.open(path, headers, method)
      const body = Buffer.from(await response.arrayBuffer())
      return [response.status, body, response.headers.get('content-range')] as const
    }
    expect(await read('/digits.txt', { range: 'bytes=2-4' })).toEqual([206, Buffer.from('234'), 'bytes 2-4/10'])
    expect(await read('/digits.txt', { range: 'bytes=-3' })).toEqual([206, Buffer.from('789'), 'bytes 7-9/10'])
    const [status, part] = await read('/large.bin', { range: 'bytes=300000-300009' })
    expect([status, part]).toEqual([206, Buffer.from(LARGE.slice(300_000, 300_010))])
    expect((await read('/large.bin', {}))[1].equals(LARGE)).toBeTrue()
    expect((await read('/digits.txt', { range: 'bytes=20-' })).slice(0, 1)).toEqual([416])
    expect((await read('/digits.txt', { range: 'bytes=1-2', 'if-range': '"x"' }))[0]).toBe(200)
    const script = await site.open('/assets/index-B3kd92.js', { range: 'bytes=0-6', 'accept-encoding': 'br' })
    expect([await script.text(), script.headers.get('content-encoding')]).toEqual(['console', null])
    const head = await site.open('/large.bin', {}, 'HEAD')
    expect([head.status, await head.text(), head.headers.get('content-length')]).toEqual([200, '', '400000'])
  })
})
