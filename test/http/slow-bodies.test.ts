// engine: sqlite
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { once } from 'node:events'
import { connect } from 'node:net'
import { bodyPace, watchPace } from '../../src/core/incoming-body'
import { startTestServer } from '../entities/changes/stream-client'
import { startHttpUpstream } from '../fakes/http-upstream'
import { allowPrivateNetwork, denyPrivateNetwork } from '../plugins/fixtures'
import { packTar } from '../sites/fixtures'
import { createTestTenant } from '../test-tenant'

const { server } = startTestServer()
let tenant: Awaited<ReturnType<typeof createTestTenant>>
let upstream: Awaited<ReturnType<typeof startHttpUpstream>>
beforeAll(async () => {
  tenant = await createTestTenant()
  allowPrivateNetwork()
  upstream = await startHttpUpstream()
  const admin = tenant.as('admin')
  const fields = [{ key: 'text', type: 'text' }]
  await admin.post('/blueprints', { key: 'things', name: 'Things', fields })
  const plugin = { name: 'Slow', apiPath: 'slow', proxyUrl: upstream.url }
  expect((await admin.post('/plugins', plugin)).status).toBe(201)
})
afterAll(async () => {
  await upstream.stop()
  denyPrivateNetwork()
})

type Slow = { path: string; method?: string; headers?: Record<string, string>; body: Uint8Array | string }

/** Sends a body piece by piece, with the pause between them, and returns the answer. */
async function sendSlowly(
  { path, method = 'POST', headers = {}, body }: Slow,
  pieceBytes: number,
  pauseMs: number,
  maxPieces = Infinity,
) {
  const bytes = Buffer.from(body as string)
  const isChunked = 'transfer-encoding' in headers
  const lines = Object.entries({
    ...{ host: new URL(tenant.origin).host, 'x-api-key': tenant.tokens.admin, 'content-type': 'application/json' },
    ...(!isChunked && { 'content-length': `${bytes.length}` }),
    ...headers,
  }).map(([name, value]) => `${name}: ${value}\r\n`)
  const socket = connect(server.port!, '127.0.0.1')
  await once(socket, 'connect')
  let answer = ''
  const closed = once(socket, 'close').catch(() => {})
  const answered = new Promise<void>((resolve) =>
    socket
      .setEncoding('utf8')
      .on('error', () => resolve())
      .on('close', () => resolve())
      .on('data', (text) => {
        answer += text
        resolve()
      }),
  )
  socket.write(`${method} ${path} HTTP/1.1\r\n${lines.join('')}\r\n`)
  let isAnswered = false
  answered.then(() => {
    isAnswered = true
  })
  const pieces = Math.ceil(bytes.length / pieceBytes)
  for (let n = 0; n < Math.min(pieces, maxPieces) && !isAnswered; n++) {
    const piece = bytes.subarray(n * pieceBytes, (n + 1) * pieceBytes)
    socket.write(
      isChunked ? Buffer.concat([Buffer.from(`${piece.length.toString(16)}\r\n`), piece, Buffer.from('\r\n')]) : piece,
    )
    if (n < pieces - 1) await Promise.race([Bun.sleep(pauseMs), answered])
  }
  if (isChunked && pieces <= maxPieces) socket.write('0\r\n\r\n')
  await answered
  const status = /^HTTP\/1\.1 (\d+)/.exec(answer)?.[1] ?? 'closed'
  const code = /"code":"(\w+)"/.exec(answer)?.[1] ?? ''
  return { status, code, closed, socket }
}

const FORM = (text: string) =>
  `--b\r\ncontent-disposition: form-data; name="file"; filename="a.txt"\r\n\r\n${text}\r\n--b--\r\n`
const entity = (length: number) => JSON.stringify({ text: 'x'.repeat(length) })
const chunked = { 'transfer-encoding': 'chunked' }

/** Bodies of some 15 KB, and their answers. */
const bodies: Record<string, () => Promise<[Slow, string]>> = {
  'a file': async () => [{ path: '/api/files?name=a.txt', body: 'x'.repeat(15_000) }, '201'],
  'a form with a file': async () => [
    {
      path: '/api/files',
      headers: { 'content-type': 'multipart/form-data; boundary=b' },
      body: FORM('x'.repeat(15_000)),
    },
    '201',
  ],
  'a site': async () => [
    {
      ...{ path: '/api/sites', method: 'PUT', headers: { 'content-type': 'application/x-tar' } },
      body: await packTar(['index.html', 'x'.repeat(12_000)]),
    },
    '201',
  ],
  'an import': async () => [
    {
      ...{ path: '/api/blueprints/things/entities/import', headers: { 'content-type': 'application/x-ndjson' } },
      body: `${entity(100)}\n`.repeat(135),
    },
    '200',
  ],
  'short JSON': async () => [{ path: '/api/blueprints/things/entities', body: entity(15_000) }, '201'],
  'JSON of unknown length': async () => [
    { path: '/api/blueprints/things/entities', headers: chunked, body: entity(15_000) },
    '201',
  ],
  'JSON with an idempotency key': async () => [
    {
      path: '/api/blueprints/things/entities',
      headers: { 'idempotency-key': crypto.randomUUID() },
      body: entity(15_000),
    },
    '201',
  ],
  'a call of a plugin': async () => [{ path: '/api/slow/echo', body: 'x'.repeat(15_000) }, '200'],
}

describe('slow bodies', () => {
  test('a body that arrives at 1 kB/s is taken by every route, longer than a connection may be idle', async () => {
    const sent = Object.entries(bodies).map(async ([name, create]) => {
      const [slow, expected] = await create()
      const { status, code, socket } = await sendSlowly(slow, 1_000, 950)
      socket.destroy()
      expect([name, status, code]).toEqual([name, expected, expect.anything()])
    })
    const long = sendSlowly({ path: '/api/files?name=b.txt', body: 'x'.repeat(280_000) }, 20_000, 1_000)
    await Promise.all([...sent, long.then(({ status, socket }) => expect([socket.destroy(), status][1]).toBe('201'))])
  }, 60_000)

  test('a body that stops arriving, or trickles, is refused with 408 REQUEST_TIMEOUT, and its connection closed', async () => {
    const original = bodyPace.patienceMs
    bodyPace.patienceMs = 700
    try {
      const sent = Object.entries(bodies).map(async ([name, create]) => {
        const [slow] = await create()
        const { status, code, closed } = await sendSlowly(slow, 1_000, 10, 3)
        expect([name, status, code]).toEqual([name, '408', 'REQUEST_TIMEOUT'])
        await closed
      })
      const trickle = sendSlowly({ path: '/api/files?name=c.txt', body: 'x'.repeat(15_000) }, 10, 100)
      const { status } = await trickle
      expect(status).toBe('408')
      await Promise.all(sent)
    } finally {
      bodyPace.patienceMs = original
    }
  })

  test('time in which the server does not read does not count against the sender', async () => {
    const original = bodyPace.patienceMs
    bodyPace.patienceMs = 300
    const body = watchPace(new Response('x'.repeat(100)).body!)
    await Bun.sleep(500)
    expect((await body.read()).value?.byteLength).toBe(100)
    await Bun.sleep(500)
    expect((await body.read()).done).toBeTrue()
    bodyPace.patienceMs = original
  })
})
