// engine: sqlite
import { describe, expect, setDefaultTimeout, test } from 'bun:test'
import { connect } from 'node:net'
import { getLoadablePath } from 'sqlite-vec'
import {
  apiCaller,
  createTempFolder,
  createTenantByCli,
  PASSWORD,
  type RunningAtoll,
  runAtoll,
  SOURCE_COMMAND,
  signIn,
  startAtoll,
} from '../fakes/cli'
import { waitUntil } from '../wait-until'

setDefaultTimeout(30_000)
// Most tests wait for their servers, so they wait at once. Those at the end measure seconds.

const thingsBlueprint = { key: 'things', name: 'Things', fields: [{ key: 'n', type: 'integer' }] }

async function createThings(server: RunningAtoll) {
  const headers = await signIn(server.url, 'acme')
  const call = apiCaller(server.url, headers)
  expect((await call('POST', '/api/blueprints', thingsBlueprint)).status).toBe(201)
  return { headers, call }
}

test.concurrent('a running server soon applies changes of tenants, hosts and users made on the command line', async () => {
  const at = { at: createTempFolder() }
  await createTenantByCli(at, 'acme')
  await createTenantByCli(at, 'second') // an only tenant would answer at every host
  await using server = await startAtoll(at)
  const headers = await signIn(server.url, 'acme')
  const me = (headers: Record<string, string>) => async () => {
    const { status, body } = await apiCaller(server.url, headers)('GET', '/api/me')
    return body.code ? `${status} ${body.code}` : `${status} ${body.roles}`
  }
  const expectEventually = async (headers: Record<string, string>, answer: string) =>
    expect(await waitUntil(me(headers), (text) => text === answer)).toBe(answer)
  const atHost = (host: string) => ({ host })
  await expectEventually(headers, '200 admin,user')
  await expectEventually(atHost('acme.test'), '401 UNAUTHENTICATED')

  await runAtoll('user create acme bob --password 12345678 --roles admin', at)
  await signIn(server.url, 'acme', 'bob', '12345678')
  await runAtoll('user roles acme root editor', at)
  await expectEventually(headers, '200 editor')
  await runAtoll('user password acme root --password 87654321', at)
  await expectEventually(headers, '401 UNAUTHENTICATED')
  const newHeaders = await signIn(server.url, 'acme', 'root', '87654321')

  await runAtoll('tenant suspend acme', at)
  await expectEventually(newHeaders, '403 TENANT_SUSPENDED')
  await runAtoll('tenant resume acme', at)
  await expectEventually(newHeaders, '200 editor')

  await expectEventually(atHost('new.test'), '404 TENANT_NOT_FOUND')
  await runAtoll('tenant hosts acme new.test', at)
  await expectEventually(atHost('new.test'), '401 UNAUTHENTICATED')
  await expectEventually(atHost('acme.test'), '404 TENANT_NOT_FOUND')

  await runAtoll('tenant create other --host acme.test', at)
  await expectEventually(atHost('acme.test'), '401 UNAUTHENTICATED')
  await runAtoll('tenant delete acme --yes', at)
  await expectEventually(newHeaders, '404 TENANT_NOT_FOUND')
  await expectEventually(atHost('new.test'), '404 TENANT_NOT_FOUND')
})

test.concurrent('concurrent writes of the command line and a server all succeed', async () => {
  const at = { at: createTempFolder() }
  await createTenantByCli(at, 'acme')
  await using server = await startAtoll(at)
  const { call } = await createThings(server)
  let over = false
  const statuses: number[] = []
  const writer = async () => {
    while (!over) statuses.push((await call('POST', '/api/blueprints/things/entities', { n: 1 })).status)
  }
  const writers = Promise.all(Array.from({ length: 8 }, writer))
  try {
    for (let n = 0; n < 4; n++) {
      const { code, err } = await runAtoll('user roles acme root admin,user --json', at)
      expect([code, err]).toEqual([0, ''])
    }
  } finally {
    over = true
    await writers
  }
  expect(statuses.length).toBeGreaterThan(8)
  expect(new Set(statuses)).toEqual(new Set([201]))
})

describe('a server that gets a stop signal', () => {
  test.concurrent.each(['SIGTERM', 'SIGINT', 'SIGHUP'] as const)(
    'a server that gets %s exits with code 0 and an empty log',
    async (signal) => {
      await using server = await startAtoll({ at: createTempFolder() })
      expect((await apiCaller(server.url)('GET', '/api/me')).status).toBe(401)
      expect(await server.end(signal)).toBe(0)
      expect(await server.logged).toBe('')
    },
  )

  test.concurrent('a server that gets SIGTERM under load cuts no answer and loses no acknowledged entity', async () => {
    const at = { at: createTempFolder() }
    await createTenantByCli(at, 'acme')
    const createdIds: string[] = []
    const statuses = new Set<number>()
    {
      await using server = await startAtoll(at)
      const { call } = await createThings(server)
      const writer = async () => {
        for (;;) {
          const answer = await call('POST', '/api/blueprints/things/entities', { n: createdIds.length }).catch(
            () => undefined,
          )
          if (!answer) return // the server accepts no more connections
          statuses.add(answer.status)
          if (answer.status !== 201) return
          createdIds.push(answer.body._id)
        }
      }
      const writers = Promise.all(Array.from({ length: 16 }, writer))
      while (createdIds.length < 100) await Bun.sleep(5)
      const code = await server.end('SIGTERM')
      await writers
      expect([code, await server.logged]).toEqual([0, ''])
    }
    expect([...statuses]).toEqual([201])

    await using server = await startAtoll(at)
    const call = apiCaller(server.url, await signIn(server.url, 'acme'))
    const storedIds = new Set<string>()
    for (let skip = 0; skip <= createdIds.length + 100; skip += 1_000) {
      const { body } = await call('GET', `/api/blueprints/things/entities?$limit=1000&$skip=${skip}`)
      for (const { _id } of body) storedIds.add(_id)
    }
    expect(createdIds.filter((id) => !storedIds.has(id))).toEqual([])
  })

  test.concurrent('a server that gets SIGTERM still answers a request whose body is being received', async () => {
    const at = { at: createTempFolder() }
    await runAtoll('tenant create acme --host acme.test', at)
    await using server = await startAtoll(at)
    const socket = connect(server.port, '127.0.0.1')
    let received = ''
    socket.on('data', (bytes) => {
      received += bytes
    })
    socket.on('error', () => {})
    const closed = new Promise((resolve) => socket.on('close', resolve))
    try {
      const body = '{"username":"nobody","password":"nothing"}'
      socket.write('POST /api/signin HTTP/1.1\r\nHost: acme.test\r\nContent-Type: application/json\r\n')
      socket.write(`Connection: close\r\nContent-Length: ${body.length}\r\n\r\n${body.slice(0, 9)}`)
      // Once these later requests are answered, the server has received the earlier one.
      for (let n = 0; n < 3; n++) await fetch(`http://127.0.0.1:${server.port}/health`)
      const ended = server.end('SIGTERM')
      await Bun.sleep(200)
      socket.write(body.slice(9))
      expect(await ended).toBe(0)
      await closed
      expect(received).toStartWith('HTTP/1.1 401')
      expect(received).toContain('"code":"INVALID_CREDENTIALS"')
    } finally {
      socket.destroy()
    }
  })
})

test.concurrent('a second SIGINT ends a server at once with code 130, and a second SIGTERM changes nothing', async () => {
  const at = { at: createTempFolder() }
  await runAtoll('tenant create acme --host acme.test', at)
  for (const [signal, code] of [
    ['SIGINT', 130],
    ['SIGTERM', 0],
  ] as const) {
    await using server = await startAtoll(at)
    const socket = connect(server.port, '127.0.0.1')
    socket.on('error', () => {})
    try {
      // The server waits for this request, which leaves time for the second signal.
      socket.write(
        'POST /api/signin HTTP/1.1\r\nHost: acme.test\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{',
      )
      for (let n = 0; n < 3; n++) await fetch(`http://127.0.0.1:${server.port}/health`)
      process.kill(server.pid, signal)
      await Bun.sleep(300)
      process.kill(server.pid, signal)
      expect(await server.exited).toBe(code)
    } finally {
      socket.destroy()
    }
  }
})

test.concurrent('`serve` in an empty folder creates the tenant "main" and prints a set-up link until it has an administrator', async () => {
  const at = { at: createTempFolder() }
  const links: string[] = []
  for (let start = 1; start <= 2; start++) {
    await using server = await startAtoll(at)
    const [, origin, token = ''] = await server.until(/(http:\/\/127\.0\.0\.1:\d+)\/admin\/set-up#(\S+)/)
    expect(origin).toBe(server.url)
    links.push(token)
    if (start === 2) {
      const account = { username: 'ada', password: PASSWORD, token: links[0] }
      expect((await apiCaller(server.url)('POST', '/api/setup', account)).status).toBe(201)
      const { status, body } = await apiCaller(server.url)('POST', '/api/setup', { ...account, username: 'eve', token })
      expect([status, body.code]).toEqual([409, 'SETUP_COMPLETE'])
    }
  }
  expect(new Set(links).size).toBe(2)
  expect((await runAtoll('tenant list --json', at)).json).toMatchObject([{ id: 'main' }])
  await using server = await startAtoll(at)
  await server.end('SIGTERM')
  expect(server.readOutput()).not.toContain('/admin/set-up')
})

test.concurrent('`serve --demo` creates a demo tenant once and prints a link that signs in at each start', async () => {
  const at = { at: createTempFolder() }
  for (const isFirst of [true, false]) {
    await using server = await startAtoll(at, '--demo')
    if (isFirst) await server.until(/curl .*\n.*curl .*\n.*curl .*entities'/)
    const [, token] = await server.until(/\/admin\/link\?tenant=demo#(\S+)/)
    const { status, body } = await apiCaller(server.url)('POST', '/api/signin/link', { token })
    expect([status, body.payload.user.username]).toEqual([200, 'admin'])
    await server.end('SIGTERM')
    expect((await runAtoll('tenant list --json', at)).json).toMatchObject([{ id: 'demo' }])
  }
})

test.concurrent('`serve --json` prints nothing but its URL as JSON', async () => {
  const at = { at: createTempFolder() }
  await using server = await startAtoll(at, '--json')
  expect((await apiCaller(server.url)('GET', '/health')).status).toBe(200)
  await server.end('SIGTERM')
  expect(server.readOutput()).toBe(`${JSON.stringify({ url: server.url })}\n`)
})

test.concurrent('ATOLL_ACCESS_TOKEN_TTL sets the lifetime of tokens, and ATOLL_OPEN_TENANTS=0 derives a limit above 0', async () => {
  const env = { ATOLL_ACCESS_TOKEN_TTL: '60', ATOLL_WRITE_DEADLINE: '3000', ATOLL_OPEN_TENANTS: '0' }
  const at = { at: createTempFolder(), env }
  await createTenantByCli(at, 'acme')
  expect((await runAtoll('doctor --json', at)).json.openTenants).toBeGreaterThan(0)
  await using server = await startAtoll(at)
  const body = { username: 'root', password: PASSWORD, authType: 'oauth' }
  const answer = await apiCaller(server.url, { tenant: 'acme' })('POST', '/api/signin', body)
  expect([answer.status, answer.body.payload?.expiresIn]).toEqual([200, 60])
  const [, claims = ''] = answer.body.payload.token.split('.')
  const { exp } = JSON.parse(Buffer.from(claims, 'base64url').toString())
  expect(Math.abs(exp - Date.now() / 1000 - 60)).toBeLessThan(20)
})

test.concurrent('ATOLL_SQLITE_VEC is loaded for every command, and a wrong path exits with code 2 and a message', async () => {
  const at = { at: createTempFolder() }
  await createTenantByCli({ ...at, env: { ATOLL_SQLITE_VEC: getLoadablePath() } }, 'acme')
  const { code, err } = await runAtoll('tenant list', { ...at, env: { ATOLL_SQLITE_VEC: '/nowhere.so' } })
  expect([code, err.trim()]).toEqual([2, 'SQLite cannot load the extension /nowhere.so of ATOLL_SQLITE_VEC.'])
  expect((await runAtoll('tenant list', at)).out).toContain('acme')
})

test.concurrent('both SQLite drivers read and write the same files', async () => {
  const at = { at: createTempFolder() }
  // The binary contains only one of them.
  const withBetterSqlite = { ...at, env: { ATOLL_SQLITE_DRIVER: 'better-sqlite3' }, program: SOURCE_COMMAND }
  await createTenantByCli(withBetterSqlite, 'acme')
  {
    await using server = await startAtoll(withBetterSqlite)
    const { call } = await createThings(server)
    expect((await call('POST', '/api/blueprints/things/entities', { identifier: 'a', n: 7 })).status).toBe(201)
    expect(await server.end('SIGTERM')).toBe(0)
  }
  await using server = await startAtoll(at)
  const call = apiCaller(server.url, await signIn(server.url, 'acme'))
  expect((await call('GET', '/api/blueprints/things/entities?n=7')).body).toMatchObject([{ identifier: 'a', n: 7 }])
})

test('a server that gets SIGTERM does not wait for idle connections', async () => {
  const at = { at: createTempFolder() }
  await using server = await startAtoll(at)
  const socket = connect(server.port, '127.0.0.1')
  socket.on('error', () => {})
  const answered = new Promise((resolve) => socket.once('data', resolve))
  socket.write('GET /health HTTP/1.1\r\nHost: a.test\r\n\r\n')
  await answered
  try {
    const began = performance.now()
    expect(await server.end('SIGTERM')).toBe(0)
    expect(performance.now() - began).toBeLessThan(5_000)
  } finally {
    socket.destroy()
  }
})

describe('a server with connections that have sent an incomplete request', () => {
  const head =
    'POST /api/signin HTTP/1.1\r\nHost: acme.test\r\nContent-Type: application/json\r\nContent-Length: 99\r\n'
  test.each([
    ['half a head', head],
    ['half a body', `${head}\r\n{"username":`],
  ])('a server with a connection that has sent %s stops within 7 seconds', async (_, part) => {
    const at = { at: createTempFolder() }
    await runAtoll('tenant create acme --host acme.test', at)
    await using server = await startAtoll(at)
    const socket = connect(server.port, '127.0.0.1')
    socket.on('error', () => {})
    try {
      await new Promise((sent) => socket.write(part, sent))
      for (let n = 0; n < 3; n++) await fetch(`http://127.0.0.1:${server.port}/health`)
      const began = performance.now()
      expect(await server.end('SIGTERM')).toBe(0)
      expect(performance.now() - began).toBeLessThan(7_000)
    } finally {
      socket.destroy()
    }
  })
})
