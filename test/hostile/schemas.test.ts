import { expect, test } from 'bun:test'
import { createThingsFixture } from '../entities/fixtures'
import { createTestTenant, statusAndCode } from '../test-tenant'
import { cpuMsSince } from './cpu-time'

const testTenant = await createTestTenant()
const admin = testTenant.as('admin')
let blueprintCount = 0

/** Tries to make a blueprint with one object field of this schema. */
const createWithSchema = (schema: object) =>
  admin.post('/blueprints', {
    key: `b${++blueprintCount}`,
    name: 'B',
    fields: [{ key: 'data', type: 'object', schema }],
  })

/** A schema is refused with a sentence that says where, and soon. */
async function expectRejected(schema: object) {
  const start = process.cpuUsage()
  const answer = await createWithSchema(schema)
  expect([...statusAndCode(answer), answer.body.details[0].path], JSON.stringify(schema).slice(0, 200)).toEqual([
    400,
    'INVALID_INPUT',
    '/fields/0/schema',
  ])
  expect(answer.body.message).toMatch(/^This (schema|pattern) cannot be used: ./)
  expect(answer.body.message.length).toBeLessThan(400)
  expect(cpuMsSince(start)).toBeLessThan(2_000)
}

/** A shelf whose things have one object with this schema, and how an object fares there. */
async function createSchemaFixture(schema: object) {
  const { as, path } = await createThingsFixture([{ key: 'data', type: 'object', schema, indexed: false }])
  return async (data: unknown) => (await as('user').post(path, { data })).status
}

test('a schema that answers later is refused, wherever it says so', async () => {
  const late = { $async: true, type: 'object' }
  for (const schema of [
    late,
    { $async: false },
    { properties: { a: late } },
    { items: [{ allOf: [late] }] },
    { definitions: { a: late }, properties: { a: { $ref: '#/definitions/a' } } },
    { $defs: { unused: late } },
    { if: late, else: false },
  ])
    await expectRejected(schema)
})

test('a schema that unfolds to a multiple of itself is refused', async () => {
  for (const words of ['definitions', '$defs']) {
    const parts: Record<string, object> = { d0: { type: 'string' } }
    for (let n = 1; n <= 40; n++) {
      const $ref = `#/${words}/d${n - 1}`
      parts[`d${n}`] = { allOf: [{ $ref }, { properties: { a: { $ref }, b: { $ref } } }] }
    }
    await expectRejected({ [words]: parts, $ref: `#/${words}/d40` })
  }
})

test('a schema that refers to itself is refused', async () => {
  for (const schema of [
    { $ref: '#' },
    { properties: { child: { $ref: '#' } } },
    { definitions: { a: { $ref: '#/definitions/a' } }, $ref: '#/definitions/a' },
    {
      definitions: { a: { items: { $ref: '#/definitions/b' } }, b: { not: { $ref: '#/definitions/a' } } },
      $ref: '#/definitions/b',
    },
    { $recursiveRef: '#' },
    { $dynamicRef: '#a' },
  ])
    await expectRejected(schema)
})

test('a schema that leads elsewhere or nowhere is refused', async () => {
  for (const $ref of [
    'http://evil.test/schema.json',
    'file:///etc/passwd',
    'http://json-schema.org/draft-07/schema#',
    'other.json#/a',
    '#a',
    '#/definitions/none',
    '#/constructor',
    '#/__proto__',
    '#/properties/a/type/length',
    '',
  ])
    await expectRejected({ properties: { a: { type: 'string' } }, not: { $ref } })
})

test('references to parts of the same schema count, also those to parts with references and with odd names', async () => {
  const keep = await createSchemaFixture({
    definitions: { name: { type: 'string', minLength: 2 }, 'a/b~c': { $ref: '#/$defs/size' } },
    $defs: { size: { type: 'integer', minimum: 1 } },
    properties: {
      name: { $ref: '#/definitions/name', maxLength: 4 },
      size: { $ref: '#/definitions/a~1b~0c' },
      again: { $ref: '#/properties/name' },
    },
  })
  expect(await keep({ name: 'Ada', size: 1, again: 'Bob' })).toBe(201)
  for (const data of [{ name: 'A' }, { name: 'Adele' }, { size: 0 }, { size: 'x' }, { again: 'A' }, { again: 'Adele' }])
    expect(await keep(data), JSON.stringify(data)).toBe(400)
})

test('a property may be called "$ref"', async () => {
  const keep = await createSchemaFixture({
    properties: { $ref: { type: 'string' }, a: { properties: { $ref: { type: 'number' } } } },
  })
  expect(await keep({ $ref: '#/nowhere', a: { $ref: 1 } })).toBe(201)
  expect(await keep({ $ref: 1 })).toBe(400)
  expect(await keep({ a: { $ref: 'x' } })).toBe(400)
})

test('a list of thousands is seen to have no doubles before anybody has to wait', async () => {
  const keep = await createSchemaFixture({ properties: { list: { uniqueItems: true } } })
  const list = Array.from({ length: 2_400 }, (_, n) => ({ n, more: [`${n}`] }))
  const start = process.cpuUsage()
  expect(await keep({ list })).toBe(201)
  expect(await keep({ list: [...list, list[7]] })).toBe(400)
  expect(cpuMsSince(start)).toBeLessThan(2_000)
  expect(await keep({ list: [1, '1', null, 'null', [1], ['1']] })).toBe(201)
})

test('hundreds of fields with a schema are refused before anybody has to wait', async () => {
  const fields = Array.from({ length: 500 }, (_, n) => ({ key: `f${n}`, type: 'object', schema: {} }))
  const start = process.cpuUsage()
  const answer = await admin.post('/blueprints', { key: 'many', name: 'Many', fields })
  expect(statusAndCode(answer)).toEqual([400, 'INVALID_INPUT'])
  expect(cpuMsSince(start)).toBeLessThan(2_000)
  expect((await admin.post('/blueprints', { key: 'some', name: 'Some', fields: fields.slice(0, 10) })).status).toBe(201)
})

test('a schema of more characters than one needs is refused', async () => {
  const answer = await createWithSchema({ description: 'x'.repeat(20_000) })
  expect([...statusAndCode(answer), answer.body.details[0].path]).toEqual([400, 'INVALID_INPUT', '/fields/0/schema'])
})

test('a pattern fits no text of more than 2,000 characters, in a field and in a schema', async () => {
  const { as, path } = await createThingsFixture([
    { key: 'code', type: 'text', pattern: '^a*$' },
    { key: 'codes', type: 'text', multi: true, pattern: '^a*$' },
    { key: 'data', type: 'object', indexed: false, schema: { properties: { code: { pattern: '^a*$' } } } },
  ])
  for (const [length, status] of [
    [2_000, 201],
    [2_001, 400],
    [900_000, 400],
  ] as const) {
    const code = 'a'.repeat(length)
    for (const body of [{ code }, { codes: ['a', code] }, { data: { code } }])
      expect((await as('user').post(path, body)).status, `${Object.keys(body)} of ${length}`).toBe(status)
  }
})
