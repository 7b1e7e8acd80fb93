import { expect, test } from 'bun:test'
import { apiCaller, createTempFolder, createTenantByCli, signIn, startAtoll } from '../fakes/cli'
import { databaseUrl } from '../storage/engines'

const WRITERS = 16
const THINGS_PATH = '/api/blueprints/things/entities'

type Request = { key: string; name: string; id?: string }

test('creates that are repeated after `kill -9` get their response and have been executed once', async () => {
  const at = { at: createTempFolder(), ...(databaseUrl && { env: { ATOLL_DATABASE_URL: databaseUrl } }) }
  const id = `crash-${crypto.randomUUID().slice(0, 8)}`
  await createTenantByCli(at, id)
  const sent: Request[] = []
  const replayed = new Map<string | null, number>()
  for (let round = 0; round < 3; round++) {
    {
      await using server = await startAtoll(at)
      const headers = await signIn(server.url, id)
      if (!round) {
        const blueprint = { key: 'things', name: 'Things', fields: [{ key: 'name', type: 'string' }] }
        expect((await apiCaller(server.url, headers)('POST', '/api/blueprints', blueprint)).status).toBe(201)
      }
      const writer = async (n: number) => {
        for (let i = 0; ; i++) {
          const request: Request = { key: `${round} ${n} ${i}`.replaceAll(' ', '-'), name: `${round} ${n} ${i}` }
          sent.push(request)
          const call = apiCaller(server.url, { ...headers, 'idempotency-key': request.key })
          const answer = await call('POST', THINGS_PATH, { name: request.name }).catch(() => undefined)
          if (!answer) return
          expect(answer.status).toBe(201)
          request.id = answer.body._id
        }
      }
      const writing = Promise.all(Array.from({ length: WRITERS }, (_, n) => writer(n)))
      while (sent.filter((one) => one.id).length < (round + 1) * 50) await Bun.sleep(5)
      process.kill(server.pid, 'SIGKILL')
      await server.exited
      await writing
    }
    await using server = await startAtoll(at)
    const headers = await signIn(server.url, id)
    const unanswered = sent.filter((one) => !one.id)
    expect(unanswered.length).toBeGreaterThan(0)
    const repeat = async (request: Request) => {
      const call = apiCaller(server.url, { ...headers, 'idempotency-key': request.key })
      const { status, body, headers: responseHeaders } = await call('POST', THINGS_PATH, { name: request.name })
      expect([status, body.name]).toEqual([201, request.name])
      const replayedHeader = responseHeaders.get('idempotency-replayed')
      replayed.set(replayedHeader, (replayed.get(replayedHeader) ?? 0) + 1)
      request.id = body._id
    }
    await Promise.all(unanswered.map(repeat))
    // A request that was answered before the crash gets the same entity again.
    for (const request of sent.filter((one) => one.id).slice(-20)) {
      const before = request.id
      await repeat(request)
      expect(request.id).toBe(before)
    }
    const counted = await apiCaller(server.url, headers)('GET', `${THINGS_PATH}?$count=true&$limit=1`)
    expect(Number(counted.headers.get('x-total-count'))).toBe(sent.length)
    expect(new Set(sent.map((one) => one.id)).size).toBe(sent.length)
    await server.end('SIGTERM')
  }
  console.log('answers to requests that were sent again:', Object.fromEntries(replayed))
}, 120_000)
