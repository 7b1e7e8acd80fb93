import { afterAll, describe, expect, test } from 'bun:test'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { fetchExternal } from '../../src/core/http-client'
import { fetchExternalStream } from '../../src/core/http-stream'
import { countOutboundCalls } from '../../src/core/outbound-calls'
import type { Problem } from '../../src/core/problem'
import { isPublic } from '../../src/core/ssrf-guard'

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

test('what another server answers comes back as it is', async () => {
  const answer = await fetchExternal(`${origin}/x`, { method: 'POST', body: 'hello' }, bounds)
  expect([answer.status, await answer.json()]).toEqual([201, { method: 'POST', text: 'hello' }])
  expect(answer.headers.get('content-type')).toStartWith('application/json')
  expect((await fetchExternal(`${origin}/empty`, {}, bounds)).status).toBe(204)
})

test('it has as many bytes as it may, or is none', async () => {
  expect(await outcomeOf(`${origin}/exact`)).toBe(200)
  expect(await outcomeOf(`${origin}/large`)).toEqual(UNREACHABLE)
})

test('it is there in time, whole, or is none', async () => {
  expect(await outcomeOf(`${origin}/slow`, { timeout: 100 })).toEqual(UNREACHABLE)
  expect(openStreams).toHaveLength(1)
})

describe('a server that does not keep to HTTP', () => {
  const heads: Record<string, string> = {
    '/': '200 OK\r\ncontent-length: 2\r\n\r\nok',
    '/upgraded': '101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n',
    '/switched': '101 Switching Protocols\r\n\r\n',
    '/strange': '999 Request Denied\r\ncontent-length: 5\r\n\r\nhello',
    '/endless': '200 OK\r\n\r\nbegun',
    '/reset': '200 OK\r\ncontent-length: 1000\r\n\r\nbegun',
  }
  const paths: string[] = []
  const sockets = new Set<Socket>()
  const wild = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.on('data', (data) => {
      const path = `${data}`.split(' ')[1]!
      paths.push(path)
      socket.write(`HTTP/1.1 ${heads[path]}`)
      if (path === '/reset') setTimeout(() => socket.resetAndDestroy(), 50)
    })
  })
  const ask = async (path: string) => {
    if (!wild.listening) await new Promise<void>((resolve) => wild.listen(0, '127.0.0.1', resolve))
    const { port } = wild.address() as AddressInfo
    return outcomeOf(`http://127.0.0.1:${port}${path}`, { timeout: 300 })
  }
  afterAll(() => {
    for (const socket of sockets) socket.destroy()
    wild.close()
  })

  test('and changes to another protocol gives no answer, and keeps no place', async () => {
    expect(await ask('/upgraded')).toEqual(UNREACHABLE)
    expect(countOutboundCalls(bounds.tenant).running).toBe(0)
  })

  test('and has a status that no answer can have gives none, and is asked once', async () => {
    for (const path of ['/switched', '/strange']) {
      expect(await ask('/')).toBe(200)
      const asked = { method: 'GET', headers: new Headers(), body: null, signal: AbortSignal.timeout(300) }
      const reach = { ...bounds, head: 300 }
      const { port } = wild.address() as AddressInfo
      const answer = fetchExternalStream(`http://127.0.0.1:${port}${path}`, asked, reach)
      await expect(answer).rejects.toMatchObject({ status: 502, code: 'OUTSIDE_UNREACHABLE' })
      expect(paths.filter((one) => one === path)).toHaveLength(1)
    }
  })

  test('and sends a body of unknown length without end gives no answer', async () => {
    expect(await ask('/endless')).toEqual(UNREACHABLE)
  })

  test('and breaks off an answer is not asked again', async () => {
    expect(await ask('/')).toBe(200)
    expect(await ask('/reset')).toEqual(UNREACHABLE)
    await Bun.sleep(50)
    expect(paths.filter((path) => path === '/reset')).toHaveLength(1)
  })
})

test('it leads nowhere else', async () => {
  expect(await outcomeOf(`${origin}/elsewhere`)).toBe(302)
})

test('who is not there is no failure of ours', async () => {
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
])('%s is not of the public internet', (address) => {
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
])('%s is', (address) => {
  expect(isPublic(address)).toBeTrue()
})

test('a neighbour is not even greeted, however it is called, nor anybody without encryption', async () => {
  let greeted = 0
  const socket = { data() {}, open: () => void greeted++ }
  const neighbour = Bun.listen({ hostname: '127.0.0.1', port: 0, socket })
  const closed = { privateNetwork: false, timeout: 2_000 }
  for (const host of ['127.0.0.1', 'localhost', '2130706433', '0x7f.1', '[::ffff:127.0.0.1]'])
    expect(await outcomeOf(`https://${host}:${neighbour.port}/`, closed)).toEqual(UNREACHABLE)
  expect(await outcomeOf('http://192.0.2.1/', closed)).toEqual(UNREACHABLE)
  expect(greeted).toBe(0)
  expect(await outcomeOf(`https://127.0.0.1:${neighbour.port}/`, { timeout: 200 })).toEqual(UNREACHABLE)
  expect(greeted).toBe(1)
  neighbour.stop(true)
})
