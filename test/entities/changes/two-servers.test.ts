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

/** A tenant with a blueprint, and how a server of it is spoken to. */
async function startServers() {
  const [at, id] = [{ at: createTempFolder(), env } as RunOptions, `live-${crypto.randomUUID().slice(0, 8)}`]
  await createTenantByCli(at, id)
  let headers: Record<string, string> = {}
  const signedIn = async ({ url }: RunningAtoll) => {
    headers = await signIn(url, id)
    await apiCaller(url, headers)('POST', '/api/blueprints', things)
  }
  const call = ({ url }: RunningAtoll) => apiCaller(url, headers)
  const hear = async ({ url }: RunningAtoll, last = '', query = '') => {
    const heard = await openStream(`${url}${path}/changes${query}`, {
      ...headers,
      ...(last && { 'last-event-id': last }),
    })
    if (!last) await heard.next()
    return heard
  }
  return { at, id, signedIn, call, hear }
}

describe.each(['SIGTERM', 'SIGKILL'] as const)('a server that is ended by %s', (signal) => {
  test('loses no change, and tells none twice: whoever comes again hears what was acknowledged', async () => {
    const { at, signedIn, call, hear } = await startServers()
    let heard: Follower
    const acknowledged: string[] = []
    const told: string[] = []
    const hearAll = async () => {
      for (let one = await heard.next(); one; one = await heard.next()) told.push(summarize(one).slice(7))
    }
    {
      await using server = await startAtoll(at)
      await signedIn(server)
      heard = await hear(server)
      const hearing = hearAll()
      const write = async (from: number) => {
        for (let n = from; ; n += 4) {
          const { status } = await call(server)('POST', path, { identifier: `e${n}` })
          if (status === 201) acknowledged.push(`e${n}`)
        }
      }
      const writing = [0, 1, 2, 3].map((from) => write(from).catch(() => {}))
      while (told.length < 30) await Bun.sleep(5)
      await server.end(signal)
      await Promise.all([hearing, ...writing])
    }
    await using server = await startAtoll(at)
    const { last } = heard
    heard = await hear(server, last)
    await call(server)('POST', path, { identifier: 'end' })
    while (told.at(-1) !== 'end') told.push(summarize(await heard.next()).slice(7))
    heard.close()
    expect(new Set(told).size).toBe(told.length)
    expect(acknowledged.filter((one) => !told.includes(one))).toEqual([])
    const { body } = await call(server)('GET', `${path}?$limit=1000&$select=identifier`)
    expect(told.toSorted()).toEqual(body.map(({ identifier }: { identifier: string }) => identifier).sort())
  })
})

test('a graceful end tells those who listen, and waits for nobody', async () => {
  const { at, signedIn, hear } = await startServers()
  await using server = await startAtoll(at)
  await signedIn(server)
  const heard = await Promise.all(Array.from({ length: 20 }, () => hear(server)))
  const code = server.end('SIGTERM')
  for (const one of heard) expect(await one.take(1)).toEqual(['end'])
  expect(await code).toBe(0)
})

test('what the command line changes beside a running server ends a stream within seconds', async () => {
  const { at, id, signedIn, hear } = await startServers()
  await using server = await startAtoll(at)
  await signedIn(server)
  const heard = await hear(server)
  await runAtoll(['user', 'create', id, 'bob', '--password', '12345678', '--roles', 'admin'], at)
  await runAtoll(['user', 'roles', id, 'root', 'user'], at)
  expect(await heard.take(1)).toEqual(['end'])
})

describe.skipIf(!databaseUrl)('several servers on one database', () => {
  test('tell the same, in the same order, whichever made the change', async () => {
    const { at, signedIn, call, hear } = await startServers()
    await using one = await startAtoll(at)
    await using two = await startAtoll({ at: createTempFolder(), env })
    await using three = await startAtoll({ at: createTempFolder(), env })
    await signedIn(one)
    const servers = [one, two, three]
    const heard = await Promise.all(servers.map((server) => hear(server)))
    const write = (server: RunningAtoll, from: number) =>
      Promise.all(
        Array.from({ length: 20 }, (_, n) => call(server)('POST', path, { identifier: `e${from + n}`, n: n % 2 })),
      )
    await Promise.all(servers.map((server, n) => write(server, n * 20)))
    const told = await Promise.all(heard.map((own) => own.take(60)))
    expect(new Set(told[0]).size).toBe(60)
    expect([told[1], told[2]]).toEqual([told[0]!, told[0]!])
    // An id of one server is good at the others.
    const { last } = heard[0]!
    await call(two)('PUT', `${path}/e0`, { n: 7 })
    const again = await hear(three, last)
    expect(await again.take(1)).toEqual(['update e0'])
    for (const own of [...heard, again]) own.close()
  })

  test('a stream of one ends when somebody signs out at another', async () => {
    const { at, signedIn, call, hear } = await startServers()
    await using one = await startAtoll(at)
    await using two = await startAtoll({ at: createTempFolder(), env })
    await signedIn(one)
    const heard = await hear(two)
    await call(one)('POST', '/api/logout')
    expect(await heard.take(1)).toEqual(['end'])
  })
})
