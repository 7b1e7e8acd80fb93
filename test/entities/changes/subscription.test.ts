import { afterEach, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { resetClock } from '../../accounts/session-fixtures'
import { databaseUrl } from '../../storage/engines'
import { callApi, createTestTenant, fullAccessRules, statusAndCode } from '../../test-tenant'
import { createBlueprintsFixture, createThingsFixture } from '../fixtures'
import { type Follower, openStream, startTestServer, summarize } from './stream-client'

setDefaultTimeout(30_000)
afterEach(resetClock)
const { listener, changes } = startTestServer()
const fields = [
  { key: 'title', type: 'string' },
  { key: 'n', type: 'integer' },
  { key: 'tags', type: 'string', multi: true },
]

describe('GET /api/blueprints/{key}/entities/changes', () => {
  test('a stream sends creates, updates and deletes with entities as the list shows them', async () => {
    const own = await createThingsFixture(fields)
    await using stream = await openStream(changes(), { tenant: own.id, 'x-api-key': own.tokens.user })
    expect(stream.status).toBe(200)
    expect(stream.headers.get('content-type')).toBe('text/event-stream;charset=utf-8')
    expect(stream.headers.get('cache-control')).toBe('no-store')
    expect(await stream.next()).toEqual({
      event: 'ready',
      id: expect.stringMatching(/^(\d+)\.\1\.[\da-f]{32}$/),
      data: {},
    })
    const admin = own.as('admin')
    const { body: made } = await admin.post(own.path, { identifier: 'a', title: 'Emma', n: 1 })
    expect(await stream.next()).toEqual({ event: 'create', id: expect.any(String), data: made })
    const { body: changed } = await admin.put(`${own.path}/a`, { n: 2 })
    expect(await stream.next()).toEqual({ event: 'update', id: expect.any(String), data: changed })
    await admin.delete(`${own.path}/a`)
    const deleted = { _id: made._id, identifier: 'a' }
    expect(await stream.next()).toEqual({ event: 'delete', id: expect.any(String), data: deleted })
  })

  test('a stream sends nothing for rejected writes and batches', async () => {
    const own = await createThingsFixture(fields)
    await using stream = await listener(own, 'user')
    const user = own.as('user')
    expect((await user.post(own.path, { identifier: 'a', n: 'many' })).status).toBe(400)
    await user.post(own.path, { identifier: 'a' })
    expect((await user.post(own.path, { identifier: 'a' })).status).toBe(409)
    const operations = [
      { op: 'create', data: { identifier: 'b' } },
      { op: 'create', data: { identifier: 'a' } },
    ]
    expect((await user.post(`${own.path}/batch`, { operations })).status).toBe(409)
    await user.post(own.path, { identifier: 'c' })
    expect(await stream.take(2)).toEqual(['create a', 'create c'])
  })

  test('a stream is open to callers who may read, and rejects others with 403 FORBIDDEN or 401', async () => {
    const own = await createThingsFixture(fields, fullAccessRules('tenant', 'plugin'))
    expect((await listener(own, 'user')).code).toBe('FORBIDDEN')
    expect((await openStream(changes(), { tenant: own.id })).status).toBe(401)
    await using stream = await listener(own, 'editor')
    await own.as('admin').post(own.path, { identifier: 'a' })
    expect(await stream.take(1)).toEqual(['create a'])
    expect((await openStream(changes('', 'nothing'), { tenant: own.id, 'x-api-key': own.tokens.user })).status).toBe(
      404,
    )
  })

  test('a stream is open to anonymous callers where a rule allows guests to read', async () => {
    const own = await createThingsFixture(fields, [{ operation: 'read', scope: 'tenant', guest: true }])
    await using stream = await openStream(changes(), { tenant: own.id })
    await stream.next()
    await own.as('admin').post(own.path, { identifier: 'a' })
    expect(await stream.take(1)).toEqual(['create a'])
  })

  test('a stream of one tenant sends nothing of another, and rejects its tokens and its last ids', async () => {
    const [own, otherTenant] = [await createThingsFixture(fields), await createThingsFixture(fields)]
    await using stream = await listener(own, 'user')
    await using otherStream = await listener(otherTenant, 'user')
    await own.as('user').post(own.path, { identifier: 'ours' })
    await otherTenant.as('user').post(otherTenant.path, { identifier: 'theirs' })
    expect([await stream.take(1), await otherStream.take(1)]).toEqual([['create ours'], ['create theirs']])
    const rejected = await openStream(changes(), { tenant: otherTenant.id, 'x-api-key': own.tokens.user })
    expect(rejected.status).toBe(401)
    // A last id of one tenant is invalid in another.
    await using resumed = await listener(otherTenant, 'user', `?lastEventId=${stream.last}`)
    expect(await resumed.take(1)).toEqual(['reset'])
  })
})

describe('the content of streams', () => {
  test('a stream sends an entity that leaves the scope of its caller as delete, and one that enters it as create', async () => {
    const own = await createThingsFixture(fields, fullAccessRules('user', 'user'))
    await using mine = await listener(own, 'user')
    await using theirs = await listener(own, 'other')
    await using all = await listener(own, 'admin')
    const admin = own.as('admin')
    await own.as('user').post(own.path, { identifier: 'a' })
    await admin.put(`${own.path}/a`, { user: own.users.other })
    await admin.put(`${own.path}/a`, { n: 1 })
    await admin.delete(`${own.path}/a`)
    await own.as('user').post(own.path, { identifier: 'end' })
    await own.as('other').post(own.path, { identifier: 'end2' })
    expect(await mine.take(3)).toEqual(['create a', 'delete a', 'create end'])
    expect(await theirs.take(4)).toEqual(['create a', 'update a', 'delete a', 'create end2'])
    expect(await all.take(4)).toEqual(['create a', 'update a', 'update a', 'delete a'])
  })

  test('a stream with a filter sends an entity that starts to match as create, and one that stops as delete', async () => {
    const own = await createThingsFixture(fields)
    const user = own.as('user')
    const filters = ['?n[$gte]=5', '?tags=x', '?tags[$exists]=false', '?title[$ne]=Emma', '?$q=walden%20po']
    const streams = await Promise.all([...filters, `?user=${own.users.other}`].map((one) => listener(own, 'user', one)))
    await user.post(own.path, { identifier: 'a', title: 'Emma', n: 4 })
    await user.put(`${own.path}/a`, { n: 5, tags: ['x', 'y'] })
    await user.put(`${own.path}/a`, { title: 'Walden Pond', n: null, tags: ['y'] })
    await user.delete(`${own.path}/a`)
    // This entity matches all filters.
    const last = { n: 9, tags: ['x'], title: 'Walden pool', user: own.users.other }
    await own.as('admin').post(own.path, { identifier: 'b', ...last, tags: ['x'] })
    await own.as('admin').put(`${own.path}/b`, { tags: null })
    const summaries = await Promise.all(
      streams.map(async (one, at) => (await one.take([4, 4, 3, 4, 4, 2][at]!)).join()),
    )
    expect(summaries).toEqual([
      'create a,delete a,create b,update b',
      'create a,delete a,create b,delete b',
      'create a,delete a,create b',
      'create a,delete a,create b,update b',
      'create a,delete a,create b,update b',
      'create b,update b',
    ])
    for (const one of streams) one.close()
  })

  test('a stream sends the shape and the selection of its query, and marks $flat=false as deprecated', async () => {
    const own = await createThingsFixture(fields)
    await using wrapped = await listener(own, 'user', '?$flat=false')
    await using few = await listener(own, 'user', '?$select=n,created')
    await using pinned = await listener(own, 'user', '?$flat=false', 'things', { 'accept-version': 'v1' })
    const { body } = await own.as('user').post(own.path, { identifier: 'a', title: 'Emma', n: 4 })
    const { title: _, n: __, ...system } = body
    const deprecationOf = ({ headers }: Follower) => [headers.get('deprecation'), headers.get('link')]
    expect(deprecationOf(wrapped)).toEqual(['true', '</openapi>; rel="deprecation"'])
    for (const flat of [few, pinned]) expect(deprecationOf(flat)).toEqual([null, null])
    expect((await wrapped.next())?.data).toEqual(system)
    const list = await own.as('user').get(`${own.path}?$select=n,created`)
    expect((await few.next())?.data).toEqual(list.body[0])
    expect((await pinned.next())?.data).toEqual(body)
  })

  test('a stream sends no hidden field, and rejects filters and selections by one with INVALID_INPUT', async () => {
    const secret = { key: 'secret', type: 'string', readRoles: ['plugin'] }
    const own = await createThingsFixture([...fields, secret], fullAccessRules('tenant', 'user', 'plugin'))
    await using editorStream = await listener(own, 'editor', '?secret=x')
    await using stream = await listener(own, 'user')
    await own.as('admin').post(own.path, { identifier: 'a', n: 1, secret: 'x' })
    await own.as('admin').put(`${own.path}/a`, { secret: 'y' })
    const [first, second] = [await stream.next(), await stream.next()]
    expect([first?.data.n, first?.data.metadata, second?.data.metadata]).toEqual([1, { n: 1 }, { n: 1 }])
    expect(JSON.stringify([first, second])).not.toContain('secret')
    expect(await editorStream.take(2)).toEqual(['create a', 'delete a'])
    for (const query of ['?secret=x', '?secret[$exists]=true', '?$select=secret', '?$qProps=secret&$q=x'])
      expect((await listener(own, 'user', query)).code, query).toBe('INVALID_INPUT')
  })

  test('an admin with bypassAdmin=true gets only the changes that the rules allow', async () => {
    const own = await createThingsFixture(fields, fullAccessRules('user', 'user'))
    await using stream = await listener(own, 'admin', '?bypassAdmin=true')
    await own.as('user').post(own.path, { identifier: 'a' })
    await own.as('admin').post(own.path, { identifier: 'b' })
    expect(await stream.take(1)).toEqual(['create b'])
  })
})

test.each([
  '$limit=5',
  '$sort=n',
  '$skip=1',
  '$page=2',
  '$count=true',
  '$populate=true',
  'nothing=1',
  '$none=1',
  'n=x',
])('GET changes rejects %s with 400 INVALID_INPUT and names the parameter', async (query) => {
  const own = await createThingsFixture(fields)
  const answer = await own.as('user').get(`${own.path}/changes?${query}`)
  expect(statusAndCode(answer)).toEqual([400, 'INVALID_INPUT'])
  expect(answer.body.details[0].path).toBe(query.split('=')[0])
})

describe('changes by all kinds of writes', () => {
  const batch = (own: { path: string; as: Awaited<ReturnType<typeof createTestTenant>>['as'] }, operations: object[]) =>
    own.as('user').post(`${own.path}/batch`, { operations })

  test('a batch sends its changes in their order', async () => {
    const own = await createThingsFixture(fields)
    await using stream = await listener(own, 'user')
    await batch(own, [
      { op: 'create', data: { identifier: 'a' } },
      { op: 'upsert', identifier: 'b', data: { n: 1 } },
      { op: 'upsert', identifier: 'a', data: { n: 2 } },
      { op: 'update', identifier: 'b', data: { n: 3 } },
      { op: 'delete', identifier: 'a' },
      { op: 'create', data: { identifier: 'c' } },
    ])
    expect(await stream.take(6)).toEqual(['create a', 'create b', 'update a', 'update b', 'delete a', 'create c'])
  })

  test('a batch of 300 entities sends each change once', async () => {
    const own = await createThingsFixture(fields)
    await using stream = await listener(own, 'user', '?$select=identifier')
    const names = Array.from({ length: 300 }, (_, n) => `e${n}`)
    await batch(
      own,
      names.map((identifier) => ({ op: 'create', data: { identifier } })),
    )
    expect(await stream.take(300)).toEqual(names.map((name) => `create ${name}`))
  })

  test('an import sends its changes, an undone import reverts what it has sent, and a dry run sends nothing', async () => {
    const own = await createThingsFixture(fields)
    await using stream = await listener(own, 'user')
    const send = (query: string, raw: string) =>
      callApi('POST', `${own.origin}/api${own.path}/import?${query}`, {
        headers: { 'x-api-key': own.tokens.user, 'content-type': 'application/x-ndjson' },
        raw,
      })
    expect((await send('', '{"identifier":"a","n":1}\n{"identifier":"b"}\n')).body.imported).toBe(2)
    expect(await stream.take(2)).toEqual(['create a', 'create b'])
    await send('mode=upsert&dryRun=true', '{"identifier":"z","n":2}\n')
    const lines = '{"identifier":"a","n":2}\n{"identifier":"c"}\n{"identifier":"d","n":"no"}\n'
    expect((await send('mode=upsert&atomic=true', lines)).body).toMatchObject({ imported: 0, failed: 1 })
    await own.as('user').post(own.path, { identifier: 'end' })
    const events: string[] = []
    for (let one = ''; one !== 'create end'; events.push(one)) one = summarize(await stream.next())
    // A stream that has sent an undone change also sends its reversal.
    expect(events.filter((one) => one.endsWith(' a')).length % 2).toBe(0)
    expect(events.filter((one) => one.endsWith(' c'))).toEqual(
      events.includes('create c') ? ['create c', 'delete c'] : [],
    )
    expect(events).not.toContain('create z')
    const { body } = await own.as('user').get(`${own.path}/a`)
    expect(body.n).toBe(1)
  })

  test('a delete also sends the changes of entities that onDelete deletes or clears', async () => {
    const to = (onDelete: string) => ({ key: 'to', type: 'relation', target: 'authors', onDelete })
    const own = await createBlueprintsFixture(
      { key: 'authors' },
      { key: 'books', fields: [to('cascade')] },
      { key: 'notes', fields: [to('nullify')] },
    )
    await own.add('authors', 'ada')
    for (const key of ['books', 'notes']) for (const name of ['one', 'two']) await own.add(key, name, { to: 'ada' })
    await using authors = await listener(own, 'user', '', 'authors')
    await using books = await listener(own, 'user', '', 'books')
    await using notes = await listener(own, 'user', '?to=ada', 'notes')
    await using allNotes = await listener(own, 'user', '', 'notes')
    await own.user.delete(own.at('authors', '/ada'))
    expect(await authors.take(1)).toEqual(['delete ada'])
    expect((await books.take(2)).sort()).toEqual(['delete one', 'delete two'])
    expect((await notes.take(2)).sort()).toEqual(['delete one', 'delete two'])
    const [first] = [await allNotes.next(), await allNotes.next()]
    expect([first?.event, first?.data.to]).toEqual(['update', undefined])
  })

  test('DELETE /all and the deletion of a blueprint send the deletes, and the latter ends the stream', async () => {
    const own = await createBlueprintsFixture({ key: 'books', fields: [{ key: 'n', type: 'integer' }] })
    await own.addMany('books', 300, (n) => ({ n }))
    await using stream = await listener(own, 'user', '?$select=n', 'books')
    await own.user.delete(own.at('books', '/all?confirm=books&n[$lt]=250'))
    expect(new Set(await stream.take(250)).size).toBe(250)
    await own.admin.delete('/blueprints/books?force=true')
    const rest = await stream.take(51)
    const removed = rest.filter((one) => one !== 'end')
    const left = Array.from({ length: 50 }, (_, n) => `delete books${250 + n}`)
    expect([removed.filter((one) => !left.includes(one)), rest.at(-1)]).toEqual([[], 'end'])
    // On PostgreSQL the stream may end before it has read all deletes.
    if (!databaseUrl) expect(removed).toHaveLength(50)
  })

  test('a stream with a filter by a formula field follows the computed value', async () => {
    const own = await createThingsFixture(
      [...fields, { key: 'twice', type: 'number' }],
      fullAccessRules('tenant', 'user'),
      { computed: { twice: 'n * 2' } },
    )
    await using stream = await listener(own, 'user', '?twice[$gt]=5')
    await own.as('user').post(own.path, { identifier: 'a', n: 2 })
    await own.as('user').put(`${own.path}/a`, { n: 4 })
    await own.as('user').put(`${own.path}/a`, { n: 1 })
    const first = await stream.next()
    expect([first?.event, first?.data.twice]).toEqual(['create', 8])
    expect(await stream.take(1)).toEqual(['delete a'])
  })
})

test('the API description contains the stream and its parameter lastEventId', async () => {
  const { body } = await callApi('GET', `${(await createTestTenant()).origin}/openapi/json`)
  const { get } = body.paths['/api/blueprints/{key}/entities/changes']
  expect(Object.keys(get.responses['200'].content)).toEqual(['text/event-stream'])
  expect(get.parameters.map(({ name }: { name: string }) => name)).toContain('lastEventId')
})

test('HEAD answers 200 and does not count as an open stream', async () => {
  const own = await createThingsFixture(fields)
  const headers = { tenant: own.id, 'x-api-key': own.tokens.user }
  for (let n = 0; n < 150; n++) {
    const { status } = await fetch(changes(), { method: 'HEAD', headers })
    if (status !== 200) expect(status).toBe(200)
  }
  const stream: Follower = await listener(own, 'user')
  expect(stream.status).toBe(200)
  stream.close()
})
