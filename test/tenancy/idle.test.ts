// engine: sqlite
import { afterAll, expect, setDefaultTimeout, test } from 'bun:test'
import { connect } from 'node:net'
import { listen } from '../../src/gateway'
import { costlyWork } from '../../src/tenancy/fair-queue'
import { createTestTenant, fullAccessRules } from '../test-tenant'

// Bun closes a connection that is idle for ten seconds, and checks every four seconds.
const LONGER_THAN_IDLE_MS = 15_000 // ms
// Both tests mostly wait, so they wait at once.
setDefaultTimeout(90_000)

const server = listen('127.0.0.1', 0)
afterAll(() => server.stop(true))

/** Sends bytes over a connection and returns after how many ms the server closes it. */
function measureCutOff(head: string): Promise<number> {
  const began = performance.now()
  const { promise, resolve } = Promise.withResolvers<number>()
  const socket = connect(server.port!, '127.0.0.1', () => socket.write(head))
  socket.on('data', () => {}).on('error', () => {})
  socket.on('close', () => resolve(performance.now() - began))
  return promise
}

test.concurrent('the server answers a write that was queued for 15 seconds and disconnects a client that sent half a body', async () => {
  const t = await createTestTenant()
  const admin = t.as('admin')
  const fields = [
    { key: 'name', type: 'string' },
    { key: 'loud', type: 'string' },
  ]
  const blueprint = { key: 'things', name: 'Things', fields, permissions: fullAccessRules('tenant', 'user') }
  expect((await admin.post('/blueprints', { ...blueprint, computed: { loud: '$uppercase(name)' } })).status).toBe(201)
  const url = `http://127.0.0.1:${server.port}/api/blueprints/things/entities`
  const headers = { tenant: t.id, 'x-api-key': t.tokens.user, 'content-type': 'application/json' }
  const busy = costlyWork.run({ tenant: t.id, caller: 'another user' }, () => Bun.sleep(LONGER_THAN_IDLE_MS))
  const written = fetch(url, { method: 'POST', headers, body: JSON.stringify({ name: 'one' }) })
  const half = measureCutOff(
    `POST /api/blueprints/things/entities HTTP/1.1\r\nHost: a.test\r\ntenant: ${t.id}\r\nx-api-key: ${t.tokens.user}\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{"name":`,
  )
  const response = await written
  expect([response.status, await response.json()]).toEqual([201, expect.objectContaining({ loud: 'ONE' })])
  await busy
  expect(await half).toBeGreaterThan(5_000)
})

test.concurrent('the server disconnects idle clients after the answers of slow routes', async () => {
  const t = await createTestTenant()
  expect((await t.as('admin').post('/blueprints', { key: 'things', name: 'Things', fields: [] })).status).toBe(201)
  const measureCutOffAfter = (line: string, body = '') =>
    measureCutOff(
      `${line} HTTP/1.1\r\nHost: a.test\r\ntenant: ${t.id}\r\nx-api-key: ${t.tokens.admin}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
    )
  const cuts = Promise.all([
    measureCutOffAfter('PUT /api/blueprints/things', '{"name":"Other things"}'),
    measureCutOffAfter('POST /api/mcp', '{"jsonrpc":"2.0","id":1,"method":"ping"}'),
    measureCutOffAfter('GET /api/blueprints/things/entities/export'),
  ])
  const late = Bun.sleep(2 * LONGER_THAN_IDLE_MS).then(() => 'not cut')
  expect(await Promise.race([cuts, late])).toEqual([expect.any(Number), expect.any(Number), expect.any(Number)])
})
