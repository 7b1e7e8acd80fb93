// engine: sqlite
import { afterAll, describe, expect, test } from 'bun:test'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { fetchExternal } from '../../src/core/http-client'
import { fetchExternalStream } from '../../src/core/http-stream'
import { countOutboundCalls } from '../../src/core/outbound-calls'
import type { Problem } from '../../src/core/problem'
import { isPublic } from '../../src/core/ssrf-guard'
import { errorOf } from '../rejections'

const bounds = { tenant: 'core', timeout: 5_000, limit: 1_000, privateNetwork: true }
const openStreams: ReadableStreamDefaultController[] = []
const server = Bun.serve({
  port: 0,
  hostname: '127.0.0.1',
  fetch(request) {
    const { pathname } = new URL(request.url)
    if (pathname === '/large') return new Response(new Uint8Array(1_001))
    if (pathname === '/exact') return new Response(new Uint8Array(1_000))
    if (pathname === '/empty') return new Response(null, { status: 204 })
    if (pathname === '/elsewhere') return Response.redirect('/exact', 302)
    if (pathname === '/slow')
      return new Response(
        new ReadableStream({
          start(controller) {
            openStreams.push(controller)
            controller.enqueue(new Uint8Array(1))
          },
        }),
      )
    return request.text().then((text) => Response.json({ method: request.method, text }, { status: 201 }))
  },
})
afterAll(() => server.stop(true))
const origin = `http://127.0.0.1:${server.port}`
const outcomeOf = async (url: string, more = {}) =>
  fetchExternal(url, {}, { ...bounds, ...more }).then(
    ({ status }) => status,
    ({ status, code, message }: Problem) => [status, code, /127|\[/.test(message)],
  )
const UNREACHABLE = [502, 'OUTSIDE_UNREACHABLE', false]

test('fetchExternal returns status, headers and body of the other server', async () => {
  const answer = await fetchExternal(`${origin}/x`, { method: 'POST', body: 'hello' }, bounds)
  expect([answer.status, await answer.json()]).toEqual([201, { method: 'POST', text: 'hello' }])
  expect(answer.headers.get('content-type')).toStartWith('application/json')
  expect((await fetchExternal(`${origin}/empty`, {}, bounds)).status).toBe(204)
})

test('fetchExternal accepts a body of exactly the limit and refuses a larger one with 502 OUTSIDE_UNREACHABLE', async () => {
  expect(await outcomeOf(`${origin}/exact`)).toBe(200)
  expect(await outcomeOf(`${origin}/large`)).toEqual(UNREACHABLE)
})

test('fetchExternal refuses a body that is not complete before the timeout with 502 OUTSIDE_UNREACHABLE', async () => {
  expect(await outcomeOf(`${origin}/slow`, { timeout: 100 })).toEqual(UNREACHABLE)
  expect(openStreams).toHaveLength(1)
})

describe('a server that violates HTTP', () => {
  const heads: Record<string, string> = {
    '/': '200 OK\r\ncontent-length: 2\r\n\r\nok',
    '/upgraded': '101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n',
    '/switched': '101 Switching Protocols\r\n\r\n',
    '/strange': '999 Request Denied\r\ncontent-length: 5\r\n\r\nhello',
    '/endless': '200 OK\r\n\r\nbegun',
    '/reset': '200 OK\r\ncontent-length: 1000\r\n\r\nbegun',
    '/no-content': '205 Reset Content\r\ncontent-length: 1000\r\n\r\nbegun',
  }
  const paths: string[] = []
  const sockets = new Set<Socket>()
  const misbehavingServer = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.on('data', (data) => {
      const path = `${data}`.split(' ')[1]!
      paths.push(path)
      socket.write(`HTTP/1.1 ${heads[path]}`)
      if (path === '/reset') setTimeout(() => socket.resetAndDestroy(), 50)
    })
  })
  const fetchPath = async (path: string) => {
    if (!misbehavingServer.listening)
      await new Promise<void>((resolve) => misbehavingServer.listen(0, '127.0.0.1', resolve))
    const { port } = misbehavingServer.address() as AddressInfo
    return outcomeOf(`http://127.0.0.1:${port}${path}`, { timeout: 300 })
  }
  afterAll(() => {
    for (const socket of sockets) socket.destroy()
    misbehavingServer.close()
  })

  test('a server that switches to another protocol gives 502 OUTSIDE_UNREACHABLE and frees its place', async () => {
    expect(await fetchPath('/upgraded')).toEqual(UNREACHABLE)
    expect(countOutboundCalls(bounds.tenant).running).toBe(0)
  })

  test('a server that answers an impossible status gives 502 OUTSIDE_UNREACHABLE and is requested once', async () => {
    for (const path of ['/switched', '/strange']) {
      expect(await fetchPath('/')).toBe(200)
      const init = { method: 'GET', headers: new Headers(), body: null, signal: AbortSignal.timeout(300) }
      const limits = { ...bounds, head: 300 }
      const { port } = misbehavingServer.address() as AddressInfo
      const answer = fetchExternalStream(`http://127.0.0.1:${port}${path}`, init, limits)
      expect(await errorOf(answer)).toMatchObject({ status: 502, code: 'OUTSIDE_UNREACHABLE' })
      expect(paths.filter((one) => one === path)).toHaveLength(1)
    }
  })

  test('the connection to a server closes when it announces a body of a response that has none', async () => {
    expect(await fetchPath('/')).toBe(200)
    const { port } = misbehavingServer.address() as AddressInfo
    const init = { method: 'POST', headers: new Headers(), body: null, signal: AbortSignal.timeout(60_000) }
    const answer = await fetchExternalStream(`http://127.0.0.1:${port}/no-content`, init, { ...bounds, head: 5_000 })
    expect([answer.status, answer.body]).toEqual([205, null])
    const socket = [...sockets].at(-1)!
    if (!socket.closed) await new Promise((resolve) => socket.once('close', resolve))
  })

  test('a server whose body never ends gives 502 OUTSIDE_UNREACHABLE', async () => {
    expect(await fetchPath('/endless')).toEqual(UNREACHABLE)
  })

  test('a server that resets the connection within an answer gives 502 OUTSIDE_UNREACHABLE and is not retried', async () => {
    expect(await fetchPath('/')).toBe(200)
    expect(await fetchPath('/reset')).toEqual(UNREACHABLE)
    await Bun.sleep(50)
    expect(paths.filter((path) => path === '/reset')).toHaveLength(1)
  })
})

test('a response goes on beyond the time limit of its head when the request body ends after that head', async () => {
  let respond: ReadableStreamDefaultController<Uint8Array> | undefined
  const response = new ReadableStream<Uint8Array>({
    start(controller) {
      controller.enqueue(new Uint8Array(1))
      respond = controller
    },
  })
  using duplex = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response(response) })
  let upload: ReadableStreamDefaultController<Uint8Array> | undefined
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      controller.enqueue(new Uint8Array(1))
      upload = controller
    },
  })
  const init = { method: 'POST', headers: new Headers(), body, signal: AbortSignal.timeout(60_000) }
  const answer = await fetchExternalStream(duplex.url.href, init, { ...bounds, head: 100 })
  upload!.enqueue(new Uint8Array(1))
  upload!.close()
  await Bun.sleep(300)
  respond!.enqueue(new Uint8Array(2))
  respond!.close()
  expect(await new Response(answer.body as ReadableStream).bytes()).toHaveLength(3)
})

test('fetchExternal returns a redirect instead of following it by default', async () => {
  expect(await outcomeOf(`${origin}/elsewhere`)).toBe(302)
})

test('fetchExternal answers 502 OUTSIDE_UNREACHABLE for a closed port, an unknown host and an invalid URL', async () => {
  for (const url of ['http://127.0.0.1:1/', 'http://nowhere.invalid/', 'no address'])
    expect(await outcomeOf(url)).toEqual(UNREACHABLE)
})

test.each([
  ...[
    '127.0.0.1',
    '10.1.2.3',
    '172.16.0.1',
    '172.31.255.255',
    '192.168.1.1',
    '169.254.169.254',
    '100.64.0.1',
    '0.0.0.0',
  ],
  ...['224.0.0.1', '255.255.255.255', '198.18.0.1', '::', '::1', '::ffff:127.0.0.1', '::ffff:8.8.8.8', 'fe80::1'],
  ...['fd00::1', 'fc00::', 'ff02::1', '2002:7f00:1::', '64:ff9b::7f00:1', '2001::1', '2001:0:7f00::'],
])('isPublic returns false for %s', (address) => {
  expect(isPublic(address)).toBeFalse()
})

test.each([
  '8.8.8.8',
  '1.1.1.1',
  '172.32.0.1',
  '172.15.0.1',
  '100.128.0.1',
  '223.255.255.255',
  '2606:4700::1111',
  '2a00::1',
  '2001:4860:4860::8888',
])('isPublic returns true for %s', (address) => {
  expect(isPublic(address)).toBeTrue()
})

test('fetchExternal opens no connection to a private address, and none over plain http', async () => {
  let connectionCount = 0
  const socket = { data() {}, open: () => void connectionCount++ }
  const privateServer = Bun.listen({ hostname: '127.0.0.1', port: 0, socket })
  const closed = { privateNetwork: false, timeout: 2_000 }
  for (const host of ['127.0.0.1', 'localhost', '2130706433', '0x7f.1', '[::ffff:127.0.0.1]'])
    expect(await outcomeOf(`https://${host}:${privateServer.port}/`, closed)).toEqual(UNREACHABLE)
  expect(await outcomeOf('http://192.0.2.1/', closed)).toEqual(UNREACHABLE)
  expect(connectionCount).toBe(0)
  expect(await outcomeOf(`https://127.0.0.1:${privateServer.port}/`, { timeout: 200 })).toEqual(UNREACHABLE)
  expect(connectionCount).toBe(1)
  privateServer.stop(true)
})
