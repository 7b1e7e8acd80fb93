import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { connect, createServer } from 'node:net'
import { jwtVerify } from 'jose'
import { issueApiToken } from '../../src/accounts/api-tokens'
import { config } from '../../src/config'
import { listen } from '../../src/gateway'
import { closeStreams, countForwardedRequests } from '../../src/plugins/proxy'
import { signInForCookie } from '../accounts/session-fixtures'
import { memoryOf } from '../fakes/child-processes'
import { createTempFolder, createTenantByCli, signIn, startAtoll } from '../fakes/cli'
import { type RecordedRequest, startHttpUpstream } from '../fakes/http-upstream'
import { errorOf } from '../rejections'
import { createTestTenant, type TestResponse } from '../test-tenant'
import { waitUntil } from '../wait-until'
import { allowPrivateNetwork, denyPrivateNetwork, times } from './fixtures'

setDefaultTimeout(60_000)

const MIB = 1 << 20
const LARGE = 200 * MIB

let h: Awaited<ReturnType<typeof createTestTenant>>
let upstream: Awaited<ReturnType<typeof startHttpUpstream>>
let server: ReturnType<typeof listen>
let plugin: { _id: string; secret: string }
let base = ''
const streams: (() => void)[] = []
const defaultTimeout = config.ATOLL_PLUGIN_TIMEOUT

const originalRateLimits = config.ATOLL_RATE_LIMITS
afterAll(() => {
  config.ATOLL_RATE_LIMITS = originalRateLimits
})

beforeAll(async () => {
  config.ATOLL_RATE_LIMITS = 'off' // one caller makes more requests than people do
  allowPrivateNetwork()
  h = await createTestTenant()
  server = listen('127.0.0.1', 0)
  base = `http://127.0.0.1:${server.port}/api`
  upstream = await startHttpUpstream({
    '/base/teapot': (_, response) =>
      response
        .writeHead(418, {
          ...{
            'content-type': 'text/html',
            'x-own': 'yes',
            'access-control-allow-origin': '*',
            connection: 'x-hop',
            'x-hop': '1',
          },
          ...{ 'content-security-policy': 'default-src *', 'x-request-id': 'theirs', 'x-content-type-options': 'none' },
          ...{ 'strict-transport-security': 'max-age=1', 'clear-site-data': '"*"', 'service-worker-allowed': '/' },
          ...{ 'x-original-url': '/admin', 'x-rewrite-url': '/admin', refresh: '0; url=https://elsewhere.test/' },
          ...{ 'www-authenticate': 'Basic realm="x"', 'x-accel-redirect': '/files', 'x-sendfile': '/etc/passwd' },
          ...{ 'x-litespeed-location': '/files', 'x-reproxy-file': '/etc/passwd', 'x-sendfile-temporary': '/tmp/x' },
          'set-cookie': [
            `__Host-atoll_${h.id}=evil`,
            `__secure-atoll_${h.id}=evil`,
            'wide=1; Path=/; domain=.example.com',
            `atoll_${h.id}=evil`,
            ' ATOLL_x=evil',
            `__Host-atoll_${h.id}=evil`,
            '__host-ATOLL_x=evil',
            `=atoll_${h.id}=evil`,
            `atoll_${h.id}`,
            'theirs=1; Path=/',
            'also=2',
          ],
        })
        .end('<p>short and stout'),
    '/base/away': (_, response) => response.writeHead(302, { location: 'https://elsewhere.test/' }).end(),
    '/base/nothing': (_, response) => response.writeHead(204).end(),
    '/base/large': (_, response) => {
      const chunk = Buffer.alloc(65_536)
      let chunksLeft = LARGE / chunk.length
      const write = () => {
        while (chunksLeft > 0) {
          chunksLeft--
          if (!response.write(chunk)) return void response.once('drain', write)
        }
        response.end()
      }
      write()
    },
    '/base/sink': (request, response) => {
      let size = 0
      request.on('data', ({ length }) => {
        size += length
      })
      request.on('end', () => response.end(`${size}`))
    },
    '/base/events': (_, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
      let n = 0
      streams.push(() => response.write(`data: ${n++}\n\n`))
    },
    '/base/silent': () => {},
    '/base/half': (_, response) => {
      response.writeHead(200, { 'content-length': '100' }).write('half')
      streams.push(() => response.destroy())
    },
  })
  const crmPlugin = { name: 'crm', apiPath: 'crm', proxyUrl: `${upstream.url}/base` }
  plugin = (await h.as('admin').post('/plugins', crmPlugin)).body
})
afterAll(async () => {
  denyPrivateNetwork()
  config.ATOLL_PLUGIN_TIMEOUT = defaultTimeout
  await Promise.all([server.stop(true), upstream.stop()])
})

const call = (path: string, { headers = {}, ...init }: RequestInit & { headers?: Record<string, string> } = {}) =>
  fetch(`${base}${path}`, { ...init, redirect: 'manual', headers: { tenant: h.id, ...headers } })
const readSeen = async (...args: Parameters<typeof call>): Promise<RecordedRequest> =>
  (await (await call(...args)).json()) as RecordedRequest
const readRefusal = async (answer: Promise<Response>) => {
  const response = await answer
  return [response.status, ((await response.json()) as { code: string }).code]
}

describe('requests that the proxy forwards to plugins', () => {
  test('a request is forwarded with its method, query and body to the plugin that has its path, and the path prefix is removed', async () => {
    const ways: [string, RequestInit | undefined, Partial<RecordedRequest>][] = [
      ['/crm/people?q=a%20b&q=c', undefined, { method: 'GET', url: '/base/people?q=a%20b&q=c' }],
      ['/crm', undefined, { method: 'GET', url: '/base' }],
      ['/crm/', undefined, { method: 'GET', url: '/base/' }],
      ['/v1/crm/x', undefined, { method: 'GET', url: '/base/x' }],
      ['/crm/a%2Fb//c', undefined, { url: '/base/a%2Fb//c' }],
      ['/crm/%E4%BD%A0', undefined, { url: '/base/%E4%BD%A0' }],
      ['/crm/x', { method: 'POST', body: '{"a":' }, { method: 'POST', body: '{"a":' }],
      ['/crm/x', { method: 'PUT', body: 'text' }, { method: 'PUT', body: 'text' }],
      ['/crm/x', { method: 'PATCH', body: 'text' }, { method: 'PATCH' }],
      ['/crm/x', { method: 'DELETE' }, { method: 'DELETE', body: '' }],
      ['/crm/x', { method: 'POST' }, { method: 'POST', body: '' }],
      ['/crm/x', { method: 'OPTIONS' }, { method: 'OPTIONS' }],
    ]
    for (const [path, init, seen] of ways) expect(await readSeen(path, init as object), path).toMatchObject(seen)
    const head = await call('/crm/x', { method: 'HEAD' })
    expect([head.status, await head.text(), upstream.seen.at(-1)!.method]).toEqual([200, '', 'HEAD'])
  })

  test('a request with dot segments, encoded or not, never leaves the base path of the plugin', async () => {
    for (const path of [
      '/api/crm/../../secret',
      '/api/crm/%2e%2e/%2E%2E/secret',
      '/api/crm/..%2f..%2fsecret',
      '/api/crm/..\\..\\secret',
      '/api/crm/%2e%2e%2fsecret',
      '/api/crm/a/%2E%2E%5Csecret',
      '/api/crm/a/.%2e%2f.%2e%2fsecret',
      '/api/crm/%252e%252e%252fsecret',
      '/api/crm/a%2f%2e%2e%2f%2e%2e%2fsecret',
      '/api/crm/..;/secret',
      '/api/crm/..%3bx=1/secret',
      '/api/crm/a/%2e%2f',
      `/api/crm/%${'25'.repeat(1_000)}2e%2e`,
    ]) {
      const before = upstream.seen.length
      const raw = await new Promise<string>((resolve) => {
        const socket = connect(server.port!, '127.0.0.1', () =>
          socket.write(`GET ${path} HTTP/1.1\r\nhost: x\r\ntenant: ${h.id}\r\nconnection: close\r\n\r\n`),
        )
        let text = ''
        socket.on('data', (data) => {
          text += data
        })
        socket.on('close', () => resolve(text))
      })
      const passed = upstream.seen.length > before
      if (passed) expect(upstream.seen.at(-1)!.url, path).toMatch(/^\/base\/(?!.*(\.\.|%2e|%5c|;))/i)
      else expect(raw, path).toContain('404')
    }
    // Paths that only resemble dot segments are forwarded as they were sent.
    for (const path of ['/a..b', '/...', '/a%2Fb', '/v1.2/x;y=1', '/100%25', '/.well-known'])
      expect((await readSeen(`/crm${path}`)).url).toBe(`/base${path}`)
  })

  test('the answer of the plugin is passed on without the headers and cookies that only the server may set', async () => {
    const answer = await call('/crm/teapot', { headers: { 'x-request-id': 'mine' } })
    expect([answer.status, await answer.text(), answer.headers.get('x-own')]).toEqual([
      418,
      '<p>short and stout',
      'yes',
    ])
    expect(answer.headers.getSetCookie()).toEqual(['theirs=1; Path=/', 'also=2'])
    for (const name of [
      'access-control-allow-origin',
      'strict-transport-security',
      'clear-site-data',
      'service-worker-allowed',
      'x-hop',
      ...['x-original-url', 'x-rewrite-url', 'refresh', 'www-authenticate', 'x-accel-redirect', 'x-sendfile'],
      ...['x-litespeed-location', 'x-reproxy-file', 'x-sendfile-temporary'],
    ])
      expect(answer.headers.has(name), name).toBeFalse()
    // A browser enforces all of several policies.
    expect(answer.headers.get('content-security-policy')).toMatch(/^sandbox (?!.*same-origin).*, default-src \*$/)
    expect(answer.headers.has('x-frame-options')).toBeFalse()
    expect(answer.headers.get('x-content-type-options')).toBe('nosniff')
    expect(answer.headers.get('x-request-id')).toBe('mine')
    const away = await call('/crm/away')
    expect([away.status, away.headers.get('location')]).toEqual([302, 'https://elsewhere.test/'])
    const nothing = await call('/crm/nothing')
    expect([nothing.status, await nothing.text()]).toEqual([204, ''])
  })

  test('a request answers 404 ROUTE_NOT_FOUND when no active plugin of the tenant has this path and a proxy URL', async () => {
    const admin = h.as('admin')
    expect(await readRefusal(call('/nowhere/x'))).toEqual([404, 'ROUTE_NOT_FOUND'])
    expect(await readRefusal(call('/nowhere', { method: 'POST', body: 'x' }))).toEqual([404, 'ROUTE_NOT_FOUND'])
    const otherTenant = await createTestTenant()
    expect(await readRefusal(call('/crm/x', { headers: { tenant: otherTenant.id } }))).toEqual([404, 'ROUTE_NOT_FOUND'])
    expect(await readRefusal(call('/plugins', { method: 'DELETE' }))).toEqual([405, 'METHOD_NOT_ALLOWED'])
    await admin.put(`/plugins/${plugin._id}`, { active: false })
    expect(await readRefusal(call('/crm/x'))).toEqual([404, 'ROUTE_NOT_FOUND'])
    await admin.put(`/plugins/${plugin._id}`, { active: true })
    expect((await call('/crm/x')).status).toBe(200)
    const bare = await admin.post('/plugins', { name: 'bare', apiPath: 'bare' })
    expect(await readRefusal(call('/bare/x'))).toEqual([404, 'ROUTE_NOT_FOUND'])
    await admin.delete(`/plugins/${bare.body._id}`)
  })
})

describe('the caller that a plugin sees', () => {
  const claimsIn = async (seen: RecordedRequest, secret = plugin.secret, audience = plugin._id) =>
    (
      await jwtVerify(seen.headers['x-atoll-user']!, Buffer.from(secret.slice(6), 'base64'), {
        audience,
        issuer: 'atoll',
      })
    ).payload

  test('a plugin learns the caller by a token of its own, and receives neither their credentials nor forged headers', async () => {
    const headers = {
      ...{ 'x-api-key': h.tokens.user, cookie: `atoll_other=x; a=b`, 'x-encrypted-id': 'x', forwarded: 'for=x' },
      ...{
        'x-atoll-user': 'forged',
        'x-atoll-tenant': 'forged',
        'x-forwarded-for': '1.2.3.4',
        'proxy-authorization': 'x',
      },
      ...{ te: 'trailers', 'x-own': 'stays', accept: 'a/b', connection: 'x-secret', 'x-secret': 'hop' },
      // CGI and WSGI read `_` and `-` as the same.
      ...{ x_atoll_tenant: 'forged', x_atoll_user: 'forged', 'x-forwarded_for': '1.2.3.4', x_any: '1' },
      ...{
        'x-original-url': '/admin',
        'x-rewrite-url': '/admin',
        'x-http-method-override': 'DELETE',
        proxy: 'http://x',
      },
      ...{ 'x-client-ip': '1.2.3.4', 'true-client-ip': '1.2.3.4', 'x.atoll.user': 'forged' },
    }
    const seen = await readSeen('/crm/x', { headers })
    expect(Object.values(seen.headers).join()).not.toMatch(new RegExp(`${h.tokens.user}|forged|1\\.2\\.3\\.4`))
    for (const name of [
      'authorization',
      'cookie',
      'x-api-key',
      'tenant',
      'x-encrypted-id',
      'forwarded',
      'te',
      'proxy-authorization',
      'x-secret',
      ...['x_any', 'x-original-url', 'x-rewrite-url', 'x-http-method-override', 'proxy'],
    ])
      expect(seen.headers, name).not.toHaveProperty(name)
    expect(Object.keys(seen.headers).filter((name) => /[^a-z0-9-]/.test(name))).toEqual([])
    expect(seen.headers).toMatchObject({
      'x-own': 'stays',
      accept: 'a/b',
      'x-atoll-tenant': h.id,
      host: new URL(upstream.url).host,
    })
    const claims = await claimsIn(seen)
    expect(claims).toMatchObject({ sub: h.users.user, tid: h.id, roles: ['user'], workspace: null })
    expect(claims.exp! - claims.iat!).toBe(60)
    await errorOf(claimsIn(seen, `whsec_${Buffer.alloc(32).toString('base64')}`))
    await errorOf(claimsIn(seen, plugin.secret, 'another'))
    // The token is no credential of the API.
    const token = seen.headers['x-atoll-user']!
    expect((await call('/me', { headers: { authorization: `Bearer ${token}` } })).status).toBe(401)
  })

  test('anonymous requests are forwarded without the header x-atoll-user', async () => {
    const { headers } = await readSeen('/crm/x', { headers: { 'x-atoll-user': 'forged' } })
    expect(headers['x-atoll-tenant']).toBe(h.id)
    expect(headers).not.toHaveProperty('x-atoll-user')
  })

  test('GET and HEAD requests of other origins are forwarded as anonymous despite their cookie, and a cross-site POST is 403 CROSS_SITE', async () => {
    const cookie = await signInForCookie(h, 'user')
    for (const method of ['GET', 'HEAD']) {
      for (const site of ['cross-site', 'same-site']) {
        await call('/crm/x', { method, headers: { ...cookie, 'sec-fetch-site': site } })
        expect(upstream.seen.at(-1)!.headers, `${method} ${site}`).not.toHaveProperty('x-atoll-user')
      }
      await call('/crm/x', { method, headers: { ...cookie, 'sec-fetch-site': 'same-origin' } })
      expect(await claimsIn(upstream.seen.at(-1)!), method).toMatchObject({ sub: h.users.user })
    }
    expect(
      await readRefusal(call('/crm/x', { method: 'POST', headers: { ...cookie, origin: 'https://evil.test' } })),
    ).toEqual([403, 'CROSS_SITE'])
  })

  test('requests with invalid credentials (401) or insufficient scopes (403) are not forwarded', async () => {
    const before = upstream.seen.length
    expect(await readRefusal(call('/crm/x', { headers: { 'x-api-key': `atl_${'0'.repeat(64)}` } }))).toEqual([
      401,
      'UNAUTHENTICATED',
    ])
    expect(await readRefusal(call('/crm/x', { headers: { authorization: 'Bearer x.y.z' } }))).toEqual([
      401,
      'UNAUTHENTICATED',
    ])
    const otherTenant = await createTestTenant()
    expect(await readRefusal(call('/crm/x', { headers: { 'x-api-key': otherTenant.tokens.admin } }))).toEqual([
      401,
      'UNAUTHENTICATED',
    ])
    const issueLimitedToken = async (...scopes: string[]) =>
      (await issueApiToken(h.tenant, h.users.user, { nickname: 'x', scopes })).token
    expect(
      await readRefusal(call('/crm/x', { headers: { 'x-api-key': await issueLimitedToken('entities:write') } })),
    ).toEqual([403, 'FORBIDDEN'])
    const readOnly = { 'x-api-key': await issueLimitedToken('plugin-calls:read') }
    expect(await readRefusal(call('/crm/x', { method: 'POST', body: 'x', headers: readOnly }))).toEqual([
      403,
      'FORBIDDEN',
    ])
    expect(upstream.seen.length).toBe(before)
    expect((await call('/crm/x', { headers: readOnly })).status).toBe(200)
  })

  test('a plugin sees the impersonated user and the admin who impersonates', async () => {
    const headers = { 'x-api-key': h.tokens.admin, 'x-impersonate-user': h.users.other }
    const seen = await readSeen('/crm/x', { headers })
    expect(await claimsIn(seen)).toMatchObject({ sub: h.users.other, impersonator: h.users.admin })
    expect(seen.headers).not.toHaveProperty('x-impersonate-user')
  })
})

describe('plugins that do not answer', () => {
  const health = async (): Promise<TestResponse['body']> =>
    (await h.as('admin').get(`/plugins/${plugin._id}`)).body.health

  test('a plugin that does not answer in time causes 504 PLUGIN_TIMEOUT and fails its health until it answers again', async () => {
    config.ATOLL_PLUGIN_TIMEOUT = 100
    do expect(await readRefusal(call('/crm/silent'))).toEqual([504, 'PLUGIN_TIMEOUT'])
    while ((await health()).status !== 'failing')
    config.ATOLL_PLUGIN_TIMEOUT = defaultTimeout
    expect((await health()).lastError).toBe('The plugin did not answer in time.')
    while ((await health()).status === 'failing') expect((await call('/crm/x')).status).toBe(200)
  })

  test('a plugin that refuses or closes the connection, or whose private address is forbidden, causes 502 PLUGIN_UNREACHABLE', async () => {
    const admin = h.as('admin')
    await admin.post('/plugins', { name: 'gone', apiPath: 'gone', proxyUrl: 'http://127.0.0.1:1/' })
    expect(await readRefusal(call('/gone/x'))).toEqual([502, 'PLUGIN_UNREACHABLE'])
    denyPrivateNetwork()
    expect(await readRefusal(call('/crm/x'))).toEqual([502, 'PLUGIN_UNREACHABLE'])
    allowPrivateNetwork()
    const closingServer = createServer((socket) => socket.destroy())
    await new Promise<void>((resolve) => closingServer.listen(0, '127.0.0.1', resolve))
    const { port } = closingServer.address() as { port: number }
    await admin.post('/plugins', { name: 'rude', apiPath: 'rude', proxyUrl: `http://127.0.0.1:${port}/` })
    expect(await readRefusal(call('/rude/x', { method: 'POST', body: 'x' }))).toEqual([502, 'PLUGIN_UNREACHABLE'])
    closingServer.close()
  })

  test('an answer that a plugin breaks off fails for the caller after the bytes that were sent', async () => {
    const answer = await call('/crm/half')
    const reader = answer.body!.getReader()
    expect(Buffer.from((await reader.read()).value!).toString()).toBe('half')
    streams.pop()!()
    await errorOf(reader.read())
  })
})

describe('streaming through the proxy', () => {
  test('a caller receives the start of an event stream before its first event, and each event at once', async () => {
    const answer = await call('/crm/events', { headers: { accept: 'text/event-stream' } })
    expect(answer.headers.get('content-type')).toBe('text/event-stream')
    const sendEvent = streams.pop()!
    const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader()
    expect((await reader.read()).value).toBe(':\n\n')
    for (const n of times(5)) {
      sendEvent()
      expect((await reader.read()).value).toBe(`data: ${n}\n\n`)
    }
    const before = upstream.broken()
    await reader.cancel()
    // A caller that leaves closes the connection to the plugin, too.
    while (upstream.broken() === before) await Bun.sleep(5)
  })

  test('event streams end when the server closes its streams, so that clients reconnect', async () => {
    const reader = (await call('/crm/events')).body!.getReader()
    expect((await reader.read()).done).toBeFalse()
    const before = upstream.broken()
    closeStreams()
    expect((await reader.read()).done).toBeTrue()
    while (upstream.broken() === before) await Bun.sleep(5)
  })

  test('each request counts until its response ends, and once, however its caller leaves', async () => {
    const isForwarding = (count: number) => waitUntil(() => countForwardedRequests(h.id) === count)
    await isForwarding(0)
    const controllers = times(3).map(() => new AbortController())
    for (const { signal } of controllers) await (await call('/crm/events', { signal })).body!.getReader().read()
    expect(countForwardedRequests(h.id)).toBe(3)
    const before = upstream.broken()
    controllers[0]!.abort()
    await waitUntil(() => upstream.broken() > before)
    expect(countForwardedRequests(h.id)).toBe(2)
    closeStreams()
    await isForwarding(0)
  })

  test('the proxy forwards another request while 300 event streams are open', async () => {
    const before = upstream.broken()
    const sockets = times(300).map(() => {
      const head = `GET /api/crm/events HTTP/1.1\r\nhost: x\r\ntenant: ${h.id}\r\n\r\n`
      const socket = connect(server.port!, '127.0.0.1', () => socket.write(head))
      return socket
    })
    const began = sockets.map(
      (socket) => new Promise<string>((resolve) => socket.once('data', (text) => resolve(`${text}`))),
    )
    for (const text of await Promise.all(began)) expect(text).toStartWith('HTTP/1.1 200')
    expect((await call('/crm/x')).status).toBe(200)
    for (const socket of sockets) socket.destroy()
    while (upstream.broken() - before < 300) await Bun.sleep(5)
  })

  test('the connection to the plugin closes when the caller leaves before the answer or within the request body', async () => {
    for (const head of [
      'GET /api/crm/silent HTTP/1.1\r\n',
      'POST /api/crm/silent HTTP/1.1\r\ncontent-length: 1000000\r\n',
    ]) {
      const before = upstream.broken()
      const socket = connect(server.port!, '127.0.0.1', () => socket.write(`${head}host: x\r\ntenant: ${h.id}\r\n\r\n`))
      const writing = setInterval(() => head.startsWith('POST') && socket.write('x'), 20)
      await Bun.sleep(150)
      clearInterval(writing)
      socket.destroy()
      while (upstream.broken() === before) await Bun.sleep(5)
    }
  })

  // A separate server, whose memory holds nothing of the other tests.
  test('the proxy streams 200 MiB in both directions in bounded memory', async () => {
    const place = { at: createTempFolder(), env: { ATOLL_ALLOW_PRIVATE_NETWORK: 'on' } }
    await createTenantByCli(place, 'acme')
    await using own = await startAtoll(place)
    const headers = await signIn(own.url, 'acme')
    const send = (path: string, init: RequestInit = {}) =>
      fetch(`${own.url}/api${path}`, { ...init, headers: { ...headers, 'content-type': 'application/json' } })
    const crmPlugin = { name: 'crm', apiPath: 'crm', proxyUrl: `${upstream.url}/base` }
    expect((await send('/plugins', { method: 'POST', body: JSON.stringify(crmPlugin) })).status).toBe(201)
    expect((await send('/crm/nothing')).status).toBe(204)
    let maxMemory = 0
    const watching = setInterval(() => {
      maxMemory = Math.max(maxMemory, memoryOf(own.pid))
    }, 20)
    const before = memoryOf(own.pid)
    let size = 0
    for await (const chunk of (await send('/crm/large')).body as unknown as AsyncIterable<Uint8Array>)
      size += chunk.length
    expect(size).toBe(LARGE)
    let chunksLeft = LARGE / 65_536
    const body = new ReadableStream({
      pull: (controller) => (chunksLeft-- > 0 ? controller.enqueue(new Uint8Array(65_536)) : controller.close()),
    })
    expect(await (await send('/crm/sink', { method: 'POST', body })).text()).toBe(`${LARGE}`)
    clearInterval(watching)
    expect(maxMemory - before).toBeLessThan(LARGE / MIB / 1.25)
  })

  test('the proxy reads a request body no faster than the plugin takes it', async () => {
    // A plugin that reads nothing.
    const stuck = createServer((socket) => void socket.pause())
    await new Promise<void>((resolve) => stuck.listen(0, '127.0.0.1', resolve))
    const { port } = stuck.address() as { port: number }
    await h.as('admin').post('/plugins', { name: 'stuck', apiPath: 'stuck', proxyUrl: `http://127.0.0.1:${port}/` })
    let sent = 0
    const caller = new AbortController()
    const body = new ReadableStream(
      {
        pull(controller) {
          sent += 65_536
          controller.enqueue(new Uint8Array(65_536))
        },
      },
      { highWaterMark: 0 },
    )
    const answer = call('/stuck/x', { method: 'POST', body, signal: caller.signal }).catch(() => 'gone')
    for (let last = -1; last !== sent || sent === 0; ) {
      last = sent
      await Bun.sleep(150)
    }
    expect(sent).toBeLessThan(64 * MIB)
    caller.abort()
    expect(await answer).toBe('gone')
    stuck.close()
  })
})
