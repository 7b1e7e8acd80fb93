// engine: sqlite
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { openStream } from '../entities/changes/stream-client'
import {
  createTempFolder,
  createTenantByCli,
  PASSWORD,
  type RunningAtoll,
  runAtoll,
  signIn,
  startAtoll,
} from '../fakes/cli'
import { waitUntil } from '../wait-until'

setDefaultTimeout(60_000)

const PROCESSES = 3
const OPERATOR_TOKEN = 'the-operator-token-of-several-processes'
const THINGS = '/api/blueprints/things/entities'
const fields = ['name', 'text'].map((key) => ({ key, type: 'text' }))
const thingsBlueprint = {
  key: 'things',
  name: 'Things',
  fields,
  permissions: ['create', 'read', 'update'].map((operation) => ({ operation, scope: 'tenant', roleBased: ['admin'] })),
}

/** Returns a client whose requests have a connection each, so that any process may answer. */
const scatteredCaller =
  (url: string, headers: Record<string, string>) =>
  async (method: string, path: string, body?: unknown, more: Record<string, string> = {}) => {
    const response = await fetch(`${url}${path}`, {
      method,
      keepalive: false,
      headers: { 'content-type': 'application/json', connection: 'close', ...headers, ...more },
      body: body === undefined ? undefined : JSON.stringify(body),
    })
    const text = await response.text()
    // biome-ignore lint/suspicious/noExplicitAny: an answer can be anything, and expectations say what it is
    return { status: response.status, headers: response.headers, body: (text ? JSON.parse(text) : undefined) as any }
  }
type Caller = ReturnType<typeof scatteredCaller>

/** Returns the ids of the processes that another one has started. */
const listChildren = (pid: number) =>
  readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number)
const isRunning = (pid: number) => {
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))
  } catch {
    return false
  }
}

const listLogs = (folder: string) =>
  readdirSync(join(folder, 'tenants'), { recursive: true }).filter((name) => /-(wal|shm)$/.test(String(name)))

const env = { ATOLL_WORKERS: `${PROCESSES}` }

/** Starts a server, and stops one of its processes without an end. */
async function startWithHangingProcess() {
  const at = { at: createTempFolder(), env: { ...env, ATOLL_LOG_LEVEL: 'error' } }
  await createTenantByCli(at, 'acme')
  const server = await startAtoll(at)
  const pid = listChildren(server.pid)[0]!
  process.kill(pid, 'SIGSTOP')
  return { server, pid }
}

// It is noticed after half a minute, in which the other tests run.
let hanging: ReturnType<typeof startWithHangingProcess> | undefined
beforeAll(() => {
  if (process.platform === 'linux') hanging = startWithHangingProcess()
})
afterAll(async () => {
  const { server, pid } = (await hanging) ?? {}
  if (pid && isRunning(pid)) process.kill(pid, 'SIGKILL')
  await server?.[Symbol.asyncDispose]()
})

describe.skipIf(process.platform !== 'linux')('a server with ATOLL_WORKERS', () => {
  const at = {
    at: createTempFolder(),
    env: { ATOLL_WORKERS: `${PROCESSES}`, ATOLL_LOG_LEVEL: 'warn', ATOLL_OPERATOR_TOKEN: OPERATOR_TOKEN },
  }
  let server: RunningAtoll
  let headers: Record<string, string>
  let call: Caller

  beforeAll(async () => {
    await createTenantByCli(at, 'acme')
    server = await startAtoll(at)
    headers = await signIn(server.url, 'acme')
    call = scatteredCaller(server.url, headers)
    expect((await call('POST', '/api/blueprints', thingsBlueprint)).status).toBe(201)
  })
  afterAll(async () => {
    await server[Symbol.asyncDispose]()
  })

  test('every process sees at once what another one has changed', async () => {
    const { body: thing } = await call('POST', THINGS, { name: '0' })
    for (let round = 1; round <= 10; round++) {
      expect((await call('PATCH', `${THINGS}/${thing._id}`, { name: `${round}` })).status).toBe(200)
      const seen = await Promise.all(Array.from({ length: 6 }, () => call('GET', `${THINGS}/${thing._id}`)))
      expect(seen.map(({ body }) => body.name)).toEqual(Array(6).fill(`${round}`))
    }
    for (let round = 0; round < 4; round++) {
      const extra = { key: `extra${round}`, type: 'integer' }
      expect((await call('PUT', '/api/blueprints/things', { fields: [...fields, extra] })).status).toBe(200)
      const made = await Promise.all(
        Array.from({ length: 6 }, () => call('POST', THINGS, { name: 'x', [extra.key]: 'not a number' })),
      )
      expect(made.map(({ status }) => status)).toEqual(Array(6).fill(400))
    }
    const session = scatteredCaller(server.url, await signIn(server.url, 'acme'))
    expect((await session('GET', '/api/me')).status).toBe(200)
    await session('POST', '/api/logout')
    const refused = await Promise.all(Array.from({ length: 10 }, () => session('GET', '/api/me')))
    expect(refused.map(({ status }) => status)).toEqual(Array(10).fill(401))
  })

  test('processes that write to one tenant at the same time lose and repeat nothing, and each shows it to the others', async () => {
    const { body: counter } = await call('POST', THINGS, { name: '0', text: 'counter' })
    const names: string[] = []
    const write = async (writer: number) => {
      for (let n = 0; n < 15; n++) {
        const name = `${writer}-${n}`
        const { status, body: made } = await call('POST', THINGS, { name, text: 'parallel' })
        expect(status).toBe(201)
        names.push(name)
        expect((await call('GET', `${THINGS}/${made._id}`)).status).toBe(200)
        for (let isDone = false; !isDone; ) {
          const now = await call('GET', `${THINGS}/${counter._id}`)
          const match = { 'if-match': now.headers.get('etag')! }
          const name = `${Number(now.body.name) + 1}`
          const changed = await call('PATCH', `${THINGS}/${counter._id}`, { name }, match)
          expect([200, 412]).toContain(changed.status)
          isDone = changed.status === 200
        }
      }
    }
    await Promise.all(Array.from({ length: 12 }, (_, writer) => write(writer)))
    const { body } = await call('GET', `${THINGS}?text=parallel&$limit=500`)
    expect((body as { name: string }[]).map(({ name }) => name).sort()).toEqual(names.sort())
    expect((await call('GET', `${THINGS}/${counter._id}`)).body.name).toBe(`${names.length}`)
  })

  test('a listener gets the changes that other processes make', async () => {
    const writer = `${server.url}${THINGS}/changes`
    await using stream = await openStream(writer, headers)
    expect((await stream.next())?.event).toBe('ready')
    const made = await Promise.all(Array.from({ length: 12 }, (_, n) => call('POST', THINGS, { name: `live ${n}` })))
    const seen = new Set<string>()
    while (seen.size < made.length) {
      const event = await stream.next()
      if (event?.event === 'create') seen.add(event.data._id ?? event.data.entity?._id)
    }
    expect([...seen].sort()).toEqual(made.map(({ body }) => body._id).sort())
  })

  test('the metrics are those of all processes together', async () => {
    const countRequests = async () => {
      const text = await (await fetch(`${server.url}/metrics`)).text()
      const lines = text.matchAll(
        /^atoll_http_requests_total\{(?=[^}]*route="\/api\/me")(?=[^}]*status="401")[^}]*worker="\d"[^}]*\} (\d+)/gm,
      )
      expect(text.match(/^process_resident_memory_bytes/gm)).toHaveLength(1)
      return lines.reduce((sum, [, count]) => sum + Number(count), 0)
    }
    const guest = scatteredCaller(server.url, { tenant: 'acme' })
    const before = await countRequests()
    await Promise.all(Array.from({ length: 30 }, () => guest('GET', '/api/me')))
    expect(await countRequests()).toBe(before + 30)
  })

  test('requests are spread over all processes, and the operator sees the log of all', async () => {
    // A failed sign-in leaves a line in the log of its process.
    const guest = scatteredCaller(server.url, { tenant: 'acme' })
    const wrong = { username: 'nobody', password: PASSWORD, authType: 'oauth' }
    await Promise.all(Array.from({ length: 40 }, () => guest('POST', '/api/signin', wrong)))
    const operator = scatteredCaller(server.url, { authorization: `Bearer ${OPERATOR_TOKEN}` })
    const { body } = await operator('GET', '/operator/logs?q=signin-failed&limit=40')
    const lines = (body.data ?? body) as { text: string; time: string }[]
    expect(new Set(lines.map(({ text }) => (JSON.parse(text) as { worker: number }).worker)).size).toBe(PROCESSES)
    expect(lines.map(({ time }) => time)).toEqual(
      lines
        .map(({ time }) => time)
        .sort()
        .reverse(),
    )
    expect(await server.end('SIGTERM')).toBe(0)
    expect(listLogs(at.at)).toEqual([])
  })
})

describe.skipIf(process.platform !== 'linux')('the processes of a server', () => {
  test.concurrent('a process that was killed loses no acknowledged write, and another one takes its place', async () => {
    const at = { at: createTempFolder(), env }
    await createTenantByCli(at, 'acme')
    await using server = await startAtoll(at)
    const call = scatteredCaller(server.url, await signIn(server.url, 'acme'))
    expect((await call('POST', '/api/blueprints', thingsBlueprint)).status).toBe(201)
    const acknowledged: string[] = []
    let isWriting = true
    const write = async (writer: number) => {
      for (let n = 0; isWriting; n++) {
        const answer = await call('POST', THINGS, { name: `${writer}-${n}` }).catch(() => undefined)
        if (!answer) continue // the connection was cut
        expect(answer.status).toBe(201)
        acknowledged.push(answer.body._id)
      }
    }
    const writers = Array.from({ length: 8 }, (_, writer) => write(writer))
    const first = listChildren(server.pid)
    expect(first).toHaveLength(PROCESSES)
    for (const pid of first) {
      const before = acknowledged.length
      await waitUntil(() => acknowledged.length > before + 30)
      process.kill(pid, 'SIGKILL')
      await waitUntil(() => {
        const running = listChildren(server.pid).filter(isRunning)
        return running.length === PROCESSES && !running.includes(pid)
      })
    }
    const before = acknowledged.length
    await waitUntil(() => acknowledged.length > before + 30)
    isWriting = false
    await Promise.all(writers)
    expect(await server.end('SIGTERM')).toBe(0)
    expect(listLogs(at.at)).toEqual([])
    const exported = await runAtoll('doctor --deep --json', at)
    expect(exported.code).toBe(0)
    await using again = await startAtoll({ at: at.at })
    const ask = scatteredCaller(again.url, await signIn(again.url, 'acme'))
    const stored = new Set<string>()
    for (let after = ''; ; ) {
      const { body } = await ask('GET', `${THINGS}?$limit=500${after}`)
      for (const { _id } of body as { _id: string }[]) stored.add(_id)
      if ((body as unknown[]).length < 500) break
      after = `&$skip=${stored.size}`
    }
    expect(acknowledged.filter((id) => !stored.has(id))).toEqual([])
  })

  test.concurrent('every process shows the operator the damaged tenants that one of them has found', async () => {
    const at = { at: createTempFolder(), env: { ...env, ATOLL_OPERATOR_TOKEN: OPERATOR_TOKEN } }
    await createTenantByCli(at, 'acme')
    writeFileSync(join(at.at, 'tenants/acme/data.db'), 'no database')
    await using server = await startAtoll(at)
    const credentials = { username: 'admin', password: PASSWORD, authType: 'oauth' }
    expect((await scatteredCaller(server.url, { tenant: 'acme' })('POST', '/api/signin', credentials)).body.code).toBe(
      'TENANT_DAMAGED',
    )
    const operator = scatteredCaller(server.url, { authorization: `Bearer ${OPERATOR_TOKEN}` })
    const health = await Promise.all(Array.from({ length: 12 }, () => operator('GET', '/operator/health')))
    expect(
      new Set(health.map(({ body }) => body.damaged.map(({ tenant }: { tenant: string }) => tenant).join())),
    ).toEqual(new Set(['acme']))
  })

  test.concurrent('a process that hangs is replaced within a minute, and the others serve on', async () => {
    const { server, pid } = await hanging!
    const isReplaced = () => !listChildren(server.pid).includes(pid) && listChildren(server.pid).length === PROCESSES
    await waitUntil(isReplaced, Boolean, 60_000)
    expect((await fetch(`${server.url}/ready`)).status).toBe(200)
    expect(await server.end('SIGTERM')).toBe(0)
    expect(await server.logged).toContain('"what":"SERVER_PROCESS_HANGS","worker":')
  }, 90_000)

  test.concurrent('they end when their supervisor was killed, and the next server starts as usual', async () => {
    const at = { at: createTempFolder(), env }
    await createTenantByCli(at, 'acme')
    const server = await startAtoll(at)
    const children = listChildren(server.pid)
    await server.end('SIGKILL')
    await waitUntil(() => !children.some(isRunning), Boolean, 20_000)
    await using next = await startAtoll(at)
    expect((await fetch(`${next.url}/ready`)).status).toBe(200)
  })

  test.concurrent('a taken port, another server of the folder and continuous backups are refused in a sentence', async () => {
    const at = { at: createTempFolder(), env }
    using other = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response() })
    const taken = await runAtoll('serve', { ...at, env: { ...env, ATOLL_PORT: `${other.port}` } })
    expect([taken.code, taken.err]).toEqual([2, expect.stringContaining(`Port ${other.port} is already in use.`)])
    const continuous = { ...env, ATOLL_BACKUP_CONTINUOUS: 'on', ATOLL_BACKUP_TO: 'backups' }
    const shipped = await runAtoll('serve', { ...at, env: continuous })
    expect([shipped.code, shipped.err]).toEqual([2, expect.stringContaining('needs a single process.')])
    await using _ = await startAtoll(at)
    const second = await runAtoll('serve', at)
    expect([second.code, second.err]).toEqual([2, expect.stringContaining('Another process serves the folder')])
  })
})
