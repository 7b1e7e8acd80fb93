import { describe, expect, setDefaultTimeout, test } from 'bun:test'
import {
  apiCaller,
  createTempFolder,
  createTenantByCli,
  type RunningAtoll,
  type RunOptions,
  runAtoll,
  signIn,
  startAtoll,
} from '../../fakes/cli'
import { databaseUrl } from '../../storage/engines'
import { type Follower, openStream, summarize } from './stream-client'

setDefaultTimeout(60_000)
const path = '/api/blueprints/things/entities'
const things = { key: 'things', name: 'Things', fields: [{ key: 'n', type: 'integer' }] }
const env = databaseUrl ? { ATOLL_DATABASE_URL: databaseUrl } : undefined

/** Returns a tenant, and functions that sign in at its servers, call them and open streams. */
async function startServers() {
  const [at, id] = [{ at: createTempFolder(), env } as RunOptions, `live-${crypto.randomUUID().slice(0, 8)}`]
  await createTenantByCli(at, id)
  let headers: Record<string, string> = {}
  const signInAndCreateThings = async ({ url }: RunningAtoll) => {
    headers = await signIn(url, id)
    await apiCaller(url, headers)('POST', '/api/blueprints', things)
  }
  const call = ({ url }: RunningAtoll) => apiCaller(url, headers)
  const openChanges = async ({ url }: RunningAtoll, last = '', query = '') => {
    const stream = await openStream(`${url}${path}/changes${query}`, {
      ...headers,
      ...(last && { 'last-event-id': last }),
    })
    if (!last) await stream.next()
    return stream
  }
  return { at, id, signInAndCreateThings, call, openChanges }
}

describe.each(['SIGTERM', 'SIGKILL'] as const)('streams of a server that is ended by %s', (signal) => {
  test('a stream that is resumed after a restart has sent every acknowledged change exactly once', async () => {
    const { at, signInAndCreateThings, call, openChanges } = await startServers()
    let stream: Follower
    const acknowledged: string[] = []
    const delivered: string[] = []
    const readAll = async () => {
      for (let one = await stream.next(); one; one = await stream.next()) delivered.push(summarize(one).slice(7))
    }
    {
      await using server = await startAtoll(at)
      await signInAndCreateThings(server)
      stream = await openChanges(server)
      const reading = readAll()
      const write = async (from: number) => {
        for (let n = from; ; n += 4) {
          const { status } = await call(server)('POST', path, { identifier: `e${n}` })
          if (status === 201) acknowledged.push(`e${n}`)
        }
      }
      const writing = [0, 1, 2, 3].map((from) => write(from).catch(() => {}))
      while (delivered.length < 30) await Bun.sleep(5)
      await server.end(signal)
      await Promise.all([reading, ...writing])
    }
    await using server = await startAtoll(at)
    const { last } = stream
    stream = await openChanges(server, last)
    await call(server)('POST', path, { identifier: 'end' })
    while (delivered.at(-1) !== 'end') delivered.push(summarize(await stream.next()).slice(7))
    stream.close()
    expect(new Set(delivered).size).toBe(delivered.length)
    expect(acknowledged.filter((one) => !delivered.includes(one))).toEqual([])
    const { body } = await call(server)('GET', `${path}?$limit=1000&$select=identifier`)
    expect(delivered.toSorted()).toEqual(body.map(({ identifier }: { identifier: string }) => identifier).sort())
  })
})

test('a graceful stop ends all open streams and exits with code 0', async () => {
  const { at, signInAndCreateThings, openChanges } = await startServers()
  await using server = await startAtoll(at)
  await signInAndCreateThings(server)
  const streams = await Promise.all(Array.from({ length: 20 }, () => openChanges(server)))
  const code = server.end('SIGTERM')
  for (const one of streams) expect(await one.take(1)).toEqual(['end'])
  expect(await code).toBe(0)
})

test('a role change by the command line ends a stream at the running server', async () => {
  const { at, id, signInAndCreateThings, openChanges } = await startServers()
  await using server = await startAtoll(at)
  await signInAndCreateThings(server)
  const stream = await openChanges(server)
  await runAtoll(['user', 'create', id, 'bob', '--password', '12345678', '--roles', 'admin'], at)
  await runAtoll(['user', 'roles', id, 'root', 'user'], at)
  expect(await stream.take(1)).toEqual(['end'])
})

describe.skipIf(!databaseUrl)('several servers on one database', () => {
  test('streams of all servers send the same changes in the same order, and share their last ids', async () => {
    const { at, signInAndCreateThings, call, openChanges } = await startServers()
    await using one = await startAtoll(at)
    await using two = await startAtoll({ at: createTempFolder(), env })
    await using three = await startAtoll({ at: createTempFolder(), env })
    await signInAndCreateThings(one)
    const servers = [one, two, three]
    const streams = await Promise.all(servers.map((server) => openChanges(server)))
    const write = (server: RunningAtoll, from: number) =>
      Promise.all(
        Array.from({ length: 20 }, (_, n) => call(server)('POST', path, { identifier: `e${from + n}`, n: n % 2 })),
      )
    await Promise.all(servers.map((server, n) => write(server, n * 20)))
    const events = await Promise.all(streams.map((own) => own.take(60)))
    expect(new Set(events[0]).size).toBe(60)
    expect([events[1], events[2]]).toEqual([events[0]!, events[0]!])
    // A last id of one server is valid at the others.
    const { last } = streams[0]!
    await call(two)('PUT', `${path}/e0`, { n: 7 })
    const resumed = await openChanges(three, last)
    expect(await resumed.take(1)).toEqual(['update e0'])
    for (const own of [...streams, resumed]) own.close()
  })

  test('a stream at one server ends when its session signs out at another', async () => {
    const { at, signInAndCreateThings, call, openChanges } = await startServers()
    await using one = await startAtoll(at)
    await using two = await startAtoll({ at: createTempFolder(), env })
    await signInAndCreateThings(one)
    const stream = await openChanges(two)
    await call(one)('POST', '/api/logout')
    expect(await stream.take(1)).toEqual(['end'])
  })
})
