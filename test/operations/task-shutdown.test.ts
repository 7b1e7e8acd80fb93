import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import {
  apiCaller,
  createTempFolder,
  createTenantByCli,
  type RunningAtoll,
  type RunOptions,
  runAtoll,
  signIn,
  startAtoll,
} from '../fakes/cli'
import { startCuttingProxy } from '../fakes/cutting-proxy'
import { createDatabase } from '../fakes/postgres'
import { databaseUrl } from '../storage/engines'
import { waitUntil } from '../wait-until'

setDefaultTimeout(120_000)

const TOKEN = 'the-operator-token-of-the-shutdown'
const HOME = 'main/atoll_b0001'
const FAR_HOME = 'far/atoll_b0001'

/** Moves to the cluster `far` take as long as its proxy makes them. */
describe.skipIf(!databaseUrl)('a server that is stopped during a move', () => {
  let at: RunOptions
  let proxy: Awaited<ReturnType<typeof startCuttingProxy>>

  beforeAll(async () => {
    const [main, far] = [await createDatabase(databaseUrl!), await createDatabase(databaseUrl!)]
    proxy = await startCuttingProxy({ port: Number(new URL(far).port) })
    const ATOLL_DATABASE_CLUSTERS = `far=${Object.assign(new URL(far), { port: proxy.port }).href}`
    at = {
      at: createTempFolder(),
      env: { ATOLL_DATABASE_URL: main, ATOLL_DATABASE_CLUSTERS, ATOLL_OPERATOR_TOKEN: TOKEN },
    }
    await createTenantByCli(at, 'acme')
    expect((await runAtoll('postgres bucket add far', at)).code).toBe(0)
    await using server = await startAtoll(at)
    const call = apiCaller(server.url, await signIn(server.url, 'acme'))
    const fields = [{ key: 'n', type: 'integer' }]
    expect((await call('POST', '/api/blueprints', { key: 'things', name: 'Things', fields })).status).toBe(201)
    const operations = Array.from({ length: 500 }, (_, n) => ({ op: 'create', data: { n } }))
    expect((await call('POST', '/api/blueprints/things/entities/batch', { operations })).status).toBe(200)
  })
  afterAll(() => proxy?.stop())

  const callOperator = (server: RunningAtoll) => apiCaller(server.url, { authorization: `Bearer ${TOKEN}` })

  /** Starts a move, stops the server while it copies, and returns what a new server says about the move. */
  async function stopDuringMove(to: string) {
    const stopped = await startAtoll(at)
    const started = callOperator(stopped)('POST', '/operator/tenants/acme/move', { to })
    const readTask = async (server: RunningAtoll) => (await callOperator(server)('GET', '/operator/tasks')).body[0]
    const { _id } = await waitUntil(
      () => readTask(stopped),
      (task) => task?.status === 'running' && task.progress,
    )
    const answered = started.catch(() => {}) // the connection may end before the answer
    const code = await stopped.end('SIGTERM')
    await answered
    const server = await startAtoll(at)
    const task = await readTask(server)
    expect(task._id).toBe(_id)
    return { code, task, server }
  }

  async function expectComplete(server: RunningAtoll, home: string) {
    expect((await callOperator(server)('GET', '/operator/tenants/acme')).body.home).toBe(home)
    const call = apiCaller(server.url, await signIn(server.url, 'acme'))
    expect((await call('GET', '/api/blueprints/things/entities?$limit=1000')).body).toHaveLength(500)
    expect((await call('PUT', '/api/me', {})).status).not.toBe(503)
  }

  test('it waits for a move that ends within the grace period, and the command line moves the tenant back', async () => {
    proxy.slowDown(5)
    const { code, task, server } = await stopDuringMove(FAR_HOME)
    expect(task).toMatchObject({ status: 'succeeded', result: { from: HOME, to: FAR_HOME } })
    expect(code).toBe(0)
    await expectComplete(server, FAR_HOME)
    proxy.slowDown(0)
    // The command line moves it back beside the server, which is an event of the operator like the first move.
    const { json } = await runAtoll(`tenant move acme --to ${HOME} --json`, { ...at, timeout: 60_000 })
    expect(json).toMatchObject({ from: FAR_HOME, to: HOME })
    const { body: events } = await callOperator(server)('GET', '/operator/events?tenant=acme&limit=2')
    expect(events).toMatchObject([
      { eventName: 'tenant-moved', metadata: { from: FAR_HOME, to: HOME } },
      { eventName: 'tenant-moved', metadata: { from: HOME, to: FAR_HOME } },
    ])
    await expectComplete(server, HOME)
    await server.end('SIGTERM')
  })

  test('it abandons a longer one: the tenant stays where it was, the task says so, and another move finishes it', async () => {
    proxy.slowDown(150)
    const { code, task, server } = await stopDuringMove(FAR_HOME)
    expect(task).toMatchObject({ status: 'failed', result: null, problem: { code: 'SERVER_STOPPED' } })
    expect(code).toBe(0)
    await expectComplete(server, HOME)
    proxy.slowDown(0)
    const moved = await callOperator(server)('POST', '/operator/tenants/acme/move', { to: FAR_HOME })
    expect([moved.status, moved.body.status]).toEqual([200, 'succeeded'])
    await expectComplete(server, FAR_HOME)
    await server.end('SIGTERM')
  })
})
