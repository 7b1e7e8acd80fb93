import { afterAll, expect, setDefaultTimeout, test } from 'bun:test'
import { connect } from 'node:net'
import { listen } from '../../src/gateway'
import { costlyWork } from '../../src/tenancy/fair-queue'
import { createTestTenant, fullAccessRules } from '../test-tenant'

// Bun cuts a connection on which nothing moves for ten seconds, and looks every four.
const LONGER_THAN_IDLE_MS = 15_000 // ms
setDefaultTimeout(90_000)

const server = listen('127.0.0.1', 0)
afterAll(() => server.stop(true))

/** Sends what is not the whole of a request, and tells after how many ms the server hangs up. */
function measureCutOff(head: string): Promise<number> {
  const began = performance.now()
  const { promise, resolve } = Promise.withResolvers<number>()
  const socket = connect(server.port!, '127.0.0.1', () => socket.write(head))
  socket.on('data', () => {}).on('error', () => {})
  socket.on('close', () => resolve(performance.now() - began))
  return promise
}

test('answers a write that waits for its turn longer than ten seconds, and cuts off who sends half a body', async () => {
  const home = await createTestTenant()
  const admin = home.as('admin')
  const fields = [
    { key: 'name', type: 'string' },
    { key: 'loud', type: 'string' },
  ]
  const blueprint = { key: 'things', name: 'Things', fields, permissions: fullAccessRules('tenant', 'user') }
  expect((await admin.post('/blueprints', { ...blueprint, computed: { loud: '$uppercase(name)' } })).status).toBe(201)
  const url = `http://127.0.0.1:${server.port}/api/blueprints/things/entities`
  const headers = { tenant: home.id, 'x-api-key': home.tokens.user, 'content-type': 'application/json' }
  const busy = costlyWork.run({ tenant: home.id, caller: 'somebody else' }, () => Bun.sleep(LONGER_THAN_IDLE_MS))
  const written = fetch(url, { method: 'POST', headers, body: JSON.stringify({ name: 'one' }) })
  const half = measureCutOff(
    `POST /api/blueprints/things/entities HTTP/1.1\r\nHost: a.test\r\ntenant: ${home.id}\r\nx-api-key: ${home.tokens.user}\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{"name":`,
  )
  const response = await written
  expect([response.status, await response.json()]).toEqual([201, expect.objectContaining({ loud: 'ONE' })])
  await busy
  expect(await half).toBeGreaterThan(5_000)
})

test('cuts connections that are quiet after an answer that may have taken long', async () => {
  const home = await createTestTenant()
  expect((await home.as('admin').post('/blueprints', { key: 'things', name: 'Things', fields: [] })).status).toBe(201)
  const cut = (line: string, body = '') =>
    measureCutOff(
      `${line} HTTP/1.1\r\nHost: a.test\r\ntenant: ${home.id}\r\nx-api-key: ${home.tokens.admin}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
    )
  const cuts = Promise.all([
    cut('PUT /api/blueprints/things', '{"name":"Other things"}'),
    cut('POST /api/mcp', '{"jsonrpc":"2.0","id":1,"method":"ping"}'),
    cut('GET /api/blueprints/things/entities/export'),
  ])
  const late = Bun.sleep(2 * LONGER_THAN_IDLE_MS).then(() => 'not cut')
  expect(await Promise.race([cuts, late])).toEqual([expect.any(Number), expect.any(Number), expect.any(Number)])
})
