import { afterAll, beforeAll, beforeEach, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { tenantMigrations } from '../../migrations'
import { addBucket } from '../../src/tenancy/buckets'
import { databases, tenantFolder } from '../../src/tenancy/databases'
import { moveTenant } from '../../src/tenancy/move'
import { registry } from '../../src/tenancy/registry'
import { getTenantInfo } from '../../src/tenancy/tenant-list'
import { deleteTenant } from '../../src/tenancy/tenants'
import { binaryPath } from '../fakes/binary'
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
import { queryDatabase } from '../fakes/postgres'
import { errorOf } from '../rejections'
import { databaseUrl, postgres } from '../storage/engines'
import { createTestTenant, fullAccessRules } from '../test-tenant'

setDefaultTimeout(120_000)

const ignoreProgress = () => {}
const fields = [
  { key: 'name', type: 'string', required: true },
  { key: 'n', type: 'integer' },
  { key: 'price', type: 'decimal' },
  { key: 'tags', type: 'string', multi: true },
  { key: 'place', type: 'object' },
]
const blueprint = (key: string) => ({ key, name: key, fields, permissions: fullAccessRules('tenant', 'user') })
const entityInput = (n: number) => ({
  name: `thing ${n % 7} 🏝 ö`,
  n: n % 2 ? n : -n,
  price: `${n}.${n}`,
  tags: ['one', 'two', `t${n % 5}`].slice(0, n % 4),
  place: { b: n, a: { z: [1, null, 'x'] } },
})

describe.skipIf(!databaseUrl)('moveTenant', () => {
  // Servers that tests of other files killed count as alive for a while.
  beforeEach(() => registry.write(({ query }) => query('delete from servers')))

  test('moveTenant keeps all answers of a tenant from bucket to bucket, to a file and back, and it stays writable', async () => {
    const t = await createTestTenant()
    const admin = t.as('admin')
    const signUp = { username: 'zoe', password: 'correct horse', email: `zoe@${t.id}.test` }
    expect((await t.anonymous.post('/signup', signUp)).status).toBe(201)
    const signIn = async () => (await t.anonymous.post('/signin', { ...signUp, authType: 'oauth' })).body.payload
    const session = await signIn()
    const zoe = t.anonymous.with({ authorization: `Bearer ${session.token}` })
    expect((await admin.post('/blueprints', blueprint('things'))).status).toBe(201)
    for (let n = 0; n < 300; n++)
      expect((await admin.post('/blueprints/things/entities', entityInput(n))).status).toBe(201)

    const paths = [
      '/me',
      '/blueprints',
      '/blueprints/things/entities?$limit=1000',
      '/blueprints/things/entities?$page=3',
    ]
    const queries = ['n[$lt]=-50&$sort=n', 'price[$gte]=99.5', 'tags=t3&$sort=-price', 'name=thing 3 🏝 ö&$select=n']
    for (const query of queries) paths.push(`/blueprints/things/entities?${encodeURI(query)}`)
    const answers = async () => {
      const bodies: unknown[] = []
      for (const path of paths) for (const client of [admin, zoe]) bodies.push((await client.get(path)).body)
      return bodies
    }
    const { home: otherBucket } = await addBucket()
    let acknowledgedIds = 300
    for (const to of [otherBucket, 'sqlite', otherBucket]) {
      const before = await answers()
      const { home: from = 'sqlite' } = await getTenantInfo(t.id)
      const { rows, waited, trash, ...move } = await moveTenant(t.id, to, ignoreProgress)
      expect([move.from, move.to]).toEqual([from, to])
      expect(rows).toBeGreaterThan(1_500)
      expect(waited).toBeLessThan(1_000 + 4_000) // a busy machine takes its time
      expect(existsSync(tenantFolder(t.id))).toBe(to === 'sqlite')
      expect(!!trash).toBe(from === 'sqlite')
      expect((await getTenantInfo(t.id)).home).toBe(move.to === 'sqlite' ? undefined : move.to)

      expect(await answers()).toEqual(before)
      expect((await signIn()).token).toBeString()
      expect((await admin.post('/blueprints', blueprint(`more-${acknowledgedIds}`))).status).toBe(201)
      expect(
        (await admin.post(`/blueprints/more-${acknowledgedIds}/entities`, entityInput(acknowledgedIds))).status,
      ).toBe(201)
      expect((await admin.post('/blueprints/things/entities', entityInput(acknowledgedIds++))).status).toBe(201)
      expect((await admin.get(`/blueprints/more-${acknowledgedIds - 1}/entities?n[$lte]=1000000`)).body).toHaveLength(1)
    }
    const list = (await admin.get('/blueprints/things/entities?$limit=1000')).body
    expect(list).toHaveLength(acknowledgedIds)
    expect((await admin.delete(`/blueprints/things/entities/${list[0]._id}`)).status).toBe(200)
  })

  test('moveTenant to the current home moves no rows and returns the same home', async () => {
    const { id } = await createTestTenant()
    const { home } = await getTenantInfo(id)
    for (const to of ['postgres', home!])
      expect(await moveTenant(id, to, ignoreProgress)).toMatchObject({ from: home, to: home, rows: 0, waited: 0 })
  })

  test('moveTenant refuses an unknown tenant or bucket with 404 and a concurrent move with 409 TENANT_MOVING', async () => {
    const { id, as } = await createTestTenant()
    const tryMove = (who: string, to: string) =>
      moveTenant(who, to, ignoreProgress).catch(({ status, code }) => [status, code])
    expect(await tryMove('nobody', 'sqlite')).toEqual([404, 'TENANT_NOT_FOUND'])
    for (const to of ['', 'main', 'main/atoll_registry', 'main/none', 'far/atoll_b0001'])
      expect(await tryMove(id, to), to).toEqual([404, 'BUCKET_NOT_FOUND'])
    const both = await Promise.all([tryMove(id, 'sqlite'), tryMove(id, 'sqlite')])
    expect(both).toContainEqual([409, 'TENANT_MOVING'])
    expect(both).toContainEqual(expect.objectContaining({ to: 'sqlite' }))
    expect((await as('admin').get('/me')).status).toBe(200)
  })

  test('`atoll tenant move` to a bucket with a newer schema fails with DATABASE_TOO_NEW', async () => {
    const { id, as } = await createTestTenant()
    const { home } = await addBucket()
    const newer = { ...tenantMigrations, postgres: [...tenantMigrations.postgres, 'select 1'] }
    const [, bucket = ''] = home.split('/')
    const engine = postgres()
    await (await engine.open({ tenant: 'x', file: '', identity: crypto.randomUUID(), bucket }, newer)).close()
    await engine.close()
    // This process has cached the schema of the bucket; another one reads it.
    const env = { ATOLL_DATABASE_URL: databaseUrl! }
    const { code, err } = await runAtoll(`tenant move ${id} --to ${home} --json`, { at: createTempFolder(), env })
    expect([code, JSON.parse(err).code]).toEqual([1, 'DATABASE_TOO_NEW'])
    expect((await as('admin').get('/me')).status).toBe(200)
    await queryDatabase(databaseUrl!, `comment on schema ${bucket} is '${tenantMigrations.postgres.length}'`)
  })

  test('a stale store of a moved tenant gets 503 BUSY, and 404 TENANT_NOT_FOUND once the tenant is deleted', async () => {
    const { id, tenant, as } = await createTestTenant()
    const write = () => tenant.write((tx) => tx.query("delete from versions where topic = 'none'"))
    await write()
    await moveTenant(id, 'sqlite', ignoreProgress)
    expect(await errorOf(write())).toMatchObject({ status: 503, code: 'BUSY' })
    expect((await as('admin').get('/me')).status).toBe(200)
    const { write: toFile } = await (await import('../../src/tenancy/tenants')).getTenant(id)
    await moveTenant(id, 'postgres', ignoreProgress)
    const busy = { status: 503, code: 'BUSY' }
    expect(await errorOf(toFile((tx) => tx.query('delete from versions')))).toMatchObject(busy)
    await deleteTenant(id)
    expect(await errorOf(write())).toMatchObject({ status: 404, code: 'TENANT_NOT_FOUND' })
  })

  test('a store of a tenant reads at its new home after the tenant was moved and its old home was closed', async () => {
    const { id, tenant } = await createTestTenant()
    const { getTenant } = await import('../../src/tenancy/tenants')
    const readTopics = (db: typeof tenant.db) => db.query("select topic from versions where topic like 'moved %'")
    let before = await getTenant(id)
    for (const to of ['sqlite', 'postgres', 'sqlite']) {
      await moveTenant(id, to, ignoreProgress)
      const after = await getTenant(id) // closes the old home
      await after.write((tx) =>
        tx.query('insert into versions (topic, version) values (?, 1)', [`moved ${to} ${Bun.nanoseconds()}`]),
      )
      expect(await readTopics(before.db)).toEqual(await readTopics(after.db))
      before = after
    }
    expect(await readTopics(tenant.db)).toHaveLength(3)
    await deleteTenant(id)
    expect(await errorOf(readTopics(before.db))).toMatchObject({ status: 404, code: 'TENANT_NOT_FOUND' })
  })

  test('moveTenant refuses a tenant that changes faster than it is copied with 503 TENANT_TOO_BUSY', async () => {
    const { id, as } = await createTestTenant()
    await moveTenant(id, 'sqlite', ignoreProgress)
    const tenant = await (await import('../../src/tenancy/tenants')).getTenant(id)
    const topics = Array.from({ length: 20_000 }, (_, n) => [`topic ${n}`, 1])
    await tenant.write((tx) => tx.executeMany('insert into versions (topic, version) values (?, ?)', topics))
    let running = true
    const changing = (async () => {
      for (; running; await Bun.sleep(5))
        await tenant
          .write((tx) => tx.query("update versions set version = version + 1 where topic >= 'topic'"))
          .catch((error) => expect(error).toMatchObject({ code: 'BUSY' }))
    })()
    // `expect(…).rejects` may wait without giving the writer its turns.
    const moved = await moveTenant(id, 'postgres', ignoreProgress).catch((error) => error)
    expect(moved).toMatchObject({ status: 503, code: 'TENANT_TOO_BUSY' })
    running = false
    await changing
    expect((await as('admin').get('/me')).status).toBe(200)
    expect((await getTenantInfo(id)).home).toBeUndefined()
    expect((await moveTenant(id, 'postgres', ignoreProgress)).from).toBe('sqlite')
  }, 150_000)

  test('a move that was interrupted before its last step is finished by the next write', async () => {
    const { id, as, tenant } = await createTestTenant()
    const { uid, home } = tenant as unknown as { uid: string; home: string }
    const [cluster, bucket] = home.split('/')
    const at = { tenant: id, file: `${id}/data.db`, identity: uid }
    // The steps of a move up to its mark in the source.
    const [source, target] = [
      await databases.openTenantCopy({ ...at, cluster, bucket }, tenantMigrations),
      await databases.openTenantCopy(at, tenantMigrations),
    ]
    const { LiveCopy } = await import('../../src/storage/live-copy')
    await new LiveCopy(source, target).copyAll()
    await source.runExclusive(({ markMoved }) => markMoved(''))
    await Promise.all([source.close(), target.close()])
    expect((await as('admin').post('/blueprints', blueprint('things'))).status).toBe(503)
    expect((await as('admin').post('/blueprints', blueprint('things'))).status).toBe(201)
    expect((await getTenantInfo(id)).home).toBeUndefined()
  })
})

describe.skipIf(!databaseUrl)('`atoll tenant move` beside a running server', () => {
  let at: RunOptions
  let server: RunningAtoll
  let headers: Record<string, string>
  const acknowledgedIds = new Set<string>()
  const statuses = new Map<number, number>()
  let [n, slowest] = [0, 0]

  beforeAll(async () => {
    const name = () => `moves_${crypto.randomUUID().replaceAll('-', '')}`
    const [main, far] = [name(), name()]
    const url = (database: string) => Object.assign(new URL(databaseUrl!), { pathname: `/${database}` }).href
    for (const database of [main, far]) await queryDatabase(databaseUrl!, `create database ${database}`)
    at = { at: createTempFolder(), env: { ATOLL_DATABASE_URL: url(main), ATOLL_DATABASE_CLUSTERS: `far=${url(far)}` } }
    await createTenantByCli(at, 'acme')
    expect((await runAtoll('postgres bucket add far', at)).code).toBe(0)
    server = await startAtoll(at)
    headers = await signIn(server.url, 'acme')
    const created = await apiCaller(server.url, headers)('POST', '/api/blueprints', blueprint('things'))
    expect(created.status).toBe(201)
  })
  afterAll(() => server?.end('SIGKILL'))

  /** Writes and reads concurrently while the work runs. */
  async function withLoad<T>(work: () => Promise<T>): Promise<T> {
    const call = apiCaller(server.url, headers)
    let running = true
    const writer = async () => {
      while (running) {
        const began = performance.now()
        const { status, body } = await call('POST', '/api/blueprints/things/entities', entityInput(n++))
        slowest = Math.max(slowest, performance.now() - began)
        statuses.set(status, (statuses.get(status) ?? 0) + 1)
        if (status === 201) acknowledgedIds.add(body._id)
        await Bun.sleep(40)
      }
    }
    const reader = async () => {
      while (running) {
        const { status, body } = await call('GET', '/api/blueprints/things/entities?n=1')
        expect([status, body]).toEqual([200, expect.any(Array)])
        await Bun.sleep(50)
      }
    }
    const callers = [...Array.from({ length: 6 }, writer), reader()]
    try {
      return await work()
    } finally {
      running = false
      await Promise.all(callers)
    }
  }

  /** Lists the ids of all entities page by page. */
  async function listStoredIds() {
    const ids = new Set<string>()
    for (let page = 1; ; page++) {
      const path = `/api/blueprints/things/entities?$limit=1000&$page=${page}&$sort=created`
      const { status, body } = await apiCaller(server.url, headers)('GET', path)
      expect(status).toBe(200)
      for (const { _id } of body) ids.add(_id)
      if (body.length < 1000) return ids
    }
  }
  const findLostIds = async () => {
    const ids = await listStoredIds()
    return [...acknowledgedIds].filter((id) => !ids.has(id))
  }

  test('moves under load lose no acknowledged write, answer writes with 201 or 503, and delay none by 5 seconds', async () => {
    for (const to of ['far/atoll_b0001', 'sqlite', 'main/atoll_b0001']) {
      const { code, json, err } = await withLoad(() => runAtoll(`tenant move acme --to ${to} --json`, at))
      expect([code, err, json.to]).toEqual([0, '', to])
      expect(await findLostIds()).toEqual([])
    }
    expect([...statuses.keys()].filter((status) => ![201, 503].includes(status))).toEqual([])
    expect(slowest).toBeLessThan(5_000)
    expect(acknowledgedIds.size).toBeGreaterThan(200)
  })

  test('a killed `atoll tenant move` leaves the tenant complete in one place, and the next move succeeds', async () => {
    const env = { PATH: process.env.PATH ?? '', ...at.env, ATOLL_DURABILITY: 'normal' }
    await withLoad(async () => {
      // While it copies; while it applies changes or blocks writes; and after the old home is marked, but not the registry.
      const moments: [string, RegExp, number][] = [
        ['sqlite', /^/, 1_000],
        ['far/atoll_b0001', /Copied/, 300],
        ['sqlite', /Writes waited/, 0],
        ['far/atoll_b0001', /Writes waited/, 0],
        ['main/atoll_b0001', /Writes waited/, 5],
      ]
      for (const [to, moment, later] of moments) {
        const child = Bun.spawn([binaryPath(), 'tenant', 'move', 'acme', '--to', to], {
          cwd: at.at,
          env,
          stderr: 'pipe',
          stdout: 'ignore',
        })
        for await (const line of child.stderr.pipeThrough(new TextDecoderStream())) if (moment.test(line)) break
        await Bun.sleep(Math.random() * later)
        child.kill('SIGKILL')
        await child.exited
        await Bun.sleep(200)
      }
    })
    expect(await findLostIds()).toEqual([])
    const to = 'main/atoll_b0001'
    const { code, json, err } = await withLoad(() => runAtoll(`tenant move acme --to ${to} --json`, at))
    expect([code, err, json.to]).toEqual([0, '', to])
    expect(await findLostIds()).toEqual([])
    expect([...statuses.keys()].filter((status) => ![201, 503].includes(status))).toEqual([])
    expect(slowest).toBeLessThan(5_000)
    expect(readdirSync(join(at.at, 'tenants'))).not.toContain('acme')
    // Writes that were answered 503 were not stored.
    expect((await listStoredIds()).size).toBe(acknowledgedIds.size)
  })

  test('`postgres purge` removes exactly the rows of moved and deleted tenants once they are old enough', async () => {
    const { uid } = (
      await queryDatabase(at.env!.ATOLL_DATABASE_URL!, "select uid from atoll_registry.tenants where id = 'acme'")
    )[0]
    const far = (sql: string) => queryDatabase(at.env!.ATOLL_DATABASE_CLUSTERS!.slice('far='.length), sql)
    const countRemainingRows = async () =>
      (await far(`select from atoll_b0001.entities where tenant_id = '${uid}'`)).length
    await createTenantByCli(at, 'deleted') // in the emptiest bucket
    await runAtoll('tenant delete deleted --yes', at)
    expect(await countRemainingRows()).toBeGreaterThan(0)
    expect((await runAtoll('postgres purge --yes --json', at)).json).toEqual([]) // not that soon
    expect((await runAtoll('postgres purge --hours 0 --yes --json', at)).json).toEqual([
      { home: 'far/atoll_b0001', tenants: 2, rows: expect.any(Number) },
    ])
    expect(await countRemainingRows()).toBe(0)
    expect((await listStoredIds()).size).toBe(acknowledgedIds.size)
    expect((await runAtoll('postgres purge --hours 0 --yes --json', at)).json).toEqual([])
  })

  test('moves under continuous creates, updates and deletes keep the acknowledged state, and reads never fail', async () => {
    const call = apiCaller(server.url, headers)
    expect((await call('POST', '/api/blueprints', blueprint('busy'))).status).toBe(201)
    const path = '/api/blueprints/busy/entities'
    const operations = Array.from({ length: 500 }, (_, n) => ({ op: 'create', data: entityInput(n) }))
    expect((await call('POST', `${path}/batch`, { operations })).status).toBe(200)
    const list = async () =>
      (await call('GET', `${path}?$limit=1000&$sort=created`)).body as { _id: string; n: number }[]
    const expected = new Map((await list()).map(({ _id, n }) => [_id, Math.abs(n)]))
    expect(expected.size).toBe(500)
    const seen = new Set<number>()
    let [running, value, written] = [true, 1_000, 0]
    /** Creates, updates and removes entities in turn. */
    const writer = async (own: string[]) => {
      for (let turn = 0; running; turn++) {
        const [id, n] = [own.at(turn % own.length)!, ++value]
        const does = (['POST', 'PUT', 'DELETE'] as const)[turn % 3]!
        const at = does === 'POST' ? path : `${path}/${id}`
        const { status, body } = await call(does, at, does === 'DELETE' ? undefined : entityInput(n))
        seen.add(status)
        if (status > 201) continue
        written++
        if (does === 'DELETE') own.splice(own.indexOf(id), 1)
        else if (does === 'POST') own.push(body._id)
        if (does === 'DELETE') expected.delete(id)
        else expected.set(does === 'POST' ? body._id : id, n)
      }
    }
    const reader = async () => {
      for (; running; await Bun.sleep(20)) {
        const { status, body } = await call('GET', `${path}?$limit=5`)
        expect([status, body]).toEqual([200, expect.any(Array)])
      }
    }
    for (const to of ['sqlite', 'far/atoll_b0001', 'main/atoll_b0001']) {
      ;[running, written] = [true, 0]
      const ids = [...expected.keys()]
      const shares = [0, 1, 2, 3].map((share) => ids.filter((_, place) => place % 4 === share))
      const busy = [...shares.map(writer), reader()]
      const moved = await runAtoll(`tenant move acme --to ${to} --json`, { ...at, timeout: 50_000 })
      running = false
      await Promise.all(busy)
      expect([moved.code, moved.err, moved.json?.to]).toEqual([0, '', to])
      expect(written).toBeGreaterThan(10)
      const found = (await list()).map(({ _id, n }) => [_id, Math.abs(n)] as const)
      expect(found.length).toBe(expected.size)
      expect(Object.fromEntries(found)).toEqual(Object.fromEntries(expected))
    }
    expect([...seen].filter((status) => ![200, 201, 503].includes(status))).toEqual([])
  }, 150_000)

  test('`postgres move` refuses a database without Citus, an unknown bucket and an invalid node', async () => {
    const code = async (args: string) => JSON.parse((await runAtoll(`postgres move ${args} --json`, at)).err).code
    expect(await code('main/atoll_b0001 127.0.0.1:5432')).toBe('NO_CITUS')
    expect(await code('main/none 127.0.0.1:5432')).toBe('BUCKET_NOT_FOUND')
    expect(await code('main/atoll_b0001 nowhere')).toBe('INVALID_INPUT')
  })
})
