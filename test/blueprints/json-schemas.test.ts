import { describe, expect, test } from 'bun:test'
import { writeInvalidating } from '../../src/tenancy/cache'
import { createTestTenant, fullAccessRules, statusAndCode } from '../test-tenant'

const sharedTenant = createTestTenant()
let blueprintCount = 0

const DRAFT_07 = 'http://json-schema.org/draft-07/schema#'
const DRAFT_2019 = 'https://json-schema.org/draft/2019-09/schema'
const DRAFT_2020 = 'https://json-schema.org/draft/2020-12/schema'

async function createSchemaFixture(schema: object) {
  const { as, tenant } = await sharedTenant
  const admin = as('admin')
  const key = `s${++blueprintCount}`
  const created = await admin.post('/blueprints', {
    ...{ key, name: key, permissions: fullAccessRules('user', 'user') },
    fields: [{ key: 'value', type: 'object', schema }],
  })
  const add = async (value: unknown) => (await admin.post(`/blueprints/${key}/entities`, { value })).status
  return { tenant, admin, key, created, add }
}

describe('dialects of schemas', () => {
  test('a schema without $schema has the keywords of 2020-12', async () => {
    const { created, add } = await createSchemaFixture({
      properties: { pair: { prefixItems: [{ type: 'string' }, { type: 'integer' }], items: false }, card: {}, cvc: {} },
      dependentRequired: { card: ['cvc'] },
      unevaluatedProperties: false,
    })
    expect(created.status).toBe(201)
    expect(await add({ pair: ['a', 1], card: 'x', cvc: '1' })).toBe(201)
    expect(await add({ pair: ['a', 1, 2] })).toBe(400)
    expect(await add({ card: 'x' })).toBe(400)
    expect(await add({ other: 1 })).toBe(400)
  })

  test('$schema names draft-07 or 2019-09, and is shown again', async () => {
    for (const $schema of [DRAFT_07, DRAFT_2019]) {
      const schema = { $schema, properties: { pair: { items: [{ type: 'string' }], additionalItems: false } } }
      const { admin, key, created, add } = await createSchemaFixture(schema)
      expect(created.body.fields[0].schema).toEqual(schema)
      expect((await admin.get(`/blueprints/${key}`)).body.fields[0].schema).toEqual(schema)
      expect(await add({ pair: ['a'] })).toBe(201)
      expect(await add({ pair: ['a', 'b'] })).toBe(400)
    }
    const old = await createSchemaFixture({
      $schema: DRAFT_07,
      definitions: { a: { type: 'string' } },
      properties: { a: { $ref: '#/definitions/a', maxLength: 1 } },
    })
    expect(await old.add({ a: 'long, because draft-07 ignores what is beside $ref' })).toBe(201)
  })

  test.each([
    ['an unknown dialect', { $schema: 'https://example.com/mine' }, '/$schema'],
    ['draft-04', { $schema: 'http://json-schema.org/draft-04/schema#' }, '/$schema'],
    ['a misspelt keyword', { properties: { a: { minLenght: 1 } } }, '/properties/a/minLenght'],
    ['a keyword of another dialect', { $schema: DRAFT_07, unevaluatedItems: false }, '/unevaluatedItems'],
    [
      'a tuple of draft-07 in 2020-12',
      { $schema: DRAFT_2020, properties: { a: { items: [{}] } } },
      '/properties/a/items',
    ],
    ['an unknown type', { properties: { a: { type: 'text' } } }, '/properties/a/type'],
    ['a flaw in an unused definition', { $defs: { a: { anyOf: [{ maximum: '1' }] } } }, '/$defs/a/anyOf/0/maximum'],
  ])('rejects %s with 400 INVALID_INPUT at its path', async (_, schema, path) => {
    const { created } = await createSchemaFixture(schema)
    expect([...statusAndCode(created), created.body.details[0].path]).toEqual([
      ...[400, 'INVALID_INPUT'],
      `/fields/0/schema${path}`,
    ])
  })

  test('a misspelt keyword is answered with the one that was probably meant', async () => {
    const { created } = await createSchemaFixture({ requird: ['a'] })
    expect(created.body.details[0].message).toContain('Did you mean `required`?')
  })

  test('properties may have the names of keywords and of anything else', async () => {
    const { created, add } = await createSchemaFixture({
      properties: { $ref: { type: 'string' }, minLenght: { const: { $ref: '#/nowhere' } }, $schema: {} },
      'x-order': 1,
    })
    expect(created.status).toBe(201)
    expect(await add({ $ref: 'a', minLenght: { $ref: '#/nowhere' } })).toBe(201)
    expect(await add({ $ref: 1 })).toBe(400)
  })

  test('a reference is relative to the nearest schema with an $id', async () => {
    const { add } = await createSchemaFixture({
      $defs: { n: { type: 'string' } },
      properties: {
        inner: { $id: 'inner.json', $defs: { n: { type: 'integer' } }, properties: { n: { $ref: '#/$defs/n' } } },
        n: { $ref: '#/$defs/n' },
      },
    })
    expect(await add({ inner: { n: 1 }, n: 'a' })).toBe(201)
    expect(await add({ inner: { n: 'a' } })).toBe(400)
  })
})

describe('values of a field with a schema', () => {
  test('only own properties are present', async () => {
    const { add } = await createSchemaFixture({ required: ['constructor', 'toString'] })
    expect(await add({})).toBe(400)
    expect(await add({ constructor: 1, toString: 2 })).toBe(201)
  })

  test('equal objects are equal whatever the order of their properties', async () => {
    const { add } = await createSchemaFixture({ properties: { list: { uniqueItems: true } } })
    expect(
      await add({
        list: [
          { a: 1, b: [] },
          { b: [], a: 1 },
        ],
      }),
    ).toBe(400)
    expect(await add({ list: [{ a: 1 }, { a: '1' }] })).toBe(201)
  })

  test.each([
    ['date-time', '2030-01-31T12:00:00Z', '2030-01-31'],
    ['date', '2030-02-28', '2030-02-30'],
    ['email', 'a@example.com', 'a'],
    ['uri', 'https://example.com/', 'example'],
    ['uuid', '0191d7a0-0000-7000-8000-000000000000', '0191'],
    ['ipv4', '192.0.2.1', '192.0.2.256'],
  ])('the format %s is checked', async (format, valid, invalid) => {
    const { created, add } = await createSchemaFixture({ properties: { a: { format } } })
    expect(created.body.warnings).toEqual([])
    expect(await add({ a: valid })).toBe(201)
    expect(await add({ a: invalid })).toBe(400)
  })

  test('a format that is not known gets a warning', async () => {
    const { created, add } = await createSchemaFixture({ properties: { a: { format: 'cuid' } } })
    expect(created.body.warnings).toMatchObject([
      { path: '/fields/0/schema/properties/a/format', code: 'UNCHECKED_FORMAT' },
    ])
    expect(await add({ a: 'anything' })).toBe(201)
  })

  test('a long text does not keep the server busy with a format', async () => {
    const { add } = await createSchemaFixture({ properties: { a: { format: 'email' } } })
    const begin = performance.now()
    expect(await add({ a: `a@${'a'.repeat(500_000)}` })).toBe(400)
    expect(performance.now() - begin).toBeLessThan(2_000)
  })
})

test('a schema that was stored before goes on working, comes back unchanged with a warning, and cannot be stored anew', async () => {
  const { tenant, admin, key, add } = await createSchemaFixture({ title: 'x' })
  const stored = { title: 'x', requird: ['a'], properties: { pair: { items: [{ type: 'string' }] } } }
  const replace = 'update blueprints set definition = replace(definition, ?, ?)'
  await writeInvalidating(tenant, 'blueprints', (tx) =>
    tx.query(replace, [JSON.stringify({ title: 'x' }), JSON.stringify(stored)]),
  )
  expect(await add({ pair: ['a'] })).toBe(201)
  expect(await add({ pair: [1] })).toBe(400)
  const { body } = await admin.get(`/blueprints/${key}`)
  expect(body.warnings).toMatchObject([{ path: '/fields/0/schema/requird', code: 'INVALID_SCHEMA' }])
  const unchanged = await admin.put(`/blueprints/${key}`, { fields: body.fields, name: 'Other' })
  expect([unchanged.status, unchanged.body.warnings.length]).toEqual([200, 1])
  const schema = { ...stored, title: 'y' }
  const changed = await admin.put(`/blueprints/${key}`, { fields: [{ key: 'value', type: 'object', schema }] })
  expect(statusAndCode(changed)).toEqual([400, 'INVALID_INPUT'])
})
