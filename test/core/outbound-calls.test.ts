// engine: sqlite
import { afterAll, afterEach, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { brotliCompressSync, gzipSync } from 'node:zlib'
import { fetchExternal } from '../../src/core/http-client'
import { countOutboundCalls } from '../../src/core/outbound-calls'
import type { Problem } from '../../src/core/problem'
import { times } from '../plugins/fixtures'
import { waitUntil } from '../wait-until'

setDefaultTimeout(30_000)

/** A server that holds requests of `/hang` until the test ends them, and records the client port of each request. */
async function startServer() {
  const held: ServerResponse[] = []
  const connections: number[] = []
  const compressed = Buffer.from('x'.repeat(5_000))
  const server = createServer((request, response) => {
    connections.push(request.socket.remotePort ?? 0)
    if (request.url === '/hang') return void held.push(response)
    if (request.url === '/gzip')
      return response.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync(compressed))
    if (request.url === '/br')
      return response.writeHead(200, { 'content-encoding': 'br' }).end(brotliCompressSync(compressed))
    if (request.url === '/bomb')
      return response.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync(Buffer.alloc(50 << 20)))
    request.resume()
    return void request.on('end', () => response.end('ok'))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    url,
    held,
    connections,
    stop: () => {
      server.closeAllConnections()
      server.close()
    },
  }
}
type Server = Awaited<ReturnType<typeof startServer>>

const servers = await Promise.all(times(9).map(startServer))
const [first, second] = servers as [Server, Server]
afterAll(() => {
  for (const { stop } of servers) stop()
})
afterEach(async () => {
  // A call that waits for its turn hangs, too, once it runs.
  while (countOutboundCalls('acme').running) {
    for (const { held } of servers) for (const response of held.splice(0)) response.end()
    await Bun.sleep(5)
  }
})

const call = (tenant: string, url: string, { init = {}, timeout = 20_000 } = {}) =>
  fetchExternal(url, init, { tenant, timeout, limit: 10_000, privateNetwork: true }).then(
    async (answer) => [answer.status, await answer.text()],
    ({ status, code }: Problem) => [status, code],
  )
const OK = [200, 'ok']
const BUSY = [503, 'BUSY']
const outcomesInOrder = async (calls: Promise<unknown>[]) => {
  const ended: unknown[] = []
  for (const pendingCall of calls) pendingCall.then((outcome) => ended.push(outcome))
  await Bun.sleep(100)
  return ended
}
const countHeld = (...all: Server[]) => all.map(({ held }) => held.length)

describe('outbound calls', () => {
  test('a tenant runs 8 outbound calls per host, queues 256, and gets 503 BUSY for further ones', async () => {
    const calls = times(300).map(() => call('acme', `${first.url}/hang`))
    await waitUntil(() => first.held.length === 8)
    expect(await outcomesInOrder(calls)).toEqual(times(36).map(() => BUSY))
    expect(countOutboundCalls('acme')).toEqual({ running: 8, waiting: 256 })
    expect(countHeld(first)).toEqual([8])
    // Calls of another tenant are served, even by the server that hangs.
    expect(await call('quiet', `${first.url}/ok`)).toEqual(OK)
    expect(await call('quiet', `${second.url}/ok`)).toEqual(OK)
    expect(countHeld(first)).toEqual([8])
    // Each call that ends lets the next one begin.
    for (const response of first.held.splice(0, 3)) response.end()
    await waitUntil(() => first.held.length === 8)
    expect(countOutboundCalls('acme')).toEqual({ running: 8, waiting: 253 })
  })

  test('outbound calls to other hosts proceed while one host hangs, up to 64 per tenant', async () => {
    const hanging = times(100).map(() => call('acme', `${first.url}/hang`))
    await waitUntil(() => first.held.length === 8)
    for (const { url } of servers.slice(1)) expect(await call('acme', `${url}/ok`)).toEqual(OK)
    const others = servers.slice(1).flatMap(({ url }) => times(9).map(() => call('acme', `${url}/hang`)))
    await waitUntil(() => countHeld(...servers).reduce((all, held) => all + held) === 64)
    expect(await outcomesInOrder([...hanging, ...others])).toEqual([])
    expect(countHeld(...servers)).toEqual([8, 8, 8, 8, 8, 8, 8, 8, 0])
  })

  test('hosts with waiting outbound calls take turns when places become free', async () => {
    const [last] = servers.slice(-1) as [Server]
    const hanging = servers.slice(0, 8).flatMap(({ url }) => times(20).map(() => call('acme', `${url}/hang`)))
    await waitUntil(() => countOutboundCalls('acme').running === 64)
    const late = call('acme', `${last.url}/ok`)
    expect(await outcomesInOrder([late])).toEqual([])
    // The host that was queued last waits for at most one turn of each other host.
    let freed = 0
    while (countOutboundCalls('acme').waiting && (await outcomesInOrder([late])).length === 0) {
      const busiest = servers.find(({ held }) => held.length === 8) ?? first
      busiest.held.shift()?.end()
      freed++
    }
    expect(freed).toBeLessThanOrEqual(9)
    expect(await late).toEqual(OK)
    expect(await outcomesInOrder(hanging)).toHaveLength(freed)
  })

  test('outbound calls that wait longer than their timeout get 503 BUSY and leave the queue', async () => {
    const hanging = times(8).map(() => call('acme', `${first.url}/hang`))
    await waitUntil(() => first.held.length === 8)
    expect(await Promise.all(times(5).map(() => call('acme', `${first.url}/ok`, { timeout: 100 })))).toEqual(
      times(5).map(() => BUSY),
    )
    const aborting = AbortSignal.timeout(50)
    expect(await call('acme', `${first.url}/ok`, { init: { signal: aborting } })).toEqual(BUSY)
    expect(countOutboundCalls('acme')).toEqual({ running: 8, waiting: 0 })
    for (const response of first.held.splice(0)) response.end('ok')
    expect(await Promise.all(hanging)).toEqual(times(8).map(() => OK))
    expect(countOutboundCalls('acme')).toEqual({ running: 0, waiting: 0 })
    expect(await call('acme', `${first.url}/ok`)).toEqual(OK)
  })

  test('outbound calls that fail with 502 OUTSIDE_UNREACHABLE free their place', async () => {
    for (const url of ['http://127.0.0.1:1/', 'http://nowhere.invalid/', `${first.url}/bomb`])
      expect(await Promise.all(times(20).map(() => call('acme', url)))).toEqual(
        times(20).map(() => [502, 'OUTSIDE_UNREACHABLE']),
      )
    const late = times(8).map(() => call('acme', `${first.url}/hang`, { timeout: 100 }))
    expect(await Promise.all(late)).toEqual(times(8).map(() => [502, 'OUTSIDE_UNREACHABLE']))
    expect(countOutboundCalls('acme')).toEqual({ running: 0, waiting: 0 })
  })
})

describe('connections of outbound calls', () => {
  const portsOf = async (...calls: [string, RequestInit?][]) => {
    first.connections.length = 0
    for (const [tenant, init] of calls) expect(await call(tenant, `${first.url}/ok`, { init })).toEqual(OK)
    return new Set(first.connections).size
  }

  test('an open connection is reused by the calls of its tenant and never by those of another tenant', async () => {
    expect(await portsOf(['one'], ['one'], ['one'])).toBe(1)
    expect(await portsOf(['two'], ['three'], ['two'], ['three'])).toBe(2)
  })

  test('an open connection is reused only for idempotent requests', async () => {
    const post = { method: 'POST', body: 'x' }
    const keyed = { ...post, headers: { 'idempotency-key': 'k' } }
    expect(await portsOf(['four', post], ['four', post], ['four', post])).toBe(3)
    expect(await portsOf(['five', keyed], ['five', keyed], ['five', { method: 'PUT', body: 'x' }])).toBe(1)
  })
})

test('fetchExternal decompresses gzip and brotli, and answers 502 OUTSIDE_UNREACHABLE beyond the size limit', async () => {
  for (const path of ['gzip', 'br'])
    expect(await call('acme', `${first.url}/${path}`)).toEqual([200, 'x'.repeat(5_000)])
  expect(await call('acme', `${first.url}/bomb`)).toEqual([502, 'OUTSIDE_UNREACHABLE'])
})
