import { expect, setDefaultTimeout, test } from 'bun:test'
import { apiCaller, createTempFolder, createTenantByCli, type RunningAtoll, signIn, startAtoll } from '../../fakes/cli'
import { databaseUrl } from '../../storage/engines'
import { waitUntil } from '../../wait-until'

setDefaultTimeout(180_000)

const ROUNDS = databaseUrl ? 3 : 8
const ENTITY_COUNT = 100
const BLUEPRINT_PATH = '/api/blueprints/things'
const path = `${BLUEPRINT_PATH}/entities`

type Call = ReturnType<typeof apiCaller>
type Field = { key: string; type: string; required?: boolean; default?: unknown; renamedFrom?: string }
const toShape = (fields: Field[]) => fields.map(({ key, type, required = false }) => ({ key, type, required }))

const TITLE = { key: 'title', type: 'string' }
const SIZE = { key: 'size', type: 'string' }
const STATE = { key: 'state', type: 'string', required: true, default: 'new' }

/** What a design becomes, one change after the other: a field is renamed, retyped, added as required, and removed. */
const DESIGNS: Record<string, Field[]> = {
  'renames a field': [{ key: 'name', type: 'string', renamedFrom: 'title' }, SIZE],
  'retypes a field': [
    { key: 'name', type: 'string' },
    { key: 'size', type: 'decimal' },
  ],
  'adds a required field with a default': [{ key: 'name', type: 'string' }, { key: 'size', type: 'decimal' }, STATE],
  'removes a field': [{ key: 'name', type: 'string' }, STATE],
  'goes back': [{ ...TITLE, renamedFrom: 'name' }, SIZE],
}

/** Starts a server, and on PostgreSQL a second one, for a tenant with entities, which everybody reads and writes. */
async function startBusyServers() {
  const env = { ATOLL_DURABILITY: 'full', ...(databaseUrl && { ATOLL_DATABASE_URL: databaseUrl }) }
  const [at, tenant] = [{ at: createTempFolder(), env }, `t${crypto.randomUUID()}`]
  await createTenantByCli(at, tenant)
  await using stack = new AsyncDisposableStack()
  const servers: RunningAtoll[] = []
  for (const place of databaseUrl ? [at, { at: createTempFolder(), env }] : [at]) {
    const server = await startAtoll(place)
    // A server that ends in order is no longer one of those that share the database.
    stack.defer(async () => void (await server.end('SIGTERM')))
    servers.push(server)
  }
  const headers = await signIn(servers[0]!.url, tenant)
  const calls = servers.map(({ url }) => apiCaller(url, headers))
  await createThings(calls[0]!, [TITLE, SIZE])
  let isOver = false
  const failures: unknown[] = []
  const repeat = async (send: () => ReturnType<Call>) => {
    while (!isOver) {
      const { status, body } = await send()
      // A busy server asks to try again.
      if (status >= 500 && status !== 503) failures.push(body)
    }
  }
  const load = calls.flatMap((call) => [
    ...Array.from({ length: 2 }, () => repeat(() => call('GET', BLUEPRINT_PATH))),
    repeat(() => call('GET', `${path}?$limit=5`)),
    repeat(() => call('POST', path, {})),
  ])
  const owned = stack.move()
  const endLoad = async () => {
    isOver = true
    await Promise.all(load)
    return failures
  }
  return {
    calls,
    endLoad,
    [Symbol.asyncDispose]: async () => {
      await endLoad()
      await owned.disposeAsync()
    },
  }
}

async function createThings(call: Call, fields: Field[]) {
  const { status } = await call('POST', '/api/blueprints', { key: 'things', name: 'Things', fields })
  expect(status).toBe(201)
  const operations = Array.from({ length: ENTITY_COUNT }, (_, n) => ({
    op: 'create',
    data: { identifier: `i${n}`, title: `t${n}`, size: `${n}` },
  }))
  expect((await call('POST', `${path}/batch`, { operations })).status).toBe(200)
}

/** Expects that everything that this server answers from now on has these fields. */
async function expectFields(call: Call, fields: Field[]) {
  expect(toShape((await call('GET', BLUEPRINT_PATH)).body.fields)).toEqual(toShape(fields))
  const values = Object.fromEntries(fields.map(({ key }) => [key, '7']))
  const { status, body } = await call('POST', path, values)
  expect([status, body]).toEqual([201, expect.objectContaining(values)])
  const [{ key }] = fields as [Field]
  expect((await call('GET', `${path}?${key}=t7`)).body).toEqual([
    expect.objectContaining({ identifier: 'i7', [key]: 't7' }),
  ])
}

/** Other servers see it within a second. */
const expectFieldsElsewhere = async (call: Call, fields: Field[]) => {
  await waitUntil(
    async () => toShape((await call('GET', BLUEPRINT_PATH)).body.fields ?? []),
    (shape) => Bun.deepEquals(shape, toShape(fields)),
  )
  await expectFields(call, fields)
}

test('each change of a blueprint is answered with the new fields, which every later answer has, while others read and write', async () => {
  await using servers = await startBusyServers()
  const { calls } = servers
  for (let round = 0; round < ROUNDS; round++)
    for (const [n, [what, fields]] of Object.entries(DESIGNS).entries()) {
      const changing = calls[(round + n) % calls.length]!
      const { status, body } = await waitUntil(
        () => changing('PUT', BLUEPRINT_PATH, { fields }),
        ({ status }) => status !== 503,
      )
      expect([what, status, toShape(body.fields ?? [])]).toEqual([what, 200, toShape(fields)])
      await expectFields(changing, fields)
      for (const other of calls) if (other !== changing) await expectFieldsElsewhere(other, fields)
    }
  expect(await servers.endLoad()).toEqual([])
})

test('a push, a forced removal and a history are in force when they are answered, while others read and write', async () => {
  await using servers = await startBusyServers()
  const { calls } = servers
  for (let round = 0; round < ROUNDS; round++) {
    const call = calls[round % calls.length]!
    for (const [what, fields] of Object.entries(DESIGNS)) {
      const files = { 'blueprints/things.json': JSON.stringify({ name: 'Things', fields }) }
      const { status, body } = await call('POST', '/api/definitions/push', { files })
      expect([what, status, body.remaining]).toEqual([what, 200, 0])
      await expectFields(call, fields)
    }
    const kept = await call('PUT', BLUEPRINT_PATH, { history: true })
    expect([kept.status, kept.body.history]).toEqual([200, true])
    expect((await call('PUT', `${path}/i0`, { title: `round ${round}` })).status).toBe(200)
    expect((await call('GET', `${path}/i0/history`)).body[0]).toMatchObject({ action: 'change' })
    const renamed = DESIGNS['renames a field']!
    expect((await call('PUT', BLUEPRINT_PATH, { fields: renamed })).status).toBe(200)
    const [version] = (await call('GET', `${path}/i0/history?$entity=true`)).body
    expect(version.entity).toMatchObject({ name: `round ${round}` })
    expect((await call('POST', `${path}/i0/history/1/restore`)).body).toMatchObject({ name: expect.any(String) })
    const off = await call('PUT', BLUEPRINT_PATH, { history: false })
    expect([off.status, off.body.history]).toEqual([200, undefined])
    expect((await call('GET', `${path}/i0/history`)).body.code).toBe('HISTORY_OFF')
    expect((await call('DELETE', `${BLUEPRINT_PATH}?force=true`)).status).toBe(200)
    expect((await call('GET', BLUEPRINT_PATH)).status).toBe(404)
    expect((await call('GET', path)).status).toBe(404)
    await createThings(call, [TITLE, SIZE])
    expect(toShape((await call('GET', BLUEPRINT_PATH)).body.fields)).toEqual(toShape([TITLE, SIZE]))
  }
  expect(await servers.endLoad()).toEqual([])
})
