import { describe, expect, test } from 'bun:test'
import { callApi, statusAndCode } from '../test-tenant'
import { createThingsFixture } from './fixtures'

const fields = [
  { key: 'title', type: 'string', required: true },
  { key: 'price', type: 'number' },
  { key: 'tags', type: 'string', multi: true },
  { key: 'address', type: 'object' },
]
const fixture = createThingsFixture(fields)
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

/** Creates an entity as the user. */
const createThing = async (body: object) => {
  const { as, path } = await fixture
  const { status, body: entity, headers } = await as('user').post(path, body)
  expect([status, entity.message]).toEqual([201, undefined])
  return { user: as('user'), admin: as('admin'), entity, etag: headers.get('etag')!, at: `${path}/${entity._id}` }
}

describe('an entity', () => {
  test('an entity is created, read, updated and deleted, and is 404 ENTITY_NOT_FOUND afterwards', async () => {
    const { as, path, users } = await fixture
    const user = as('user')
    const made = await user.post(path, { identifier: 'first', title: 'One', price: 1.5, tags: ['a'] })
    const properties = { title: 'One', price: 1.5, tags: ['a'] }
    expect(made.status).toBe(201)
    expect(made.body).toEqual({
      _id: expect.stringMatching(UUID),
      identifier: 'first',
      created: expect.stringMatching(TIME),
      updated: made.body.created,
      user: users.user,
      workspace: null,
      metadata: properties,
      ...properties,
    })
    expect((await user.get(`${path}/first`)).body).toEqual(made.body)
    expect((await user.get(`${path}/${made.body._id}`)).body).toEqual(made.body)
    expect((await user.get(`${path}?identifier=first`)).body).toEqual([made.body])

    await Bun.sleep(2)
    const changed = await user.put(`${path}/first`, { price: 2, address: { city: 'Ulm' } })
    const merged = { title: 'One', price: 2, tags: ['a'], address: { city: 'Ulm' } }
    expect(changed.status).toBe(200)
    expect(changed.body).toEqual({ ...made.body, ...merged, metadata: merged, updated: changed.body.updated })
    expect(changed.body.updated > made.body.updated).toBe(true)
    expect((await user.patch(`${path}/${made.body._id}`, { price: null })).body.metadata).not.toHaveProperty('price')

    const removed = await user.delete(`${path}/first`)
    expect([removed.status, removed.body]).toEqual([200, { success: true, identifier: 'first' }])
    for (const answer of [
      await user.get(`${path}/first`),
      await user.put(`${path}/first`, {}),
      await user.delete(`${path}/${made.body._id}`),
    ])
      expect(statusAndCode(answer)).toEqual([404, 'ENTITY_NOT_FOUND'])
    expect((await user.get(`${path}?identifier=first`)).body).toEqual([])
  })

  test('a body may hold the properties at the top level, under metadata, or in both places', async () => {
    const sent = [
      { title: 'T', price: 1 },
      { metadata: { title: 'T', price: 1 } },
      { title: 'T', metadata: { price: 1 } },
      { title: 'T', price: 1, metadata: { title: 'T', price: 1 } },
      { title: 'T', price: 1, metadata: {} },
    ]
    for (const body of sent) expect((await createThing(body)).entity.metadata).toEqual({ title: 'T', price: 1 })
  })

  test('every entity route answers 404 BLUEPRINT_NOT_FOUND for an unknown blueprint', async () => {
    const { as } = await fixture
    const user = as('user')
    for (const key of ['nowhere', 'UPPER', '__proto__', 'constructor', '%00', '%zz', '%ED%A0%80']) {
      const path = `/blueprints/${key}/entities`
      for (const answer of [
        await user.get(path),
        await user.get(`${path}/x`),
        await user.post(path, {}),
        await user.put(`${path}/x`, {}),
        await user.delete(`${path}/x`),
        await user.delete(`${path}/all?confirm=x`),
      ])
        expect(statusAndCode(answer), key).toEqual([404, 'BLUEPRINT_NOT_FOUND'])
    }
  })

  test.each([
    'nowhere',
    '%20',
    'a%2Fb',
    '%00',
    '%zz',
    '%',
    '%E0%A4%A',
    '%ED%A0%80',
    '__proto__',
    "'%20or%201=1",
    'x'.repeat(9_000),
  ])('GET, PUT, PATCH and DELETE answer 404 ENTITY_NOT_FOUND for the unknown identifier %s', async (name) => {
    const { as, path } = await fixture
    for (const answer of [
      await as('user').get(`${path}/${name}`),
      await as('user').put(`${path}/${name}`, { title: 'x' }),
      await as('user').patch(`${path}/${name}`, { title: 'x' }),
      await as('user').delete(`${path}/${name}`),
    ])
      expect(statusAndCode(answer)).toEqual([404, 'ENTITY_NOT_FOUND'])
  })
})

describe('flat and wrapped shapes', () => {
  const properties = { title: 'T', price: 1 }

  test('every answer with an entity is flat by default, and wrapped with a deprecation header for $flat=false', async () => {
    const { as, path } = await fixture
    const user = as('user')
    for (const [flat, wrapped] of [
      ['', '$flat=false'],
      ['$flat=true', '$flat=0'],
      ['$flat=1', '$flat=false'],
      ['$flat=', '$flat=0'],
      ['$flat=undefined', '$flat=0'],
    ]) {
      for (const [query, isFlat] of [
        [flat, true],
        [wrapped, false],
      ] as const) {
        const made = await user.post(`${path}?${query}`, properties)
        const at = `${path}/${made.body._id}?${query}`
        const answers = [made, await user.get(at), await user.put(at, {}), await user.patch(at, {})]
        const list = await user.get(`${path}?_id=${made.body._id}&${query}`)
        answers.push({ ...list, body: list.body[0] })
        for (const { body, headers } of answers) {
          expect(body.metadata).toEqual(properties)
          expect('title' in body, query).toBe(isFlat)
          expect(headers.get('deprecation')).toBe(isFlat ? null : 'true')
          expect(/<[^>]+>; rel="deprecation"/.test(headers.get('link') ?? ''), query).toBe(!isFlat)
          expect(headers.get('x-api-version')).toBe('v1')
          expect(headers.get('content-type')).toStartWith('application/json')
        }
      }
    }
  })

  test('Accept-Version: v1 forces the flat shape, and unknown versions get 400 UNSUPPORTED_VERSION', async () => {
    const { user, at } = await createThing(properties)
    for (const version of ['v1', 'V1', ' v1 ']) {
      const { body, headers } = await user.get(`${at}?$flat=false`, { 'accept-version': version })
      expect([body.title, headers.get('deprecation'), headers.get('link')]).toEqual(['T', null, null])
    }
    for (const version of ['v2', '1', 'x'])
      expect(statusAndCode(await user.get(at, { 'accept-version': version }))).toEqual([400, 'UNSUPPORTED_VERSION'])
  })

  test('/api/v1 answers with the same entity as /api', async () => {
    const { entity, at } = await createThing(properties)
    const { origin, tokens } = await fixture
    const { status, body } = await callApi('GET', `${origin}/api/v1${at}`, { headers: { 'x-api-key': tokens.user } })
    expect([status, body]).toEqual([200, entity])
  })

  test('an entity without properties has the system fields and metadata in both shapes', async () => {
    const { as } = await fixture
    await as('admin').post('/blueprints', { key: 'bare', name: 'Bare', fields: [] })
    for (const query of ['', '?$flat=false']) {
      const { body } = await as('admin').post(`/blueprints/bare/entities${query}`, {})
      expect(Object.keys(body)).toEqual(['_id', 'identifier', 'created', 'updated', 'user', 'workspace', 'metadata'])
    }
  })
})

describe('an entity that is sent back as it was read', () => {
  const stored = { title: 'One', price: 1, tags: ['a', 'b'], address: { city: 'Ulm', lines: [1, { x: null }] } }

  test('PUT with an unchanged entity changes nothing but its updated time', async () => {
    const { user, admin, entity, at } = await createThing(stored)
    for (const caller of [user, admin]) {
      const { status, body } = await caller.put(at, entity)
      expect([status, body]).toEqual([200, { ...entity, updated: body.updated }])
    }
  })

  test('PUT with a read entity applies a change beside metadata', async () => {
    const { user, entity, at } = await createThing(stored)
    const { body } = await user.put(at, { ...entity, title: 'Two', address: { city: 'Bonn' } })
    expect(body.metadata).toEqual({ ...stored, title: 'Two', address: { city: 'Bonn' } })
  })

  test('PUT with a read entity applies a change inside metadata', async () => {
    const { user, entity, at } = await createThing(stored)
    const { body } = await user.put(at, { ...entity, metadata: { ...stored, title: 'Two', tags: ['b', 'a'] } })
    expect(body.metadata).toEqual({ ...stored, title: 'Two', tags: ['b', 'a'] })
  })

  test('PUT with a read entity merges changes beside and inside metadata when they do not conflict', async () => {
    const { user, entity, at } = await createThing(stored)
    const { body } = await user.put(at, {
      ...entity,
      title: 'Two',
      price: 3,
      metadata: { ...stored, price: 3, tags: [] },
    })
    expect(body.metadata).toEqual({ ...stored, title: 'Two', price: 3, tags: [] })
  })

  test('PUT with a read entity clears a value that is null beside or inside metadata', async () => {
    const { user, entity, at } = await createThing(stored)
    const { body } = await user.put(at, { ...entity, price: null, metadata: { ...stored, tags: null } })
    const { tags: _, price: __, ...left } = stored
    expect(body.metadata).toEqual(left)
  })

  test('PUT rejects different changes of one property beside and inside metadata with 400 INVALID_INPUT', async () => {
    const { user, entity, at } = await createThing(stored)
    const answer = await user.put(at, { ...entity, title: 'Two', metadata: { ...stored, title: 'Three' } })
    expect([...statusAndCode(answer), answer.body.details[0].path]).toEqual([400, 'INVALID_INPUT', '/metadata/title'])
    expect((await user.get(at)).body).toEqual(entity)
  })

  test('POST rejects different values of one property beside and inside metadata with 400 INVALID_INPUT', async () => {
    const { as, path } = await fixture
    const answer = await as('user').post(path, { title: 'One', metadata: { title: 'Two' } })
    expect(statusAndCode(answer)).toEqual([400, 'INVALID_INPUT'])
  })
})

describe('system fields', () => {
  const claims = { _id: 'x', created: '2000-01-01T00:00:00.000Z', updated: 5, blueprint: 'y', tenant: 'z', id: {} }

  test('system fields in a body are ignored, whatever their values', async () => {
    const { user, entity, at } = await createThing({ title: 'T', ...claims })
    expect(entity).toMatchObject({ _id: expect.stringMatching(UUID), metadata: { title: 'T' } })
    expect(entity.created > '2020').toBe(true)
    for (const key of ['blueprint', 'tenant', 'id']) expect(entity).not.toHaveProperty(key)
    const { body } = await user.put(at, { ...claims, price: 2 })
    expect(body).toEqual({ ...entity, price: 2, metadata: { title: 'T', price: 2 }, updated: body.updated })
  })

  test('user and workspace can be set by admins only, and are ignored in the bodies of other users', async () => {
    const { users, as, path } = await fixture
    const { admin, entity, at } = await createThing({ title: 'T', user: users.other, workspace: 'w' })
    expect(entity).toMatchObject({ user: users.user, workspace: null })
    const owned = { user: users.other, workspace: 'w1' }
    expect((await as('user').put(at, owned)).body).toMatchObject({ user: users.user, workspace: null })
    expect((await as('user').put(at, { user: 5, workspace: {} })).status).toBe(200)
    expect((await admin.put(at, owned)).body).toMatchObject(owned)
    expect((await admin.put(at, { price: 1 })).body).toMatchObject(owned)
    expect((await admin.put(at, { user: null, workspace: null })).body).toMatchObject({ user: null, workspace: null })
    expect((await admin.post(path, { title: 'T', ...owned })).body).toMatchObject(owned)
    for (const misfit of [{ user: 5 }, { workspace: {} }, { user: ['x'] }])
      expect(statusAndCode(await admin.put(at, misfit))).toEqual([400, 'INVALID_INPUT'])
  })
})

describe('an identifier', () => {
  test.each(['a', 'A.b-c_d~1', 'ü', '😀', 'a?b#c%d&e=f+g', "';drop-table-entities;--", '"', '\\', 'x'.repeat(128)])(
    'an identifier may be %s',
    async (identifier) => {
      const { user, entity } = await createThing({ identifier, title: 'T' })
      const { path } = await fixture
      expect(entity.identifier).toBe(identifier)
      expect((await user.get(`${path}/${encodeURIComponent(identifier)}`)).body).toEqual(entity)
      expect((await user.get(`${path}?identifier=${encodeURIComponent(identifier)}`)).body).toEqual([entity])
    },
  )

  test.each(['a b', ' ', 'a/b', '/', 'a\tb', 'a\nb', '\u00a0', 'x'.repeat(129), 5, true, {}, [['a']]])(
    'an identifier of %j is rejected with 400 INVALID_INPUT',
    async (identifier) => {
      const { as, path } = await fixture
      const answer = await as('user').post(path, { identifier, title: 'T' })
      expect([...statusAndCode(answer), answer.body.details[0].path]).toEqual([400, 'INVALID_INPUT', '/identifier'])
    },
  )

  test('an entity without a given identifier gets its _id as identifier', async () => {
    for (const body of [{}, { identifier: null }, { identifier: '' }]) {
      const { entity } = await createThing({ title: 'T', ...body })
      expect(entity.identifier).toBe(entity._id)
    }
  })

  test('an identifier is unique in its blueprint: a duplicate gets 409 IDENTIFIER_EXISTS, also under concurrency', async () => {
    const { as, path } = await fixture
    const user = as('user')
    const answers = await Promise.all([1, 2, 3, 4].map((n) => user.post(path, { identifier: 'twin', title: `${n}` })))
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 409, 409, 409])
    expect(statusAndCode(await as('admin').post(path, { identifier: 'twin', title: 'T' }))).toEqual([
      409,
      'IDENTIFIER_EXISTS',
    ])
    expect((await user.get(`${path}?identifier=twin`)).body).toHaveLength(1)
    expect((await user.post(path, { identifier: 'Twin', title: 'T' })).status).toBe(201)
    await user.delete(`${path}/twin`)
    expect((await user.post(path, { identifier: 'twin', title: 'T' })).status).toBe(201)
  })

  test('the _id of one entity never resolves to another entity that has it as identifier', async () => {
    const { entity, at, user } = await createThing({ identifier: 'mine', title: 'Mine' })
    const { as, path } = await fixture
    await as('other').post(path, { identifier: entity._id, title: 'Not mine' })
    expect((await user.get(at)).body.title).toBe('Mine')
  })

  test('an update cannot change the identifier of an entity', async () => {
    const { user, entity, at } = await createThing({ identifier: 'stays', title: 'T' })
    for (const identifier of ['goes', null, 'a b', 5, ''])
      expect((await user.put(at, { identifier, price: 1 })).body.identifier, `${identifier}`).toBe(entity.identifier)
  })
})

describe('a body', () => {
  test('a body with an unknown property is rejected with 400 INVALID_INPUT', async () => {
    const { user, entity, at } = await createThing({ title: 'T' })
    const { path } = await fixture
    for (const more of [
      { colour: 1 },
      { metadata: { colour: 1 } },
      { colour: null },
      { constructor: 1 },
      { toString: 1 },
    ]) {
      const key = JSON.stringify(more).match(/\w+(?=":[^{])/)![0]
      for (const answer of [await user.post(path, { title: 'T', ...more }), await user.put(at, more)])
        expect([...statusAndCode(answer), answer.body.details[0].path]).toEqual([400, 'INVALID_INPUT', `/${key}`])
    }
    expect((await user.get(at)).body).toEqual(entity)
  })

  test('a rejected body gets details for every flaw at once', async () => {
    const { as, path } = await fixture
    const { body } = await as('user').post(path, { price: 'x', tags: ['a', 1], colour: 1, address: [] })
    const paths = body.details.map((flaw: { path: string }) => flaw.path).sort()
    expect(paths).toEqual(['/address', '/colour', '/price', '/tags/1', '/title'])
  })

  test('a body that is missing, malformed or not a JSON object is rejected with 400 or 415', async () => {
    const { as, path, origin, tokens } = await fixture
    const { at } = await createThing({ title: 'T' })
    for (const body of [undefined, null, [], 'x', 5, true, { metadata: null }, { metadata: [] }, { metadata: 'x' }]) {
      expect(statusAndCode(await as('user').post(path, body)), JSON.stringify(body)).toEqual([400, 'INVALID_INPUT'])
      expect(statusAndCode(await as('user').put(at, body)), JSON.stringify(body)).toEqual([400, 'INVALID_INPUT'])
    }
    const send = (raw: string, type = 'application/json') =>
      callApi('POST', `${origin}/api${path}`, { raw, headers: { 'x-api-key': tokens.user, 'content-type': type } })
    for (const raw of [
      '{',
      '{"title":"T"',
      "{'title':'T'}",
      'title=T',
      '{"title":"T"}}',
      '\ufeff',
      '{"title":undefined}',
    ])
      expect(statusAndCode(await send(raw)), raw).toEqual([400, 'MALFORMED_BODY'])
    for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data', ''])
      expect(statusAndCode(await send('{"title":"T"}', type)), type).toEqual([415, 'UNSUPPORTED_MEDIA_TYPE'])
    expect((await send('{"title":"T"}', 'application/json; charset=utf-8')).status).toBe(201)
  })

  test('a body cannot pollute prototypes by special property names', async () => {
    const { as, path, origin, tokens } = await fixture
    const send = (raw: string) =>
      callApi('POST', `${origin}/api${path}`, {
        raw,
        headers: { 'x-api-key': tokens.user, 'content-type': 'application/json' },
      })
    for (const raw of [
      '{"title":"T","__proto__":{"polluted":1}}',
      '{"title":"T","metadata":{"__proto__":{"polluted":1}}}',
      '{"title":"T","address":{"__proto__":{"polluted":1}}}',
      '{"title":"T","constructor":{"prototype":{"polluted":1}}}',
    ])
      expect(statusAndCode(await send(raw)), raw).toEqual([400, 'INVALID_INPUT'])
    const address = { constructor: { prototype: { polluted: 1 } }, toString: 'x', hasOwnProperty: 1 }
    expect((await as('user').post(path, { title: 'T', address })).body.address).toEqual(address)
    expect(({} as { polluted?: 1 }).polluted).toBeUndefined()
    expect((await as('user').get(`${path}?address.constructor.prototype.polluted=1`)).body).toHaveLength(1)
  })

  test('a body may be nested 40 levels deep, and is rejected with 400 from 100 levels on', async () => {
    const { as, path, origin, tokens } = await fixture
    const nested = (depth: number) => `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`
    expect((await as('user').post(path, { title: 'T', address: JSON.parse(nested(40)) })).status).toBe(201)
    for (const raw of [
      `{"title":"T","address":${nested(100)}}`,
      nested(50_000),
      '['.repeat(100_000),
      '{"a":'.repeat(100_000),
    ])
      expect(
        (
          await callApi('POST', `${origin}/api${path}`, {
            raw,
            headers: { 'x-api-key': tokens.user, 'content-type': 'application/json' },
          })
        ).status,
      ).toBe(400)
  })

  test('a text with NUL or an unpaired surrogate is rejected with 400 INVALID_INPUT', async () => {
    const { as, path } = await fixture
    for (const text of ['\0', 'a\0b', '\ud800', 'a\udc00', '\udc00\ud800'])
      for (const body of [
        { title: text },
        { title: 'T', tags: [text] },
        { title: 'T', address: { [text]: 1 } },
        { title: 'T', address: { a: [{ b: text }] } },
        { title: 'T', identifier: text },
        { title: 'T', [text]: 1 },
      ])
        expect(statusAndCode(await as('user').post(path, body)), JSON.stringify(body)).toEqual([400, 'INVALID_INPUT'])
    const title = '😀 \u0001 \uffff \u2028 \u{10ffff} ﷺ'
    expect((await createThing({ title })).entity.title).toBe(title)
  })

  test('a number that overflows to infinity is rejected with 400 INVALID_INPUT', async () => {
    const { path, origin, tokens } = await fixture
    for (const part of ['"price":1e999', '"address":{"n":1e999}', '"address":{"list":[{"n":-1e999}]}']) {
      const raw = `{"title":"T",${part}}`
      const headers = { 'x-api-key': tokens.user, 'content-type': 'application/json' }
      expect(statusAndCode(await callApi('POST', `${origin}/api${path}`, { raw, headers })), raw).toEqual([
        400,
        'INVALID_INPUT',
      ])
    }
  })

  test('an entity may have 1,000 indexed values, and is rejected with 400 INVALID_INPUT for 3,000', async () => {
    const { as, path } = await fixture
    const tags = Array.from({ length: 3_000 }, (_, n) => `t${n}`)
    expect(statusAndCode(await as('user').post(path, { title: 'T', tags }))).toEqual([400, 'INVALID_INPUT'])
    expect((await createThing({ title: 'T', tags: tags.slice(0, 1_000) })).entity.tags).toHaveLength(1_000)
  })

  test('a body may hold SQL, quotes and placeholders in texts and keys, which are stored and found unchanged', async () => {
    const title = `'; drop table entities; -- " \\ \${1} %s ?1 :a @b`
    const { user, entity, at } = await createThing({ title, address: { "a'b": title, 'c"d': 1, $e: 2 } })
    expect((await user.get(at)).body).toEqual(entity)
    const { path } = await fixture
    expect((await user.get(`${path}?title=${encodeURIComponent(title)}`)).body).toEqual([entity])
  })
})

describe('versions', () => {
  test('PUT, PATCH and DELETE with an outdated If-Match get 412 VERSION_MISMATCH', async () => {
    const { user, etag, at } = await createThing({ title: 'First' })
    expect(etag).toMatch(/^".+"$/)
    const changed = await user.put(at, { title: 'Second' }, { 'if-match': etag })
    expect(changed.status).toBe(200)
    expect(changed.headers.get('etag')).not.toBe(etag)
    for (const answer of [
      await user.put(at, { title: 'Third' }, { 'if-match': etag }),
      await user.patch(at, { title: 'Third' }, { 'if-match': etag }),
      await user.delete(at, { 'if-match': etag }),
    ])
      expect(statusAndCode(answer)).toEqual([412, 'VERSION_MISMATCH'])
    const latest = (await user.get(at)).headers.get('etag')!
    expect(latest).toBe(changed.headers.get('etag')!)
    expect((await user.patch(at, { title: 'Third' }, { 'if-match': `"x", ${latest}` })).status).toBe(200)
    expect((await user.delete(at, { 'if-match': '*' })).status).toBe(200)
  })

  test('one of several concurrent updates with the same If-Match succeeds, and the others get 412', async () => {
    const { user, etag, at } = await createThing({ title: '0' })
    const answers = await Promise.all([1, 2, 3, 4].map((n) => user.put(at, { title: `${n}` }, { 'if-match': etag })))
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 412, 412, 412])
    const [winner] = answers.filter(({ status }) => status === 200)
    expect((await user.get(at)).body).toEqual(winner?.body)
  })

  test('concurrent updates of different properties are all applied', async () => {
    const { user, at } = await createThing({ title: 'T' })
    await Promise.all([{ price: 1 }, { tags: ['a'] }, { address: { a: 1 } }].map((change) => user.put(at, change)))
    expect((await user.get(at)).body.metadata).toEqual({ title: 'T', price: 1, tags: ['a'], address: { a: 1 } })
  })

  test('GET with an If-None-Match that matches answers 304, and 200 after a change', async () => {
    const { user, etag, at } = await createThing({ title: 'T' })
    for (const known of [etag, `W/${etag}`, `"x", ${etag}`, '*']) {
      const { status, body, headers } = await user.get(at, { 'if-none-match': known })
      expect([status, body, headers.get('etag')]).toEqual([304, undefined, etag])
    }
    await user.put(at, { price: 1 })
    expect((await user.get(at, { 'if-none-match': etag })).status).toBe(200)
  })
})
