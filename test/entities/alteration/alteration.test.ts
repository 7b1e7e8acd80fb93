import { describe, expect, test } from 'bun:test'
import { createTestTenant, fullAccessRules, statusAndCode } from '../../test-tenant'
import { createThingsFixture, type Entity, identifiers, withFullFormulaQueue } from '../fixtures'
import { waitUntilSettled } from './steps'

const BLUEPRINT_PATH = '/blueprints/things'

/** Returns a tenant with some things, and functions that change their blueprint. */
async function createFilledFixture(fields: object[], entities: object[], more: object = {}, permissions?: object[]) {
  const own = await createThingsFixture(fields, permissions, more)
  const admin = own.as('admin')
  for (const entity of entities) {
    const { status, body } = await admin.post(own.path, entity)
    expect([status, body.message]).toEqual([201, undefined])
  }
  const change = (change: object) => admin.put(BLUEPRINT_PATH, change)
  const put = async (parts: object) => {
    const { status, body } = await change(parts)
    expect([status, body.details ?? body.message]).toEqual([200, undefined])
    return body
  }
  const found = async (query = '', by = admin) => {
    const { status, body } = await by.get(`${own.path}?${sorted(query)}`)
    expect([status, body.message]).toEqual([200, undefined])
    return identifiers(body)
  }
  const docs = async () =>
    Object.fromEntries(
      (await admin.get(`${own.path}?$limit=1000`)).body.map((one: Entity) => [one.identifier, one.metadata]),
    )
  const dry = (change: object) => admin.put(`${BLUEPRINT_PATH}?dryRun=true`, change)
  return { ...own, admin, change, put, found, docs, dry }
}

/** Entities are sorted by their identifiers unless the query sorts them. */
const sorted = (query: string) => (query.startsWith('$sort=') ? query : `$sort=identifier&${query}`)

const title = { key: 'title', type: 'string', indexed: true }
const count = { key: 'count', type: 'integer', indexed: true }

test('the problems of a change contain identifiers and values only for callers who may read them', async () => {
  const own = await createTestTenant()
  const [admin, editor] = [own.as('admin'), own.as('editor')]
  const pay = { key: 'pay', type: 'string', readRoles: ['payroll'] }
  const unique = { fields: [{ ...pay, key: 'wage', renamedFrom: 'pay', readRoles: [], unique: true }] }
  await admin.post('/blueprints', { key: 'people', name: 'People', fields: [pay] })
  for (const identifier of ['a', 'b']) await admin.post('/blueprints/people/entities', { identifier, pay: '4711' })
  const problemOf = async (client: typeof admin) =>
    (await client.put('/blueprints/people?dryRun=true', unique)).body.problems[0]
  const known = { field: 'wage', code: 'DUPLICATE_VALUES', message: expect.any(String), count: 2 }
  expect(await problemOf(editor)).toEqual({ ...known, examples: [] })
  expect((await editor.put('/blueprints/people', unique)).body.details).toEqual([{ ...known, examples: [] }])
  await admin.put('/blueprints/people', { permissions: fullAccessRules('tenant', 'plugin') })
  expect(await problemOf(editor)).toEqual({ ...known, examples: ['a', 'b'] })
  const duplicates = [{ value: '4711', identifiers: ['a', 'b'] }]
  expect(await problemOf(admin)).toEqual({ ...known, examples: ['a', 'b'], duplicates })
})

describe('PUT of a blueprint with dryRun=true', () => {
  test('a dry run counts the entities that a change would break or rewrite, and changes nothing', async () => {
    const things = [
      { identifier: 'a', title: 'x', count: 1 },
      { identifier: 'b', title: 'x' },
      { identifier: 'c', title: 'long text', count: 2 },
    ]
    const { admin, dry, docs } = await createFilledFixture([title, count], things)
    const before = (await admin.get(BLUEPRINT_PATH)).body
    const change = {
      name: 'New',
      fields: [
        { ...title, max: 3 },
        { ...count, required: true },
        { key: 'new', type: 'text', required: true },
      ],
    }
    const { status, body } = await dry(change)
    expect(status).toBe(200)
    expect(body).toMatchObject({ dryRun: true, entities: 3, breaking: 3, rewritten: 0 })
    const problems = Object.fromEntries(
      body.problems.map(({ field, code, count, examples }: Record<string, unknown>) => [
        field,
        [code, count, examples],
      ]),
    )
    expect(problems).toEqual({
      title: ['VALUES_DO_NOT_FIT', 1, ['c']],
      count: ['FIELD_NEEDS_DEFAULT', 1, ['b']],
      new: ['FIELD_NEEDS_DEFAULT', 3, ['a', 'b', 'c']],
    })
    expect((await admin.get(BLUEPRINT_PATH)).body).toEqual(before)
    expect(await docs()).toEqual({
      a: { title: 'x', count: 1 },
      b: { title: 'x' },
      c: { title: 'long text', count: 2 },
    })
    expect((await dry({ fields: [{ ...title, unique: true }, count] })).body).toMatchObject({
      breaking: 2,
      problems: [
        {
          field: 'title',
          code: 'DUPLICATE_VALUES',
          count: 2,
          examples: ['a', 'b'],
          duplicates: [{ value: 'x', identifiers: ['a', 'b'] }],
        },
      ],
    })
    expect((await dry({ fields: [title] })).body).toMatchObject({ breaking: 0, rewritten: 2, problems: [] })
    expect((await dry({ name: 'Other' })).body).toMatchObject({ entities: 3, breaking: 0, rewritten: 0, problems: [] })
  })

  test('a dry run rejects users with 403, anonymous callers with 401, and invalid fields with 400', async () => {
    const { as, anonymous, dry } = await createFilledFixture([title], [{ title: 'x' }])
    expect(statusAndCode(await as('user').put(`${BLUEPRINT_PATH}?dryRun=true`, { fields: [] }))).toEqual([
      403,
      'FORBIDDEN',
    ])
    expect(statusAndCode(await anonymous.put(`${BLUEPRINT_PATH}?dryRun=true`, { fields: [] }))).toEqual([
      401,
      'UNAUTHENTICATED',
    ])
    expect(statusAndCode(await dry({ fields: [{ key: 'id', type: 'text' }] }))).toEqual([400, 'INVALID_INPUT'])
    const otherTenant = await createFilledFixture([title], [])
    expect(statusAndCode(await otherTenant.as('admin').put('/blueprints/none?dryRun=true', {}))).toEqual([
      404,
      'BLUEPRINT_NOT_FOUND',
    ])
  })
})

describe('a field that becomes required', () => {
  test('a new required field with a default is filled and found in all existing entities', async () => {
    const { put, docs, found, admin, path } = await createFilledFixture(
      [title],
      [{ identifier: 'a', title: 'x' }, { identifier: 'b' }],
    )
    const etag = (await admin.get(`${path}/a`)).headers.get('etag')!
    await put({ fields: [title, { key: 'state', type: 'string', required: true, default: 'new' }] })
    expect(await docs()).toEqual({ a: { title: 'x', state: 'new' }, b: { state: 'new' } })
    expect([await found('state=new'), await found('state[$ne]=new'), await found('$q=new')]).toEqual([
      ['a', 'b'],
      [],
      ['a', 'b'],
    ])
    expect((await admin.get(`${BLUEPRINT_PATH}/charts/pie?x=state`)).body.series[0].data).toEqual([
      { name: 'new', value: 2 },
    ])
    expect((await admin.get(`${BLUEPRINT_PATH}/charts/count?state=new`)).body).toEqual({ count: 2 })
    // ETags from before the change are outdated.
    expect((await admin.get(`${path}/a`, { 'if-none-match': etag })).status).toBe(200)
    expect((await admin.put(`${path}/a`, { title: 'y' }, { 'if-match': etag })).status).toBe(412)
    expect((await admin.put(`${path}/a`, { state: 'old' })).body.state).toBe('old')
    expect([await found('state=new'), await found('state=old')]).toEqual([['b'], ['a']])
  })

  test('a required field without a default is rejected with 409 FIELD_NEEDS_DEFAULT unless all entities have it', async () => {
    const { change, put, admin, path } = await createFilledFixture(
      [title],
      [{ identifier: 'a', title: 'x' }, { identifier: 'b' }],
    )
    const required = { fields: [{ ...title, required: true }] }
    const refused = await change(required)
    expect(statusAndCode(refused)).toEqual([409, 'FIELD_NEEDS_DEFAULT'])
    expect(refused.body.details).toMatchObject([{ field: 'title', count: 1, examples: ['b'] }])
    expect(statusAndCode(await change({ fields: [title, { ...count, required: true }] }))).toEqual([
      409,
      'FIELD_NEEDS_DEFAULT',
    ])
    await admin.put(`${path}/b`, { title: 'y' })
    await put(required)
    expect(statusAndCode(await admin.put(`${path}/b`, { title: null }))).toEqual([400, 'INVALID_INPUT'])
  })

  test('a default of a field that becomes required fills missing values only', async () => {
    const { put, docs, found } = await createFilledFixture(
      [title],
      [{ identifier: 'a', title: 'x' }, { identifier: 'b' }],
    )
    await put({ fields: [{ ...title, required: true, default: 'none' }] })
    expect(await docs()).toEqual({ a: { title: 'x' }, b: { title: 'none' } })
    expect([await found('title=none'), await found('title=x'), await found('$sort=title')]).toEqual([
      ['b'],
      ['a'],
      ['b', 'a'],
    ])
  })
})

describe('a renamed field', () => {
  const fields = [{ ...title, readRoles: ['boss'], writeRoles: ['boss'] }, count, { key: 'total', type: 'number' }]
  const more = { computed: { total: 'count * 2' }, limitations: [{ scope: 'tenant', properties: ['count'], value: 1 }] }

  test('a renamed field keeps its values, indexes, roles, limitations and full-text search', async () => {
    const { put, docs, found, as, path, admin } = await createFilledFixture(
      fields,
      [{ identifier: 'a', title: 'Walden pond', count: 2 }],
      more,
    )
    await found('$q=pond')
    const changed = await put({
      fields: [
        { key: 'heading', type: 'string', renamedFrom: 'title' },
        { ...count, key: 'number', renamedFrom: 'count' },
        { key: 'total', type: 'number' },
      ],
      computed: { total: 'number * 2' },
    })
    expect(changed.fields).toMatchObject([
      { key: 'heading', readRoles: ['boss'], writeRoles: ['boss'] },
      { key: 'number' },
      { key: 'total' },
    ])
    expect(changed.fields[0].renamedFrom).toBeUndefined()
    expect(changed.limitations).toEqual([{ scope: 'tenant', properties: ['number'], value: 1 }])
    expect(await docs()).toEqual({ a: { heading: 'Walden pond', number: 2, total: 4 } })
    expect([await found('heading=Walden%20pond'), await found('number=2'), await found('$q=pond')]).toEqual([
      ['a'],
      ['a'],
      ['a'],
    ])
    expect((await as('user').get(`${path}/a`)).body.metadata).toEqual({ number: 2, total: 4 })
    expect(await found('$q=pond', as('user'))).toEqual([])
    expect(statusAndCode(await as('user').get(`${path}?heading=x`))).toEqual([400, 'INVALID_INPUT'])
    expect(statusAndCode(await as('user').post(path, { number: 2 }))).toEqual([403, 'LIMIT_REACHED'])
    expect(statusAndCode(await admin.get(`${path}?title=x`))).toEqual([400, 'INVALID_INPUT'])
  })

  test('the old name of a renamed field can be used by a new, empty field', async () => {
    const { put, docs, found } = await createFilledFixture([title], [{ identifier: 'a', title: 'x' }])
    const heading = { key: 'heading', type: 'string', renamedFrom: 'title' }
    await put({ fields: [heading, { key: 'title', type: 'integer' }] })
    expect([await docs(), await found('title[$exists]=true'), await found('heading=x')]).toEqual([
      { a: { heading: 'x' } },
      [],
      ['a'],
    ])
    // The same rename can be sent again.
    await put({ fields: [{ ...heading, renamedFrom: undefined }] })
    await put({ fields: [heading] })
    expect(await docs()).toEqual({ a: { heading: 'x' } })
  })

  test('two fields can swap their names, and keep their values', async () => {
    const { put, docs, found } = await createFilledFixture(
      [title, { key: 'name', type: 'string' }],
      [{ identifier: 'a', title: 'x', name: 'y' }],
    )
    await put({
      fields: [
        { ...title, renamedFrom: 'name' },
        { ...title, key: 'name', renamedFrom: 'title' },
      ],
    })
    expect([await docs(), await found('title=y'), await found('name=x')]).toEqual([
      { a: { title: 'y', name: 'x' } },
      ['a'],
      ['a'],
    ])
  })

  test('a rename is rejected with 400 while a formula uses the old name, or when two fields claim one source', async () => {
    const { change, put, docs } = await createFilledFixture(fields, [{ identifier: 'a', count: 2 }], more)
    const renamed = [
      { ...count, key: 'number', renamedFrom: 'count' },
      { key: 'total', type: 'number' },
    ]
    const refused = await change({ fields: renamed })
    expect(statusAndCode(refused)).toEqual([400, 'INVALID_INPUT'])
    expect(refused.body.details).toMatchObject([{ path: '/computed/total' }])
    expect(refused.body.message).toContain('uses the field "count"')
    const twice = [
      { ...count, key: 'one', renamedFrom: 'count' },
      { ...count, key: 'two', renamedFrom: 'count' },
    ]
    expect(statusAndCode(await change({ fields: twice, computed: {}, limitations: [] }))).toEqual([
      400,
      'INVALID_INPUT',
    ])
    expect(statusAndCode(await change({ fields: [{ ...title, key: 'x', renamedFrom: 'nothing' }] }))).toEqual([
      400,
      'INVALID_INPUT',
    ])
    await put({
      fields: [...renamed.slice(0, 1), { key: 'sum', type: 'number', renamedFrom: 'total' }],
      computed: { sum: 'number * 3' },
    })
    expect(await docs()).toEqual({ a: { number: 2, sum: 6 } })
  })

  test('renamedFrom in a new blueprint is rejected with 400 INVALID_INPUT', async () => {
    const { admin } = await createFilledFixture([], [])
    const made = await admin.post('/blueprints', {
      key: 'more',
      name: 'More',
      fields: [{ ...title, renamedFrom: 'x' }],
    })
    expect(statusAndCode(made)).toEqual([400, 'INVALID_INPUT'])
  })
})

describe('a removed field', () => {
  test('a removed field disappears from all answers at once, and a later field of its name starts empty', async () => {
    const { put, docs, found, rows, admin, path } = await createFilledFixture(
      [title, count],
      [{ identifier: 'a', title: 'x', count: 1 }],
    )
    await found('$q=x')
    await put({ fields: [count] })
    expect(await docs()).toEqual({ a: { count: 1 } })
    expect((await admin.get(`${path}/a`)).body.title).toBeUndefined()
    expect(statusAndCode(await admin.get(`${path}?title=x`))).toEqual([400, 'INVALID_INPUT'])
    expect(await found('$q=x')).toEqual([])
    await put({ fields: [count, title] })
    expect([await docs(), await found('title=x'), await found('$q=x')]).toEqual([{ a: { count: 1 } }, [], []])
    await waitUntilSettled(admin)
    expect(await rows('entity_index')).toBe(1)
  })
})

describe('a field that changes its type or constraints', () => {
  const long = 'x'.repeat(300)
  test.each([
    [
      'integers become numbers',
      count,
      { type: 'number' },
      [1, 10, 9],
      ['count[$gt]=8.5', ['b', 'c']],
      ['$sort=count', ['a', 'c', 'b']],
    ],
    [
      'strings become decimals, which sort by number',
      { key: 'count', type: 'string' },
      { type: 'decimal' },
      ['1.50', '10', '9'],
      ['count=1.5', ['a']],
      ['$sort=count', ['a', 'c', 'b']],
    ],
    [
      'e-mail addresses become texts',
      { key: 'count', type: 'email' },
      { type: 'text' },
      ['a@b.de', 'b@b.de', 'c@b.de'],
      ['count=a@b.de', ['a']],
      ['$q=b', ['a', 'b', 'c']],
    ],
    [
      'file paths become texts, which are searchable',
      { key: 'count', type: 'file' },
      { type: 'text' },
      ['/one', '/two', '/three'],
      ['count=/two', ['b']],
      ['$q=three', ['c']],
    ],
    [
      'texts become datetimes, which compare as moments',
      { key: 'count', type: 'text' },
      { type: 'datetime' },
      ['2026-01-31T12:00:00Z', '2026-01-31T12:00:00+02:00', '2026-01-30T12:00:00Z'],
      ['count[$lt]=2026-01-31', ['c']],
      ['$sort=count', ['c', 'b', 'a']],
    ],
    [
      'unindexed texts become indexed',
      { key: 'count', type: 'text', indexed: false },
      { indexed: true },
      [long, `${long}y`, 'x'],
      [`count=${long}`, ['a']],
      ['$sort=-count', ['b', 'a', 'c']],
    ],
    ['single values become lists', count, { multi: true }, [1, 2, 1], ['count=1', ['a', 'c']], ['count[$ne]=1', ['b']]],
    [
      'lists of one value become single values',
      { ...count, multi: true },
      { multi: false },
      [[1], [2], [1]],
      ['count=1', ['a', 'c']],
      ['$sort=-count', ['b', 'c', 'a']],
    ],
    [
      'a field loses indexed',
      count,
      { indexed: false },
      [1, 2, 3],
      ['count[$gte]=2', ['b', 'c']],
      ['$sort=-count', ['c', 'b', 'a']],
    ],
    [
      'an unused enum choice is removed',
      { ...count, enum: [1, 2, 3] },
      { enum: [1, 2] },
      [1, 2, 1],
      ['count=1', ['a', 'c']],
      ['$sort=-count,identifier', ['b', 'a', 'c']],
    ],
    ['min and max are added', count, { min: 1, max: 2 }, [1, 2, 1], ['count=1', ['a', 'c']], ['count[$in]=2', ['b']]],
    [
      'relations become strings',
      { key: 'count', type: 'relation', target: 'things' },
      { type: 'string', target: undefined },
      [undefined, 'a', 'b'],
      ['count=a', ['b']],
      ['$q=b', ['c']],
    ],
  ] as [string, object, object, unknown[], [string, string[]], [string, string[]]][])(
    'all values are kept and queries are correct when %s',
    async (_, field, change, values, first, second) => {
      const things = values.map((count, n) => ({ identifier: 'abc'[n], count }))
      const { put, docs, found, admin } = await createFilledFixture([field], things)
      const before = await docs()
      await found('$q=nothing')
      const changed = { ...field, ...change } as { multi?: boolean }
      await put({ fields: [changed] })
      const wrap = !!changed.multi !== !!(field as { multi?: boolean }).multi
      const after = await docs()
      for (const [name, doc] of Object.entries(before) as [string, { count: unknown }][])
        expect(after[name]).toEqual(wrap ? { count: changed.multi ? [doc.count] : (doc.count as unknown[])[0] } : doc)
      const answers = async () => {
        for (const [query, expected] of [first, second]) {
          const { body } = await admin.get(`${BLUEPRINT_PATH}/entities?${sorted(query)}`)
          expect([query, identifiers(body)]).toEqual([query, expected])
        }
      }
      await answers()
      expect(await waitUntilSettled(admin)).toBeUndefined()
      await answers()
    },
  )

  test.each([
    ['turns non-numeric strings into numbers', title, { type: 'number' }, ['1', '2'], 'VALUES_DO_NOT_FIT'],
    [
      'turns fractions into integers',
      { key: 'title', type: 'number' },
      { type: 'integer' },
      [1, 1.5],
      'VALUES_DO_NOT_FIT',
    ],
    [
      'turns lists of several values into single values',
      { ...title, multi: true },
      { multi: false },
      [['a'], ['a', 'b']],
      'VALUES_DO_NOT_FIT',
    ],
    [
      'turns empty lists into required single values',
      { ...title, multi: true, required: true },
      { multi: false },
      [['a'], []],
      'FIELD_NEEDS_DEFAULT',
    ],
    [
      'removes an enum choice that is in use',
      { ...title, enum: ['a', 'b'] },
      { enum: ['a'] },
      ['a', 'b'],
      'VALUES_DO_NOT_FIT',
    ],
    ['sets a max below the length of a value', title, { max: 1 }, ['a', 'ab'], 'VALUES_DO_NOT_FIT'],
    ['sets a pattern that a value does not match', title, { pattern: '^a$' }, ['a', 'b'], 'VALUES_DO_NOT_FIT'],
    [
      'sets a schema that a value does not match',
      { key: 'title', type: 'object' },
      { schema: { required: ['a'] } },
      [{ a: 1 }, { b: 1 }],
      'VALUES_DO_NOT_FIT',
    ],
    [
      'turns strings into relations to a blueprint',
      title,
      { type: 'relation', target: 'things' },
      [undefined, 'a'],
      'FIELD_IN_USE',
    ],
    ['makes a field with equal values unique', title, { unique: true }, ['a', 'b', 'b'], 'DUPLICATE_VALUES'],
    [
      'makes values equal in a unique field by its new type',
      title,
      { type: 'decimal', unique: true },
      ['2', '1.0', '1.00'],
      'DUPLICATE_VALUES',
    ],
  ] as [string, object, object, unknown[], string][])(
    'a change that %s is rejected with 409, and nothing is altered',
    async (_, field, change, values, code) => {
      const things = values.map((title, n) => ({ identifier: 'abc'[n], title }))
      const { change: put, docs, admin } = await createFilledFixture([field], things)
      const [before, blueprint] = [await docs(), (await admin.get(BLUEPRINT_PATH)).body]
      const answer = await put({ fields: [{ ...field, ...change }] })
      expect([...statusAndCode(answer), answer.body.details[0].field]).toEqual([409, code, 'title'])
      expect(answer.body.details[0].examples).toContain('abc'[values.length - 1])
      expect([await docs(), (await admin.get(BLUEPRINT_PATH)).body]).toEqual([before, blueprint])
    },
  )
})

describe('a field that becomes unique', () => {
  test('a field with duplicates gets 409 DUPLICATE_VALUES with the entities, and becomes unique once they are removed', async () => {
    const things = Array.from({ length: 30 }, (_, n) => ({ identifier: `i${n}`, title: `t${n % 12}` }))
    const { change, put, admin, path } = await createFilledFixture([title], things)
    const answer = await change({ fields: [{ ...title, unique: true }] })
    expect(statusAndCode(answer)).toEqual([409, 'DUPLICATE_VALUES'])
    const [{ count, duplicates, examples }] = answer.body.details
    expect([count, duplicates.length, examples.length]).toEqual([30, 10, 10])
    expect(duplicates[0]).toEqual({ value: 't0', identifiers: ['i0', 'i12', 'i24'] })
    for (const { identifier } of things.slice(12)) await admin.delete(`${path}/${identifier}`)
    await put({ fields: [{ ...title, unique: true }] })
    expect(statusAndCode(await admin.post(path, { title: 't3' }))).toEqual([409, 'UNIQUE_VIOLATION'])
    expect((await admin.post(path, { title: 't99' })).status).toBe(201)
  })
})

describe('a changed formula', () => {
  const fields = [count, { key: 'total', type: 'integer' }, { key: 'more', type: 'integer' }]
  test('a changed formula is computed anew for all entities, or rejected with 409 NOT_COMPUTABLE', async () => {
    const { put, docs, found, change } = await createFilledFixture(
      fields,
      [
        { identifier: 'a', count: 1 },
        { identifier: 'b', count: 5 },
      ],
      { computed: { total: 'count * 2', more: 'total + 1' } },
    )
    await put({ computed: { total: 'count * 3', more: 'total + 1' } })
    expect(await docs()).toEqual({ a: { count: 1, total: 3, more: 4 }, b: { count: 5, total: 15, more: 16 } })
    expect([await found('more=4'), await found('more=3'), await found('total[$gt]=10')]).toEqual([['a'], [], ['b']])
    const answer = await change({ computed: { total: 'count / 2', more: 'total' } })
    expect(statusAndCode(answer)).toEqual([409, 'NOT_COMPUTABLE'])
    expect(answer.body.details).toMatchObject([{ field: 'total', count: 2, examples: ['a', 'b'] }])
    await put({ computed: {} })
    expect(await docs()).toMatchObject({ a: { total: 3 }, b: { total: 15 } })
  })

  test('a changed formula gets 503 BUSY in a dry run and in a real change while the queue of formulas is full', async () => {
    const own = await createFilledFixture(fields, [{ identifier: 'a', count: 1 }], { computed: { total: 'count * 2' } })
    const change = { computed: { total: 'count * 3' } }
    const refused = await withFullFormulaQueue(own.id, async () => [await own.dry(change), await own.change(change)])
    for (const answer of refused) {
      expect(statusAndCode(answer)).toEqual([503, 'BUSY'])
      expect(answer.headers.get('retry-after')).toBe('1')
    }
    expect(await own.docs()).toEqual({ a: { count: 1, total: 2 } })
    await own.put(change)
    expect(await own.docs()).toEqual({ a: { count: 1, total: 3 } })
  })

  test('a new default of an input field is used to compute the formula fields of existing entities', async () => {
    const { put, docs } = await createFilledFixture(fields, [{ identifier: 'a' }, { identifier: 'b', count: 5 }], {
      computed: { total: 'count * 2' },
    })
    await put({ fields: [{ ...count, required: true, default: 7 }, ...fields.slice(1)] })
    expect(await docs()).toEqual({ a: { count: 7, total: 14 }, b: { count: 5, total: 10 } })
  })
})

test('onDelete nullify of a renamed relation works during and after the alteration', async () => {
  const one = { key: 'of', type: 'relation', target: 'things', onDelete: 'nullify' }
  const things = [{ identifier: 'a' }, { identifier: 'b', of: 'a' }, { identifier: 'c', of: 'b' }]
  const { put, docs, admin, path, found } = await createFilledFixture([one], things)
  await put({ fields: [{ ...one, key: 'parents', renamedFrom: 'of', multi: true }] })
  expect((await admin.delete(`${path}/a`)).status).toBe(200)
  expect(await docs()).toEqual({ b: { parents: [] }, c: { parents: ['b'] } })
  expect((await admin.get(`${path}/c?$populate=true`)).body.parents[0].identifier).toBe('b')
  await waitUntilSettled(admin)
  expect((await admin.delete(`${path}/b`)).status).toBe(200)
  expect([await docs(), await found('parents=b')]).toEqual([{ c: { parents: [] } }, []])
})

test('a blueprint change with an outdated If-Match gets 412, and background work does not change the ETag', async () => {
  const { admin } = await createFilledFixture([title, count], [{ title: 'x' }])
  const etag = (await admin.get(BLUEPRINT_PATH)).headers.get('etag')!
  const answer = await admin.put(BLUEPRINT_PATH, { fields: [count] }, { 'if-match': etag })
  expect(answer.status).toBe(200)
  await waitUntilSettled(admin)
  expect(statusAndCode(await admin.put(BLUEPRINT_PATH, { fields: [title] }, { 'if-match': etag }))).toEqual([
    412,
    'VERSION_MISMATCH',
  ])
  // The background cleanup has not changed the ETag.
  expect(
    (await admin.put(BLUEPRINT_PATH, { fields: [title] }, { 'if-match': answer.headers.get('etag')! })).status,
  ).toBe(200)
})

test('an alteration in one tenant leaves an equal blueprint of another tenant unchanged', async () => {
  const [firstTenant, secondTenant] = [
    await createFilledFixture([title], [{ identifier: 'a', title: 'x' }]),
    await createFilledFixture([title], [{ identifier: 'a', title: 'x' }]),
  ]
  await firstTenant.put({ fields: [{ key: 'name', type: 'text', renamedFrom: 'title' }] })
  expect([await firstTenant.docs(), await secondTenant.docs()]).toEqual([{ a: { name: 'x' } }, { a: { title: 'x' } }])
})
