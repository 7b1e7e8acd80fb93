import { describe, expect, test } from 'bun:test'
import type { Tx } from '../../../src/storage/port'
import { resolveTenant } from '../../../src/tenancy/tenants'
import { listEvents } from '../../accounts/users/user-fixtures'
import { callApi, fullAccessRules, statusAndCode } from '../../test-tenant'
import { createBlueprintsFixture, createThingsFixture, type Entity } from '../fixtures'
import { importBody, toNdjson } from '../transfer/import-fixtures'

const allEvents = { create: true, update: true, delete: true }
const title = { key: 'title', type: 'string' }

/** Returns a tenant with things that dispatch these changes; `entityEvents` lists their events, the oldest first. */
async function createEventsFixture(
  dispatchers: object = allEvents,
  fields: object[] = [title],
  permissions?: object[],
) {
  const own = await createThingsFixture(fields, permissions, { dispatchers })
  const entityEvents = () => listEvents(own, 'source=blueprints')
  const names = async () =>
    (await entityEvents()).map(({ eventName, metadata }) => `${eventName} ${metadata.identifier}`)
  return { ...own, user: own.as('user'), entityEvents, names }
}

/** Returns blueprints that dispatch updates and deletes; `chapters` refer to `books` with these options. */
async function createRelatedFixture(relation: object) {
  const own = await createBlueprintsFixture(
    { key: 'books', fields: [title] },
    { key: 'chapters', fields: [title, { key: 'book', type: 'relation', target: 'books', ...relation }] },
  )
  for (const key of ['books', 'chapters']) {
    const answer = await own.admin.put(`/blueprints/${key}`, { dispatchers: { update: true, delete: true } })
    expect(answer.status).toBe(200)
  }
  const entityEvents = async () =>
    (await listEvents(own, 'source=blueprints')).map(
      ({ kind, eventName, metadata }) => `${kind} ${eventName} ${metadata.identifier} ${metadata.version}`,
    )
  return { ...own, entityEvents }
}

describe('events of entities', () => {
  test('an event has the caller, identifier, version and changed fields of an entity, but no values', async () => {
    const hidden = { key: 'salary', type: 'string', readRoles: ['admin'] }
    const { user, as, path, entityEvents, users } = await createEventsFixture(allEvents, [title, hidden])
    const { body } = await user.post(path, { identifier: 'one', title: 'a secret' })
    await user.put(`${path}/one`, { title: 'another secret' })
    await as('admin').put(`${path}/one`, { salary: 'a secret' })
    await user.delete(`${path}/one`)
    const happened = (eventName: string, version: number, more: { user?: string; changed?: string[] } = {}) => ({
      ...{ source: 'blueprints', kind: 'things', eventName, user: more.user ?? users.user, workspace: null },
      metadata: {
        ...{ _id: body._id, identifier: 'one', user: users.user, workspace: null, version },
        ...(more.changed && { changed: more.changed }),
      },
    })
    const events = await entityEvents()
    expect(events).toMatchObject([
      happened('create', 1),
      happened('update', 2, { changed: ['title'] }),
      happened('update', 3, { changed: [], user: users.admin }),
      happened('delete', 3),
    ])
    // A field that not everybody may read is not named.
    expect(JSON.stringify(events)).not.toMatch(/secret|salary/)
  })

  test.each([{ create: true }, { update: true }, { delete: true }, { create: false, update: true }, {}])(
    'a blueprint with the dispatchers %j emits only events of these operations',
    async (dispatchers: { create?: boolean; update?: boolean; delete?: boolean }) => {
      const { user, path, names } = await createEventsFixture(dispatchers)
      await user.post(path, { identifier: 'one' })
      await user.put(`${path}/one`, { title: 'x' })
      await user.delete(`${path}/one`)
      const wanted = (['create', 'update', 'delete'] as const).filter((name) => dispatchers[name])
      expect(await names()).toEqual(wanted.map((name) => `${name} one`))
    },
  )

  test('changed dispatchers apply from the next write on', async () => {
    const { as, user, path, names } = await createEventsFixture({})
    await user.post(path, { identifier: 'one' })
    await as('admin').put('/blueprints/things', { dispatchers: { create: true, delete: true } })
    await user.post(path, { identifier: 'two' })
    await user.delete(`${path}/one`)
    await as('admin').put('/blueprints/things', { dispatchers: {} })
    await user.delete(`${path}/two`)
    expect(await names()).toEqual(['create two', 'delete one'])
  })

  test('an event has the active workspace of its caller, and no user for a guest', async () => {
    const everybody = ['create', 'delete'].map((operation) => ({ operation, scope: 'tenant', guest: true }))
    const { user, anonymous, path, entityEvents } = await createEventsFixture(allEvents, [title], everybody)
    const workspace = (await user.post('/workspaces', { name: 'Office' })).body._id
    await user.post(`/workspaces/${workspace}/activate`)
    await user.post(path, { identifier: 'one' })
    await anonymous.delete(`${path}/one`)
    const [made, removed] = await entityEvents()
    expect([made!.workspace, made!.metadata.workspace]).toEqual([workspace, workspace])
    expect([removed!.user, removed!.workspace, removed!.metadata.workspace]).toEqual([null, null, workspace])
  })

  test('an event of one tenant does not appear in another', async () => {
    const [first, second] = [await createEventsFixture(), await createEventsFixture()]
    await first.user.post(first.path, { identifier: 'one' })
    expect(await second.names()).toEqual([])
    expect(await first.names()).toEqual(['create one'])
  })
})

describe('events of all kinds of writes', () => {
  test('a batch emits an event for each of its operations', async () => {
    const { user, path, names } = await createEventsFixture()
    const answer = await user.post(`${path}/batch`, {
      operations: [
        { op: 'create', identifier: 'a', data: {} },
        { op: 'create', identifier: 'b', data: {} },
        { op: 'upsert', identifier: 'c', data: {} },
        { op: 'upsert', identifier: 'a', data: { title: 'x' } },
        { op: 'update', identifier: 'b', data: { title: 'x' } },
        { op: 'delete', identifier: 'a' },
        { op: 'delete', identifier: 'b' },
      ],
    })
    expect(answer.status).toBe(200)
    const [creates, rest] = [(await names()).slice(0, 3), (await names()).slice(3)]
    expect(creates.sort()).toEqual(['create a', 'create b', 'create c'])
    expect(rest.slice(0, 2).sort()).toEqual(['update a', 'update b'])
    expect(rest.slice(2).sort()).toEqual(['delete a', 'delete b'])
  })

  test('an import emits an event for each imported line, and none for a rejected one', async () => {
    const own = await createEventsFixture(allEvents, [{ ...title, unique: true }])
    const lines = toNdjson(Array.from({ length: 250 }, (_, n) => ({ identifier: `i${n}`, title: `${n % 240}` })))
    const { body } = await importBody(own)(lines)
    expect([body.imported, body.failed]).toEqual([240, 10])
    expect((await own.names()).sort()).toEqual(Array.from({ length: 240 }, (_, n) => `create i${n}`).sort())
    await importBody(own)(toNdjson([{ identifier: 'i1', title: 'new' }]), 'format=ndjson&mode=upsert')
    expect((await own.names()).at(-1)).toBe('update i1')
  })

  test('a dry run emits no events, and an undone import emits events of its reversal', async () => {
    const own = await createEventsFixture(allEvents, [{ ...title, required: true }])
    await own.user.post(own.path, { identifier: 'old', title: 'old' })
    const lines = [
      { identifier: 'old', title: 'new' },
      ...Array.from({ length: 150 }, (_, n) => ({ identifier: `i${n}`, title: 'x' })),
    ]
    await importBody(own)(toNdjson([...lines, {}]), 'format=ndjson&mode=upsert&dryRun=true')
    expect(await own.names()).toEqual(['create old'])
    const { body } = await importBody(own)(toNdjson([...lines, {}]), 'format=ndjson&mode=upsert&atomic=true')
    expect([body.imported, body.failed]).toEqual([0, 1])
    const emitted = (await own.names()).slice(1)
    const made = emitted.filter((one) => one.startsWith('create')).map((one) => one.slice(7))
    expect(made.length).toBeGreaterThan(0)
    const deleted = emitted.filter((one) => one.startsWith('delete')).map((one) => one.slice(7))
    expect(deleted.sort()).toEqual(made.sort())
    expect(emitted.filter((one) => one === 'update old')).toHaveLength(2)
    expect(await own.rows('entities')).toBe(1)
  })

  test('DELETE /all with a filter emits an event for each of 430 deleted entities', async () => {
    const { user, path, names } = await createEventsFixture({ delete: true })
    const operations = Array.from({ length: 450 }, (_, n) => ({
      op: 'create',
      identifier: `i${n}`,
      data: { title: n < 430 ? 'x' : 'y' },
    }))
    await user.post(`${path}/batch`, { operations })
    const { body } = await user.delete(`${path}/all?confirm=things&title=x`)
    expect(body.deletedCount).toBe(430)
    expect((await names()).sort()).toEqual(Array.from({ length: 430 }, (_, n) => `delete i${n}`).sort())
  })

  test('DELETE of a blueprint with force=true emits an event for each of its entities', async () => {
    const { as, user, path, names } = await createEventsFixture({ delete: true })
    for (const identifier of ['a', 'b']) await user.post(path, { identifier })
    expect((await as('admin').delete('/blueprints/things?force=true')).status).toBe(200)
    expect((await names()).sort()).toEqual(['delete a', 'delete b'])
  })

  test('a delete emits events of all entities that onDelete deletes or clears', async () => {
    const cascade = await createRelatedFixture({ onDelete: 'cascade' })
    await cascade.add('books', 'walden')
    for (const n of [1, 2]) await cascade.add('chapters', `c${n}`, { book: 'walden' })
    await cascade.add('chapters', 'other')
    await cascade.admin.delete(cascade.at('books', '/walden'))
    expect((await cascade.entityEvents()).sort()).toEqual([
      'books delete walden 1',
      'chapters delete c1 1',
      'chapters delete c2 1',
    ])

    const nullify = await createRelatedFixture({ onDelete: 'nullify' })
    await nullify.add('books', 'walden')
    for (const n of [1, 2]) await nullify.add('chapters', `c${n}`, { book: 'walden' })
    await nullify.admin.delete(nullify.at('books', '/walden'))
    expect((await nullify.entityEvents()).sort()).toEqual([
      'books delete walden 1',
      'chapters update c1 2',
      'chapters update c2 2',
    ])
    const [author] = (await listEvents(nullify, 'kind=chapters')).map(({ user }) => user)
    expect(author).toBe(nullify.users.admin)
  })
})

describe('events of committed writes', () => {
  test('a rejected write emits no events', async () => {
    const { user, as, path, names } = await createEventsFixture(
      allEvents,
      [{ ...title, unique: true }],
      fullAccessRules('user', 'user'),
    )
    await user.post(path, { identifier: 'one', title: 'x' })
    const refused = [
      await user.post(path, { identifier: 'one' }),
      await user.post(path, { title: 'x' }),
      await user.put(`${path}/one`, { nothing: 1 }),
      await as('other').delete(`${path}/one`),
      await as('editor').post(path, {}),
      await user.post(`${path}/batch`, {
        operations: [
          { op: 'create', data: {} },
          { op: 'delete', identifier: 'one' },
          { op: 'create', data: { title: 5 } },
        ],
      }),
    ]
    for (const answer of refused) expect(answer.status).toBeGreaterThanOrEqual(400)
    expect(await names()).toEqual(['create one'])
    const restricted = await createRelatedFixture({ onDelete: 'restrict' })
    await restricted.add('books', 'walden')
    await restricted.add('chapters', 'c1', { book: 'walden' })
    expect(statusAndCode(await restricted.admin.delete(restricted.at('books', '/walden')))).toEqual([
      409,
      'ENTITY_IN_USE',
    ])
    expect(await restricted.entityEvents()).toEqual([])
  })

  test('concurrent writes emit one event each, in the order of the versions', async () => {
    const { user, path, entityEvents } = await createEventsFixture()
    const made = await Promise.all(Array.from({ length: 30 }, () => user.post(path, {})))
    const one = made[0]!.body as Entity
    await Promise.all(Array.from({ length: 20 }, (_, n) => user.put(`${path}/${one._id}`, { title: `${n}` })))
    const events = await entityEvents()
    expect(
      new Set(events.filter(({ eventName }) => eventName === 'create').map(({ metadata }) => metadata._id)).size,
    ).toBe(30)
    const versions = events.filter(({ metadata }) => metadata._id === one._id).map(({ metadata }) => metadata.version)
    expect(versions).toEqual(Array.from({ length: 21 }, (_, n) => n + 1))
  })
})

test('a write needs no statements for events when its blueprint has no dispatchers', async () => {
  /** Returns the statements of a create, an update and a delete. */
  const statements = async (dispatchers: object) => {
    const { origin, tokens, path } = await createThingsFixture([title], undefined, { dispatchers })
    const headers = { 'x-api-key': tokens.user }
    const at = `${origin}/api${path}`
    // The first request sends statements that later ones do not, such as for the last use of its token.
    await callApi('GET', at, { headers })
    const tenant = await resolveTenant(new Request(origin, { headers: { host: new URL(origin).host } }))
    const [recorded, { write }] = [[] as string[], tenant]
    const spied = (tx: Tx): Tx => ({
      ...tx,
      query: (sql, params) => {
        recorded.push(sql)
        return tx.query(sql, params)
      },
      executeMany: (sql, rows) => {
        recorded.push(sql)
        return tx.executeMany(sql, rows)
      },
    })
    tenant.write = (work) => write((tx) => work(spied(tx)))
    try {
      await callApi('POST', at, { headers, body: { identifier: 'one', title: 'x' } })
      await callApi('PUT', `${at}/one`, { headers, body: { title: 'y' } })
      expect((await callApi('DELETE', `${at}/one`, { headers })).status).toBe(200)
    } finally {
      tenant.write = write
    }
    return recorded
  }
  const [silent, dispatching] = [await statements({}), await statements(allEvents)]
  expect(silent.length).toBeGreaterThan(5)
  expect(silent.filter((sql) => sql.includes('events'))).toEqual([])
  expect(dispatching.filter((sql) => sql.includes('into events'))).toHaveLength(3)
  // The delete also reads what it deletes.
  expect(dispatching).toHaveLength(silent.length + 4)
})
