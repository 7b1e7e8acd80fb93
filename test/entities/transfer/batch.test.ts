import { describe, expect, test } from 'bun:test'
import { apiClient, createTestTenant, fullAccessRules, statusAndCode } from '../../test-tenant'
import { createThingsFixture, identifiers } from '../fixtures'
import { refusedOperation } from './import-fixtures'

const fields = [
  { key: 'title', type: 'string', required: true },
  { key: 'code', type: 'string', unique: true },
  { key: 'stock', type: 'integer', default: 1 },
  { key: 'parent', type: 'relation', target: 'things' },
  { key: 'secret', type: 'string', readRoles: ['admin'], writeRoles: ['admin'] },
  { key: 'rank', type: 'integer', writeRoles: ['admin'] },
]
const createOperation = (data: object, identifier?: string) => ({ op: 'create', identifier, data })

describe('batches', () => {
  test('a batch creates, updates, upserts and deletes entities, and returns the result of each operation', async () => {
    const { as, path } = await createThingsFixture(fields)
    const user = as('user')
    await user.post(path, { identifier: 'old', title: 'Old', stock: 5 })
    await user.post(path, { identifier: 'gone', title: 'Gone' })
    const { status, body, headers } = await user.post(`${path}/batch`, {
      operations: [
        createOperation({ title: 'One' }, 'one'),
        createOperation({ metadata: { title: 'Two' }, identifier: 'two' }),
        { op: 'update', identifier: 'old', data: { title: 'New' } },
        { op: 'upsert', identifier: 'old', data: { code: 'x' } },
        { op: 'upsert', data: { identifier: 'three', title: 'Three' } },
        { op: 'delete', identifier: 'gone' },
        { op: 'update', identifier: 'one', data: { parent: 'three' } },
      ],
    })
    expect([status, body.message]).toEqual([200, undefined])
    expect(headers.get('content-type')).toContain('application/json')
    const results = body.results.map(({ op, identifier, status }: Record<string, unknown>) => [op, identifier, status])
    expect(results).toEqual([
      ['create', 'one', 201],
      ['create', 'two', 201],
      ['update', 'old', 200],
      ['upsert', 'old', 200],
      ['upsert', 'three', 201],
      ['delete', 'gone', 200],
      ['update', 'one', 200],
    ])
    expect(body.results[3].entity).toMatchObject({ title: 'New', code: 'x', stock: 5 })
    expect(body.results[0].entity).toMatchObject({ title: 'One', stock: 1, metadata: { title: 'One' } })
    expect(body.results[5].entity).toBeUndefined()
    expect(identifiers((await user.get(`${path}?$sort=identifier`)).body)).toEqual(['old', 'one', 'three', 'two'])
    expect((await user.get(`${path}/one`)).body.parent).toBe('three')
    expect(identifiers((await user.get(`${path}?code=x`)).body)).toEqual(['old'])
  })

  test('a batch with a rejected operation changes nothing, and returns its error and its index', async () => {
    const { as, path, rows } = await createThingsFixture(fields)
    const user = as('user')
    await user.post(path, { identifier: 'taken', title: 'Taken', code: 'c' })
    const before = [await rows('entities'), await rows('entity_index')]
    const good = Array.from({ length: 5 }, (_, n) => createOperation({ title: `${n}` }))
    const refused: [number, string, object[]][] = [
      [409, 'IDENTIFIER_EXISTS', [...good, createOperation({ title: 'x' }, 'taken')]],
      [409, 'UNIQUE_VIOLATION', [...good, createOperation({ title: 'x', code: 'c' })]],
      [400, 'INVALID_INPUT', [...good, createOperation({})]],
      [400, 'INVALID_INPUT', [...good, createOperation({ title: 5 })]],
      [400, 'INVALID_INPUT', [...good, createOperation({ title: 'x', parent: 'nobody' })]],
      [403, 'FORBIDDEN', [...good, createOperation({ title: 'x', secret: 's' })]],
      [403, 'FORBIDDEN', [...good, createOperation({ title: 'x', rank: 1 })]],
      [404, 'ENTITY_NOT_FOUND', [...good, { op: 'update', identifier: 'nobody', data: {} }]],
      [404, 'ENTITY_NOT_FOUND', [...good, { op: 'delete', identifier: 'nobody' }]],
      [400, 'INVALID_INPUT', [...good, { op: 'upsert', data: { title: 'x' } }]],
      [400, 'INVALID_INPUT', [...good, { op: 'explode' }]],
      [400, 'INVALID_INPUT', [...good, null as never]],
      [400, 'INVALID_INPUT', [...good, createOperation([] as never)]],
      [
        409,
        'IDENTIFIER_EXISTS',
        [...good.slice(1), createOperation({ title: 'x' }, 'new'), createOperation({ title: 'y' }, 'new')],
      ],
      [
        409,
        'UNIQUE_VIOLATION',
        [...good.slice(1), createOperation({ title: 'x', code: 'n' }), createOperation({ title: 'y', code: 'n' })],
      ],
    ]
    for (const [status, code, operations] of refused) {
      const answer = await user.post(`${path}/batch`, { operations })
      const what = JSON.stringify(operations.at(-1))
      expect([...statusAndCode(answer), refusedOperation(answer)], what).toEqual([status, code, 5])
      expect([await rows('entities'), await rows('entity_index')], what).toEqual(before)
    }
  })

  test('a batch returns the error of the first rejected operation', async () => {
    const { as, path } = await createThingsFixture(fields)
    const user = as('user')
    await user.post(path, { identifier: 'taken', title: 'Taken' })
    const operations = [
      createOperation({ title: 'a' }),
      createOperation({ title: 'b' }, 'taken'),
      createOperation({}),
      { op: 'delete', identifier: 'x' },
    ]
    const answer = await user.post(`${path}/batch`, { operations })
    expect([...statusAndCode(answer), refusedOperation(answer)]).toEqual([409, 'IDENTIFIER_EXISTS', 1])
  })

  test('an operation of a batch may refer to entities of earlier and of later operations, but not to a missing one', async () => {
    const { as, path } = await createThingsFixture(fields)
    const user = as('user')
    const tree = [
      createOperation({ title: 'root' }, 'root'),
      createOperation({ title: 'leaf', parent: 'root' }, 'leaf'),
    ]
    expect((await user.post(`${path}/batch`, { operations: tree })).status).toBe(200)
    const answer = await user.post(`${path}/batch`, {
      operations: [createOperation({ title: 'leaf', parent: 'root2' }), createOperation({ title: 'root' }, 'root2')],
    })
    expect(answer.status).toBe(200)
    const missing = await user.post(`${path}/batch`, {
      operations: [createOperation({ title: 'leaf', parent: 'nobody' }), createOperation({ title: 'root' }, 'root3')],
    })
    expect([...statusAndCode(missing), refusedOperation(missing)]).toEqual([400, 'INVALID_INPUT', 0])
  })

  test('a batch checks access before its body: 401 for anonymous callers, and 403 without a rule', async () => {
    const { as, path } = await createThingsFixture(fields, [
      { operation: 'read', scope: 'tenant', roleBased: ['user'] },
    ])
    const { path: otherPath, anonymous } = await createThingsFixture(fields)
    for (const body of [
      {},
      [],
      { operations: [{ op: 'nonsense' }] },
      { operations: [createOperation({ title: 'x' })] },
    ]) {
      expect(statusAndCode(await anonymous.post(`${otherPath}/batch`, body))).toEqual([401, 'UNAUTHENTICATED'])
      expect(statusAndCode(await as('user').post(`${path}/batch`, body))).toEqual([403, 'FORBIDDEN'])
    }
  })

  test('a batch error has the path of an invalid operation, or the index of a rejected one', async () => {
    const { as, path } = await createThingsFixture(fields)
    const detailsOf = async (...operations: unknown[]) =>
      (await as('user').post(`${path}/batch`, { operations: [createOperation({ title: 'x' }), ...operations] })).body
        .details
    expect(await detailsOf({ op: 'insert' })).toEqual([
      { path: '/operations/1/op', message: 'Unknown op. Use one of: create, update, upsert, delete.' },
    ])
    const missing = await detailsOf({ op: 'delete', identifier: 'none' })
    expect(missing).toEqual({ index: 1 })
    const { index, details } = await detailsOf(createOperation({ titel: 'x' }))
    expect([index, details[0].path]).toEqual([1, '/operations/1/data/titel'])
    expect(details[0].message).toContain('Did you mean `title`?')
  })

  test('an operation of a batch needs only the permission that it uses', async () => {
    const creating = [{ operation: 'create', scope: 'tenant', roleBased: ['user'] }]
    const { as, path, anonymous } = await createThingsFixture(fields, [
      ...creating,
      { operation: 'update', scope: 'user', roleBased: ['user'] },
      { operation: 'read', scope: 'tenant', roleBased: ['user'] },
    ])
    await as('admin').post(path, { identifier: 'hers', title: 'Hers' })
    const post = async (operation: object) => {
      const answer = await as('user').post(`${path}/batch`, {
        operations: [createOperation({ title: 'x' }), operation],
      })
      return answer.status === 200 ? 200 : [...statusAndCode(answer), refusedOperation(answer)]
    }
    expect(await post({ op: 'upsert', identifier: 'mine', data: { title: 'Mine' } })).toBe(200)
    expect(await post({ op: 'upsert', identifier: 'mine', data: { title: 'Mine' } })).toBe(200)
    expect(await post({ op: 'upsert', identifier: 'hers', data: { title: 'Mine' } })).toEqual([403, 'FORBIDDEN', 1])
    expect(await post({ op: 'delete', identifier: 'mine' })).toEqual([403, 'FORBIDDEN', 1])
    const { headers } = await as('user').post(`${path}/batch?$flat=false`, {
      operations: [createOperation({ title: 'w' })],
    })
    expect(headers.get('deprecation')).toBe('true')
    expect(
      statusAndCode(await anonymous.post(`${path}/batch`, { operations: [createOperation({ title: 'x' })] })),
    ).toEqual([401, 'UNAUTHENTICATED'])
  })

  test('a batch returns only the sent values to a caller who may update but not read', async () => {
    const blind = [{ operation: 'update', scope: 'tenant', roleBased: ['user'] }]
    const { as, path } = await createThingsFixture(fields, blind)
    await as('admin').post(path, { identifier: 'a', title: 'A', secret: 's' })
    const { body } = await as('user').post(`${path}/batch`, {
      operations: [{ op: 'update', identifier: 'a', data: { stock: 7 } }],
    })
    expect(body.results[0].entity).toEqual({
      _id: expect.any(String),
      identifier: 'a',
      metadata: { stock: 7 },
      stock: 7,
    })
  })

  test('a batch of 1,001 operations gets 400 INVALID_INPUT, and one of 1,000 succeeds', async () => {
    const { as, path, rows } = await createThingsFixture(fields)
    const operations = Array.from({ length: 1_001 }, (_, n) => createOperation({ title: `${n}`, code: `${n}` }))
    expect(statusAndCode(await as('user').post(`${path}/batch`, { operations }))).toEqual([400, 'INVALID_INPUT'])
    const { status, body } = await as('user').post(`${path}/batch`, { operations: operations.slice(1) })
    expect([status, body.results.length, await rows('entities')]).toEqual([200, 1_000, 1_000])
    for (const invalid of [undefined, {}, [], { operations: {} }, { operations: 'x' }])
      expect(statusAndCode(await as('user').post(`${path}/batch`, invalid))).toEqual([400, 'INVALID_INPUT'])
    expect((await as('user').post(`${path}/batch`, { operations: [] })).body).toEqual({ results: [] })
    expect(statusAndCode(await as('user').post('/blueprints/nothing/entities/batch', { operations: [] }))).toEqual([
      404,
      'BLUEPRINT_NOT_FOUND',
    ])
  })

  test('an empty batch of a caller who may not write gets 401 or 403', async () => {
    const { as, anonymous } = await createThingsFixture(fields, fullAccessRules('user', 'plugin'))
    const path = '/blueprints/things/entities/batch'
    expect(statusAndCode(await anonymous.post(path, { operations: [] }))).toEqual([401, 'UNAUTHENTICATED'])
    expect(statusAndCode(await as('user').post(path, { operations: [] }))).toEqual([403, 'FORBIDDEN'])
    expect((await as('editor').post(path, { operations: [] })).body).toEqual({ results: [] })
  })

  test('a batch whose answer is larger than a page gets 413 BATCH_TOO_LARGE', async () => {
    const { as, path } = await createThingsFixture([{ key: 'text', type: 'text' }])
    const user = as('user')
    await user.post(path, { identifier: 'one', text: 'x'.repeat(1_000_000) })
    const change = { op: 'update', identifier: 'one', data: {} }
    const many = Array.from({ length: 20 }, () => change)
    const rejected = await user.post(`${path}/batch`, { operations: [...many, createOperation({ text: 'y' })] })
    expect([statusAndCode(rejected), refusedOperation(rejected)]).toEqual([[413, 'BATCH_TOO_LARGE'], 16])
    expect((await user.get(path)).body).toHaveLength(1)
    expect((await user.post(`${path}/batch`, { operations: [change, change] })).status).toBe(200)
  })

  test('each operation of a batch counts for the rate limit of guests', async () => {
    const { anonymous, path } = await createThingsFixture(fields, [
      { operation: 'create', scope: 'tenant', guest: true },
    ])
    const post = async (count: number) =>
      statusAndCode(
        await anonymous.post(`${path}/batch`, {
          operations: Array.from({ length: count }, () => createOperation({ title: 'x' })),
        }),
      )
    expect(await post(11)).toEqual([400, 'INVALID_INPUT'])
    expect(await post(6)).toEqual([200, undefined])
    expect(await post(5)).toEqual([429, 'RATE_LIMITED'])
    expect(await post(4)).toEqual([200, undefined])
    expect(await post(1)).toEqual([429, 'RATE_LIMITED'])
  })

  test('a batch with an API token of another tenant gets 401', async () => {
    const [own, otherTenant] = [await createThingsFixture(fields), await createTestTenant()]
    const foreignClient = apiClient(otherTenant.origin, { 'x-api-key': own.tokens.user })
    const answer = await foreignClient.post(`${own.path}/batch`, { operations: [createOperation({ title: 'x' })] })
    expect(answer.status).toBe(401)
    expect(await own.rows('entities')).toBe(0)
  })
})

test('concurrent batches are each stored completely or not at all', async () => {
  const { as, path, rows } = await createThingsFixture(fields, fullAccessRules('tenant', 'user'))
  const user = as('user')
  const answers = await Promise.all(
    Array.from({ length: 20 }, (_, n) =>
      user.post(`${path}/batch`, {
        operations: [
          createOperation({ title: 'x' }),
          createOperation({ title: 'y', code: `${n % 5}` }),
          createOperation({ title: 'z' }),
        ],
      }),
    ),
  )
  expect(answers.filter(({ status }) => status === 200).length).toBe(5)
  expect(await rows('entities')).toBe(15)
})
