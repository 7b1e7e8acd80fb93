import { afterAll, afterEach, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { eq } from 'drizzle-orm'
import { config } from '../../src/config'
import { DAY_MS } from '../../src/core/clock'
import { assertUndisturbed } from '../../src/operations/tasks/conflict'
import { registry } from '../../src/tenancy/registry'
import { operatorTasks } from '../../src/tenancy/tables'
import { getTenant } from '../../src/tenancy/tenants'
import { advanceClock, resetClock } from '../accounts/session-fixtures'
import { ID, TIME } from '../expectations'
import { callApi, createTestTenant, fullAccessRules, statusAndCode } from '../test-tenant'
import { waitUntil } from '../wait-until'

setDefaultTimeout(60_000)

const TOKEN = 'the-operator-token-of-the-tasks'
const isOnPostgres = !!config.ATOLL_DATABASE_URL

const operator = (method: string, path: string, body?: unknown, authorization = `Bearer ${TOKEN}`) =>
  callApi(method, `http://localhost/operator${path}`, { headers: { authorization }, body })
const move = (id: string, to: unknown) => operator('POST', `/tenants/${id}/move`, { to })

beforeAll(() => {
  config.ATOLL_OPERATOR_TOKEN = TOKEN
})
afterEach(resetClock)
afterAll(() => {
  config.ATOLL_OPERATOR_TOKEN = ''
})

const SILENT_TASK = { kind: 'move', tenant: 'acme', status: 'running', input: { to: 'sqlite' } } as const

/** Records a task whose server was killed. */
async function recordSilentTask(created = new Date().toISOString()) {
  const task = { ...SILENT_TASK, _id: Bun.randomUUIDv7(), tenant: `t${crypto.randomUUID()}`, created, updated: created }
  await registry.write((tx) => tx.insert(operatorTasks).values(task))
  return task
}

describe('tasks of the operator', () => {
  test('a move to the home where the tenant is succeeds at once, and is found by its id, its tenant and its kind', async () => {
    const { id } = await createTestTenant()
    const to = isOnPostgres ? 'postgres' : 'sqlite'
    const moved = await move(id, to)
    const { home = 'sqlite' } = (await operator('GET', `/tenants/${id}`)).body
    expect(moved.status).toBe(200)
    expect(moved.body).toEqual({
      ...{ _id: ID, kind: 'move', tenant: id, status: 'succeeded', input: { to }, problem: null, progress: null },
      ...{ created: TIME, updated: TIME, finished: TIME },
      result: { id, from: home, to: home, rows: 0, waited: 0, ms: expect.any(Number) },
    })
    expect((await operator('GET', `/tasks/${moved.body._id}`)).body).toEqual(moved.body)
    expect((await operator('GET', `/tasks?tenant=${id}`)).body).toEqual([moved.body])
    expect((await operator('GET', `/tasks?tenant=${id}&kind=backup`)).body).toEqual([])
    expect((await operator('GET', '/tasks?kind=move&limit=1')).body).toEqual([moved.body])
    // Nothing was moved.
    const events = (await operator('GET', `/events?tenant=${id}`)).body
    expect(events.map(({ eventName }: { eventName: string }) => eventName)).not.toContain('tenant-moved')
  })

  test('the list continues after its last task, and counts', async () => {
    const { id } = await createTestTenant()
    const to = isOnPostgres ? 'postgres' : 'sqlite'
    for (let n = 0; n < 3; n++) await move(id, to)
    const first = await operator('GET', `/tasks?tenant=${id}&limit=2&count=true`)
    expect(first.headers.get('x-total-count')).toBe('3')
    const [, next = ''] = /<\/operator(.+)>; rel="next"/.exec(first.headers.get('link') ?? '') ?? []
    const second = await operator('GET', next)
    const created = [...first.body, ...second.body].map(({ created }: { created: string }) => created)
    expect(created).toHaveLength(3)
    expect(created).toEqual(created.toSorted().reverse())
  })

  test('a move is refused for an unknown tenant, an unknown bucket or an empty home, and nothing is recorded', async () => {
    const { id } = await createTestTenant()
    expect(statusAndCode(await move('nobody', 'sqlite'))).toEqual([404, 'TENANT_NOT_FOUND'])
    const refused = isOnPostgres ? [404, 'BUCKET_NOT_FOUND'] : [400, 'NO_DATABASE']
    expect(statusAndCode(await move(id, 'main/none'))).toEqual(refused)
    for (const to of ['', undefined, 7]) expect(statusAndCode(await move(id, to))).toEqual([400, 'INVALID_INPUT'])
    expect((await operator('GET', `/tasks?tenant=${id}`)).body).toEqual([])
    expect(statusAndCode(await operator('GET', '/tasks/none'))).toEqual([404, 'TASK_NOT_FOUND'])
  })

  test('a running task without a sign of life for 30 seconds reads as interrupted, and says how it is finished', async () => {
    const { _id } = await recordSilentTask()
    const path = `/tasks/${_id}`
    expect((await operator('GET', path)).body).toMatchObject({ status: 'running', problem: null, finished: null })
    advanceClock(31_000)
    const { body } = await operator('GET', path)
    expect(body).toMatchObject({ status: 'interrupted', problem: { code: 'SERVER_STOPPED' } })
    expect(body.problem.message).toContain('Start the move again')
  })

  test('tasks that are older than events are kept are removed when another one begins', async () => {
    const old = await recordSilentTask(
      new Date(Date.now() - config.ATOLL_EVENT_RETENTION * DAY_MS - 1_000).toISOString(),
    )
    const recent = await recordSilentTask()
    const { id } = await createTestTenant()
    await move(id, isOnPostgres ? 'postgres' : 'sqlite')
    const count = (_id: string) => registry.db.$count(operatorTasks, eq(operatorTasks._id, _id))
    expect([await count(old._id), await count(recent._id)]).toEqual([0, 1])
  })

  describe('beside a task of another server', () => {
    const KINDS = ['move', 'backup', 'restore', 'clone'] as const
    /** Whether a task of the second kind is refused for the tenant of a running one of the first kind. */
    const REFUSED: Record<(typeof KINDS)[number], (typeof KINDS)[number][]> = {
      move: ['move', 'backup', 'restore', 'clone'],
      backup: ['move', 'backup', 'restore'],
      restore: ['move', 'backup', 'restore', 'clone'],
      clone: ['move', 'restore'],
    }
    const newTenant = () => `t${crypto.randomUUID()}`
    const inputOf = { move: { to: 'sqlite' }, backup: {}, restore: { backup: 'none' }, clone: { as: newTenant() } }
    const record = async (kind: string, tenant: string, input: object) => {
      const [_id, created] = [Bun.randomUUIDv7(), new Date().toISOString()]
      const task = { _id, kind, tenant, status: 'running', input: { ...input }, created, updated: created } as const
      await registry.write((tx) => tx.insert(operatorTasks).values(task))
      return _id
    }
    const begin = (kind: (typeof KINDS)[number], tenant: string, input: object = inputOf[kind]) =>
      registry.write(async (tx) =>
        assertUndisturbed(
          { _id: '', kind, tenant, input: { ...input } },
          await tx.select().from(operatorTasks).where(eq(operatorTasks.tenant, tenant)),
        ),
      )

    test('each kind of task is refused for the same tenant where one would disturb the other, and never for another', async () => {
      for (const running of KINDS) {
        const tenant = newTenant()
        await record(running, tenant, inputOf[running])
        for (const kind of KINDS) {
          const input = kind === 'clone' ? { as: newTenant() } : inputOf[kind]
          const outcome = await begin(kind, tenant, input).then(
            () => 'begun',
            ({ code }) => code,
          )
          expect([running, kind, outcome]).toEqual([
            ...[running, kind],
            REFUSED[running].includes(kind) ? 'TASK_RUNNING' : 'begun',
          ])
          await begin(kind, newTenant(), input)
        }
        await begin('restore', tenant, { backup: 'none', as: newTenant() })
      }
    })

    test('a task is refused with the running one and how to follow it, until that ends or is silent', async () => {
      const { id } = await createTestTenant()
      const to = isOnPostgres ? 'postgres' : 'sqlite'
      const task = await record('backup', id, {})
      const refused = await move(id, to)
      expect(statusAndCode(refused)).toEqual([409, 'TASK_RUNNING'])
      expect(refused.body.message).toBe(
        `A backup of the tenant "${id}" is running. Try again when it has ended: /operator/tasks/${task} tells how far it is.`,
      )
      expect(refused.body.details).toEqual({ task, kind: 'backup', tenant: id })
      expect((await operator('GET', `/tasks?tenant=${id}`)).body).toHaveLength(1)
      advanceClock(31_000)
      expect((await move(id, to)).body.status).toBe('succeeded')
      resetClock()
      await registry.write((tx) =>
        tx.update(operatorTasks).set({ status: 'succeeded' }).where(eq(operatorTasks._id, task)),
      )
      expect((await move(id, to)).body.status).toBe('succeeded')
    })

    test('one of many copies to one new tenant that begin at once runs', async () => {
      const { id } = await createTestTenant()
      const as = newTenant()
      const answers = await Promise.all(
        Array.from({ length: 5 }, () => operator('POST', `/tenants/${id}/clone`, { as })),
      )
      const refused = answers.filter(({ status }) => status === 409)
      expect(refused.map(({ body }) => body.code)).toEqual(Array(4).fill('TASK_RUNNING'))
      const [begun] = answers.filter(({ status }) => status !== 409)
      const read = () => operator('GET', `/tasks/${begun?.body._id}`)
      const ended = await waitUntil(read, ({ body }) => body.status !== 'running', 60_000)
      expect(ended.body).toMatchObject({ status: 'succeeded', result: { tenant: as } })
    })
  })

  test('only the operator token opens the homes, the tasks and the move', async () => {
    const { as, id } = await createTestTenant()
    for (const path of ['/homes', '/tasks', '/tasks/x'])
      for (const authorization of ['', 'Bearer wrong'])
        expect(statusAndCode(await operator('GET', path, undefined, authorization)), path).toEqual([
          401,
          'UNAUTHENTICATED',
        ])
    const refused = await operator('POST', `/tenants/${id}/move`, { to: 'sqlite' }, '')
    expect(statusAndCode(refused)).toEqual([401, 'UNAUTHENTICATED'])
    expect((await as('admin').get('/tasks')).status).toBe(404)
  })
})

describe('homes', () => {
  test('the homes have the number of their tenants, and say what makes moves possible where nothing can be moved', async () => {
    const { id } = await createTestTenant()
    const { body } = await operator('GET', '/homes')
    const { home } = (await operator('GET', `/tenants/${id}`)).body
    if (!isOnPostgres) {
      expect(body).toEqual({
        sqlite: { tenants: expect.any(Number), usable: false },
        postgres: { usable: false, clusters: [] },
        problem: expect.stringContaining('ATOLL_DATABASE_URL'),
      })
      expect(body.sqlite.tenants).toBeGreaterThan(0)
      return
    }
    expect(body).toMatchObject({ sqlite: { usable: true }, postgres: { usable: true }, problem: null })
    const [main] = body.postgres.clusters
    expect(main).toMatchObject({ name: 'main', usable: true, problem: null })
    const bucket = main.buckets.find((one: { home: string }) => one.home === home)
    expect(bucket.tenants).toBeGreaterThan(0)
    await move(id, 'sqlite')
    const after = (await operator('GET', '/homes')).body
    expect(after.sqlite.tenants).toBe(body.sqlite.tenants + 1)
  })
})

describe.skipIf(!isOnPostgres)('a move over HTTP', () => {
  test('a tenant with entities is moved to a file and back, its answers stay the same, and both moves are events', async () => {
    const { id, as } = await createTestTenant()
    const fields = [{ key: 'name', type: 'string' }]
    const permissions = fullAccessRules('tenant', 'user')
    await as('admin').post('/blueprints', { key: 'things', name: 'Things', fields, permissions })
    const operations = Array.from({ length: 200 }, (_, n) => ({ op: 'create', data: { name: `thing ${n}` } }))
    expect((await as('admin').post('/blueprints/things/entities/batch', { operations })).status).toBe(200)
    const list = async () => (await as('admin').get('/blueprints/things/entities?$limit=1000&$sort=_id')).body
    const before = await list()
    expect(before).toHaveLength(200)
    const { home } = (await operator('GET', `/tenants/${id}`)).body
    for (const [from, to] of [
      [home, 'sqlite'],
      ['sqlite', home],
    ]) {
      const { status, body } = await finishMove(await move(id, to))
      expect([status, body.status]).toEqual([200, 'succeeded'])
      expect(body.result).toMatchObject({ from, to })
      expect(body.result.rows).toBeGreaterThan(200)
      expect(body.progress.fraction).toBe(1)
      expect(await list()).toEqual(before)
      expect((await operator('GET', `/tenants/${id}`)).body.home).toBe(to === 'sqlite' ? undefined : to)
    }
    const { body: events } = await operator('GET', `/events?tenant=${id}&limit=2`)
    expect(events).toMatchObject([
      { eventName: 'tenant-moved', metadata: { from: 'sqlite', to: home } },
      { eventName: 'tenant-moved', metadata: { from: home, to: 'sqlite' } },
    ])
  })

  test('a move that takes long is answered with 202 and its address, shows its progress, keeps others away, and ends', async () => {
    const { id } = await createTestTenant()
    await finishMove(await move(id, 'sqlite'))
    const tenant = await getTenant(id)
    const topics = Array.from({ length: 10_000 }, (_, n) => [`topic ${n}`, 1])
    await tenant.write((tx) => tx.executeMany('insert into versions (topic, version) values (?, ?)', topics))
    let isChanging = true
    const changing = (async () => {
      for (; isChanging; await Bun.sleep(5))
        await tenant
          .write((tx) => tx.query("update versions set version = version + 1 where topic >= 'topic'"))
          .catch((error) => expect(error).toMatchObject({ code: 'BUSY' }))
    })()
    const running = await move(id, 'postgres')
    expect(running.status).toBe(202)
    expect(running.body).toMatchObject({ status: 'running', tenant: id, result: null, problem: null, finished: null })
    expect(running.body.progress.message).toEndWith('.')
    expect(running.headers.get('location')).toBe(`/operator/tasks/${running.body._id}`)
    expect(statusAndCode(await move(id, 'postgres'))).toEqual([409, 'TENANT_MOVING'])
    isChanging = false
    await changing
    const { body } = await finishMove(running)
    expect(body).toMatchObject({ status: 'succeeded', result: { from: 'sqlite' } })
    expect(Date.parse(body.finished)).toBeGreaterThan(Date.parse(body.created) + 5_000)
    expect((await operator('GET', `/tasks?tenant=${id}`)).body).toHaveLength(2)
  })

  /** Waits for the end of a move that was answered while it ran. */
  async function finishMove(answer: Awaited<ReturnType<typeof move>>) {
    if (answer.status !== 202) return answer
    const read = () => operator('GET', `/tasks/${answer.body._id}`)
    return waitUntil(read, ({ body }) => body.status !== 'running', 60_000)
  }
})
