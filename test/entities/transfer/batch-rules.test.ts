import { describe, expect, test } from 'bun:test'
import { fullAccessRules, statusAndCode } from '../../test-tenant'
import { createBlueprintsFixture, createThingsFixture, identifiers } from '../fixtures'
import { exportByIdentifier, exportText, importBody, refusedOperation, toNdjson } from './import-fixtures'

const stringField = (key: string, more: object = {}) => ({ key, type: 'string', ...more })
const integerField = (key: string, more: object = {}) => ({ key, type: 'integer', ...more })
const createOperation = (identifier: string, data: object = {}) => ({ op: 'create', identifier, data })
const updateOperation = (identifier: string, data: object) => ({ op: 'update', identifier, data })
const upsertOperation = (identifier: string, data: object) => ({ op: 'upsert', identifier, data })
const deleteOperation = (identifier: string) => ({ op: 'delete', identifier })

describe('limitations in batches and imports', () => {
  const createLimitedFixture = (value: number) =>
    createThingsFixture(
      [stringField('status'), stringField('code', { unique: true })],
      fullAccessRules('tenant', 'user'),
      { limitations: [{ scope: 'user', properties: ['status'], value }] },
    )

  test('a limitation counts earlier creates of a batch, and rejects all of it with 403 LIMIT_REACHED', async () => {
    const { as, path, rows } = await createLimitedFixture(3)
    const user = as('user')
    await user.post(path, { status: 'a' })
    const open = (count: number) => Array.from({ length: count }, (_, n) => createOperation(`i${n}`, { status: 'a' }))
    const refused = await user.post(`${path}/batch`, {
      operations: [createOperation('other', { status: 'b' }), ...open(3)],
    })
    expect([...statusAndCode(refused), refusedOperation(refused)]).toEqual([403, 'LIMIT_REACHED', 3])
    expect(await rows('entities')).toBe(1)
    expect((await user.post(`${path}/batch`, { operations: open(2) })).status).toBe(200)
    expect(
      (await as('other').post(`${path}/batch`, { operations: [createOperation('x', { status: 'a' })] })).status,
    ).toBe(200)
  })

  test('a limitation counts earlier updates and deletes of a batch', async () => {
    const { as, path } = await createLimitedFixture(1)
    const user = as('user')
    for (const status of ['a', 'b']) await user.post(path, { identifier: status, status })
    const moves = (...operations: object[]) => user.post(`${path}/batch`, { operations })
    const refused = await moves(updateOperation('a', { code: 'x' }), updateOperation('b', { status: 'a' }))
    expect([...statusAndCode(refused), refusedOperation(refused)]).toEqual([403, 'LIMIT_REACHED', 1])
    expect((await moves(updateOperation('a', { status: 'c' }), updateOperation('b', { status: 'a' }))).status).toBe(200)
    expect((await moves(deleteOperation('a'), createOperation('new', { status: 'c' }))).status).toBe(200)
    expect(identifiers((await user.get(`${path}?$sort=status`)).body)).toEqual(['b', 'new'])
  })

  test('a limitation counts earlier lines of a dry run, as in the real import', async () => {
    const own = await createLimitedFixture(40)
    await own.as('user').post(own.path, { status: 'a' })
    const lines = toNdjson(Array.from({ length: 110 }, (_, n) => ({ identifier: `i${n}`, status: n % 3 ? 'a' : 'b' })))
    const tried = await importBody(own)(lines, 'format=ndjson&dryRun=true')
    expect([tried.body.imported, tried.body.failed, await own.rows('entities')]).toEqual([39 + 37, 34, 1])
    expect((await importBody(own)(lines)).body).toEqual(tried.body)
  })

  test('a limitation rejects the surplus lines of an import, and all lines of an atomic one', async () => {
    const own = await createLimitedFixture(2)
    const lines = toNdjson(Array.from({ length: 5 }, (_, n) => ({ identifier: `i${n}`, status: 'a' })))
    const { body } = await importBody(own)(lines)
    expect([body.imported, body.failed]).toEqual([2, 3])
    expect(body.errors.map(({ code }: { code: string }) => code)).toEqual(Array(3).fill('LIMIT_REACHED'))
    expect(await own.rows('entities')).toBe(2)
    expect((await importBody(own, 'other')(lines, 'format=ndjson&atomic=true')).body.imported).toBe(0)
    expect(await own.rows('entities')).toBe(2)
  })
})

describe('computed fields in batches and imports', () => {
  const fields = [
    integerField('price'),
    integerField('count', { default: 2 }),
    integerField('total'),
    stringField('label', { unique: true }),
  ]
  const createOrderFixture = (more: object = {}) =>
    createThingsFixture(fields, fullAccessRules('tenant', 'user'), {
      computed: { total: 'price * count', label: 'identifier & "-" & $string(total)' },
      ...more,
    })
  const totals = async ({ as, path }: Awaited<ReturnType<typeof createOrderFixture>>) =>
    Object.fromEntries(
      Object.entries<Record<string, unknown>>(await exportByIdentifier(as('user'), path)).map(
        ([key, { total, label }]) => [key, [total, label]],
      ),
    )

  test('a computed field is evaluated after each operation of a batch, also for one entity several times', async () => {
    const own = await createOrderFixture()
    const user = own.as('user')
    await user.post(own.path, { identifier: 'old', price: 1, count: 1 })
    const { status, body } = await user.post(`${own.path}/batch`, {
      operations: [
        createOperation('new', { price: 5, total: 99 }),
        updateOperation('new', { count: 3 }),
        updateOperation('old', { price: 7 }),
        upsertOperation('old', { count: 2 }),
        upsertOperation('third', { price: 1 }),
        upsertOperation('third', { price: 10 }),
        { op: 'create', data: { price: 4 } },
      ],
    })
    expect([status, body.message]).toEqual([200, undefined])
    expect(body.results.map(({ entity }: { entity: { total: number } }) => entity.total)).toEqual([
      ...[10, 15, 7, 14, 2, 20, 8],
    ])
    const { entity } = body.results.at(-1)
    expect(entity.label).toBe(`${entity._id}-8`)
    expect(await totals(own)).toMatchObject({ new: [15, 'new-15'], old: [14, 'old-14'], third: [20, 'third-20'] })
    expect(identifiers((await user.get(`${own.path}?total=14`)).body)).toEqual(['old'])
    expect(identifiers((await user.get(`${own.path}?label=third-2`)).body)).toEqual([])
  })

  test('a formula sees a relation that a delete of the same batch has cleared', async () => {
    const parent = { key: 'parent', type: 'relation', target: 'things', onDelete: 'nullify' }
    const { as, path } = await createThingsFixture(
      [parent, integerField('rank'), stringField('from')],
      fullAccessRules('tenant', 'user'),
      { computed: { from: 'parent ? parent : "nowhere"' } },
    )
    const user = as('user')
    await user.post(path, { identifier: 'a' })
    await user.post(path, { identifier: 'b', parent: 'a' })
    const operations = [deleteOperation('a'), updateOperation('b', { rank: 1 }), upsertOperation('a', { parent: 'b' })]
    expect((await user.post(`${path}/batch`, { operations })).status).toBe(200)
    expect(await exportByIdentifier(user, path)).toEqual({
      b: { rank: 1, from: 'nowhere' },
      a: { parent: 'b', from: 'b' },
    })
  })

  test('a formula error rejects a batch at its operation, unless an earlier one is rejected', async () => {
    const own = await createOrderFixture({ computed: { total: 'price > 9 ? $error("too dear") : price' } })
    const user = own.as('user')
    await user.post(own.path, { identifier: 'old', price: 1 })
    const refused = async (...operations: object[]) => {
      const answer = await user.post(`${own.path}/batch`, { operations })
      return [...statusAndCode(answer), refusedOperation(answer)]
    }
    const dear = { price: 10 }
    expect(await refused(createOperation('a', { price: 1 }), createOperation('b', dear))).toEqual([
      400,
      'INVALID_INPUT',
      1,
    ])
    expect(await refused(createOperation('a', { price: 1 }), updateOperation('old', dear))).toEqual([
      400,
      'INVALID_INPUT',
      1,
    ])
    expect(await refused(updateOperation('old', { price: 2 }), upsertOperation('new', dear))).toEqual([
      400,
      'INVALID_INPUT',
      1,
    ])
    expect(await refused(createOperation('old'), createOperation('b', dear))).toEqual([409, 'IDENTIFIER_EXISTS', 0])
    expect(await refused(updateOperation('none', {}), updateOperation('old', dear))).toEqual([
      404,
      'ENTITY_NOT_FOUND',
      0,
    ])
    expect(await totals(own)).toEqual({ old: [1, undefined] })
  })

  test('a computed field matches its inputs after concurrent batches and updates', async () => {
    const own = await createOrderFixture()
    const user = own.as('user')
    await user.post(own.path, { identifier: 'one', price: 1, count: 1 })
    const answers = await Promise.all(
      Array.from({ length: 30 }, (_, n) =>
        n % 2
          ? user.post(`${own.path}/batch`, { operations: [updateOperation('one', { price: n })] })
          : user.put(`${own.path}/one`, { count: n }),
      ),
    )
    expect(answers.map(({ status }) => status)).toEqual(Array(30).fill(200))
    const { body } = await user.get(`${own.path}/one`)
    expect([body.total, body.label]).toEqual([body.price * body.count, `one-${body.total}`])
  })

  test('a computed field of an imported line is evaluated, and a sent value is ignored', async () => {
    const own = await createOrderFixture()
    const user = own.as('user')
    await user.post(own.path, { identifier: 'i0', price: 100 })
    const lines = toNdjson(
      Array.from({ length: 250 }, (_, n) => ({ identifier: `i${n}`, price: n, total: -1, label: 'same' })),
    )
    const rehearsed = await importBody(own)(lines, 'format=ndjson&mode=upsert&dryRun=true')
    expect(rehearsed.body).toEqual({ imported: 250, failed: 0, errors: [] })
    expect(await totals(own)).toEqual({ i0: [200, 'i0-200'] })
    for (const atomic of [false, true]) {
      const { body } = await importBody(own)(lines, `format=ndjson&mode=upsert&atomic=${atomic}`)
      expect(body).toEqual({ imported: 250, failed: 0, errors: [] })
      expect(await totals(own)).toMatchObject({ i0: [0, 'i0-0'], i7: [14, 'i7-14'], i249: [498, 'i249-498'] })
    }
    const csv = (await user.get(`${own.path}/export?format=csv`)).body
    expect((await importBody(own)(csv, 'format=csv&mode=upsert')).body).toMatchObject({ imported: 250, failed: 0 })
  })

  test('a computed field is restored when an atomic import is undone', async () => {
    const own = await createOrderFixture()
    const user = own.as('user')
    await user.post(own.path, { identifier: 'old', price: 3 })
    const before = await exportText(user, own.path)
    const lines = toNdjson([{ identifier: 'old', price: 4 }, { identifier: 'new', price: 5 }, { price: 'x' }])
    const { body } = await importBody(own)(lines, 'format=ndjson&mode=upsert&atomic=true')
    expect([body.imported, body.failed]).toEqual([0, 1])
    expect(await exportText(user, own.path)).toBe(before)
    expect(identifiers((await user.get(`${own.path}?total=6`)).body)).toEqual(['old'])
  })

  test('a dry run rejects equal results of a unique computed field with UNIQUE_VIOLATION', async () => {
    const own = await createOrderFixture({ computed: { label: '$string(price)' } })
    const { body } = await importBody(own)(
      toNdjson([{ price: 1 }, { price: 2 }, { price: 1 }]),
      'format=ndjson&dryRun=true',
    )
    expect(body.errors).toMatchObject([{ line: 3, code: 'UNIQUE_VIOLATION' }])
  })
})

test('a relation in a batch may refer to earlier and later operations, but not to unreadable ones', async () => {
  const parent = { key: 'parent', type: 'relation', target: 'things' }
  const open = await createThingsFixture([parent])
  const send = ({ path, as }: typeof open, ...names: [string, string?][]) =>
    as('user').post(`${path}/batch`, { operations: names.map(([name, parent]) => createOperation(name, { parent })) })
  expect((await send(open, ['a'], ['b', 'a'], ['c', 'b'])).status).toBe(200)
  const later = await send(open, ['d'], ['e', 'f'], ['f', 'd'])
  expect(later.status).toBe(200)
  expect((await send(open, ['g', 'g'], ['h'])).status).toBe(200)
  const blind = await createThingsFixture([parent], [{ operation: 'create', scope: 'tenant', roleBased: ['user'] }])
  expect(statusAndCode(await send(blind, ['a'], ['b', 'a']))).toEqual([400, 'INVALID_INPUT'])
  expect([await open.rows('entities'), await blind.rows('entities')]).toEqual([8, 0])
})

describe('deletes in batches', () => {
  const createPeopleFixture = async (onDelete: string) => {
    const author = { key: 'author', type: 'relation', target: 'people', onDelete }
    const permissions = fullAccessRules('tenant', 'user')
    const own = await createBlueprintsFixture(
      { key: 'people', fields: [stringField('name')] },
      { key: 'books', fields: [author], permissions },
    )
    for (const name of ['ann', 'bob', 'cy']) await own.add('people', name)
    await own.add('books', 'one', { author: 'bob' })
    const batch = (key: string, ...operations: object[]) => own.user.post(own.at(key, '/batch'), { operations })
    return { ...own, batch }
  }

  test('a batch that deletes a referenced entity gets 409 ENTITY_IN_USE and deletes nothing', async () => {
    const { batch, has } = await createPeopleFixture('restrict')
    const refused = await batch(
      'people',
      updateOperation('cy', { name: 'x' }),
      deleteOperation('ann'),
      deleteOperation('bob'),
    )
    expect(statusAndCode(refused)).toEqual([409, 'ENTITY_IN_USE'])
    const references = [{ blueprint: 'books', field: 'author', count: 1 }]
    expect(refused.body.details).toEqual({ index: 2, details: { references } })
    expect(await has('people')).toEqual(['ann', 'bob', 'cy'])
    expect((await batch('books', deleteOperation('one'))).status).toBe(200)
    expect((await batch('people', deleteOperation('ann'), deleteOperation('bob'))).status).toBe(200)
    expect(await has('people')).toEqual(['cy'])
  })

  test('a delete in a batch applies nullify and cascade', async () => {
    const nullify = await createPeopleFixture('nullify')
    expect((await nullify.batch('people', deleteOperation('bob'))).status).toBe(200)
    expect((await nullify.user.get(nullify.at('books', '/one'))).body.author).toBeUndefined()
    const cascade = await createPeopleFixture('cascade')
    expect((await cascade.batch('people', deleteOperation('bob'))).status).toBe(200)
    expect(await cascade.has('books')).toEqual([])
  })

  test('a batch deletes 300 entities that refer to each other, and may create one of them again', async () => {
    const parent = { key: 'parent', type: 'relation', target: 'things' }
    const { as, path, rows } = await createThingsFixture([parent])
    const user = as('user')
    const names = Array.from({ length: 300 }, (_, n) => `i${n}`)
    const made = names.map((name, n) => createOperation(name, n ? { parent: names[n - 1] } : {}))
    const circle = updateOperation('i0', { parent: 'i299' })
    expect((await user.post(`${path}/batch`, { operations: [...made, circle] })).status).toBe(200)
    const deletes = names.map(deleteOperation)
    const refused = await user.post(`${path}/batch`, { operations: deletes.slice(1) })
    expect([...statusAndCode(refused), refusedOperation(refused)]).toEqual([409, 'ENTITY_IN_USE', 298])
    const done = await user.post(`${path}/batch`, {
      operations: [...deletes, upsertOperation('i5', {}), deleteOperation('i5')],
    })
    expect(done.body.results.slice(-2)).toMatchObject([{ status: 201 }, { status: 200 }])
    expect([await rows('entities'), await rows('entity_index')]).toEqual([0, 0])
  })

  test('a batch may create an entity by upsert that its cascade has deleted', async () => {
    const parent = { key: 'parent', type: 'relation', target: 'things', onDelete: 'cascade' }
    const { as, path } = await createThingsFixture([parent])
    const user = as('user')
    await user.post(path, { identifier: 'a' })
    await user.post(path, { identifier: 'b', parent: 'a' })
    const { body } = await user.post(`${path}/batch`, { operations: [deleteOperation('a'), upsertOperation('b', {})] })
    expect(body.results).toMatchObject([{ status: 200 }, { identifier: 'b', status: 201 }])
    expect(await exportByIdentifier(user, path)).toEqual({ b: {} })
  })
})

test('searches and exports find what batches and imports have stored', async () => {
  const own = await createThingsFixture([stringField('title')])
  const user = own.as('user')
  const found = async (word: string) => identifiers((await user.get(`${own.path}?$q=${word}&$sort=identifier`)).body)
  await user.post(own.path, { identifier: 'old', title: 'one whale' })
  expect(await found('whale')).toEqual(['old'])
  const operations = [
    createOperation('a', { title: 'two whales' }),
    createOperation('b', { title: 'a bear' }),
    updateOperation('old', { title: 'x' }),
  ]
  await user.post(`${own.path}/batch`, { operations })
  expect([await found('whale'), await found('bear')]).toEqual([['a'], ['b']])
  const lines = [
    { identifier: 'a', title: 'gone' },
    { identifier: 'c', title: 'whale' },
  ]
  await importBody(own)(toNdjson([...lines, { nothing: 1 }]), 'format=ndjson&mode=upsert&atomic=true')
  expect(await found('whale')).toEqual(['a'])
  await importBody(own)(toNdjson(lines), 'format=ndjson&mode=upsert')
  expect(Object.keys(await exportByIdentifier(user, own.path))).toEqual(['old', 'a', 'b', 'c'])
  expect((await exportText(user, own.path, '$q=whale')).match(/"identifier":"\w+"/g)).toEqual(['"identifier":"c"'])
  await user.post(`${own.path}/batch`, { operations: [deleteOperation('c')] })
  expect(await found('whale')).toEqual([])
})

test('a batch and a CSV export reject $populate with 400', async () => {
  const { as, path } = await createThingsFixture([stringField('title')])
  const batch = await as('user').post(`${path}/batch?$populate=user`, { operations: [createOperation('a')] })
  expect(statusAndCode(batch)).toEqual([400, 'INVALID_INPUT'])
  for (const query of ['$populate=user', '$outerPopulate=all:things:tenant']) {
    const { status, body } = await as('user').get(`${path}/export?format=csv&${query}`)
    expect([status, body.message]).toEqual([400, expect.any(String)])
  }
})
