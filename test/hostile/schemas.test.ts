import { expect, test } from 'bun:test'
import { createThingsFixture } from '../entities/fixtures'
import { createTestTenant, statusAndCode } from '../test-tenant'
import { cpuMsSince } from './cpu-time'

const testTenant = await createTestTenant()
const admin = testTenant.as('admin')
let blueprintCount = 0

/** Tries to create a blueprint with one object field of this schema. */
const createWithSchema = (schema: object) =>
  admin.post('/blueprints', {
    key: `b${++blueprintCount}`,
    name: 'B',
    fields: [{ key: 'data', type: 'object', schema }],
  })

/** Expects that a schema is refused quickly, with its path and a sentence. */
async function expectRejected(schema: object) {
  const start = process.cpuUsage()
  const answer = await createWithSchema(schema)
  expect([...statusAndCode(answer), answer.body.details[0].path], JSON.stringify(schema).slice(0, 200)).toEqual([
    400,
    'INVALID_INPUT',
    expect.stringMatching(/^\/fields\/0\/schema(\/|$)/),
  ])
  expect(answer.body.message.length).toBeLessThan(400)
  expect(cpuMsSince(start)).toBeLessThan(2_000)
}

/** Creates a blueprint with one object field of this schema and returns a function that posts an object and returns the status. */
async function createSchemaFixture(schema: object) {
  const { as, path } = await createThingsFixture([{ key: 'data', type: 'object', schema, indexed: false }])
  return async (data: unknown) => (await as('user').post(path, { data })).status
}

test('an asynchronous schema is refused at any depth', async () => {
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

test('a schema whose references expand exponentially is refused', async () => {
  for (const words of ['definitions', '$defs']) {
    const parts: Record<string, object> = { d0: { type: 'string' } }
    for (let n = 1; n <= 40; n++) {
      const $ref = `#/${words}/d${n - 1}`
      parts[`d${n}`] = { allOf: [{ $ref }, { properties: { a: { $ref }, b: { $ref } } }] }
    }
    await expectRejected({ [words]: parts, $ref: `#/${words}/d40` })
  }
})

test('a recursive schema is refused', async () => {
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

test('a schema with a reference to another document or to nothing is refused', async () => {
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

test('references within a schema are validated, including nested references and escaped names', async () => {
  const postData = await createSchemaFixture({
    definitions: { name: { type: 'string', minLength: 2 }, 'a/b~c': { $ref: '#/$defs/size' } },
    $defs: { size: { type: 'integer', minimum: 1 } },
    properties: {
      name: { $ref: '#/definitions/name', maxLength: 4 },
      size: { $ref: '#/definitions/a~1b~0c' },
      again: { $ref: '#/properties/name' },
    },
  })
  expect(await postData({ name: 'Ada', size: 1, again: 'Bob' })).toBe(201)
  for (const data of [{ name: 'A' }, { name: 'Adele' }, { size: 0 }, { size: 'x' }, { again: 'A' }, { again: 'Adele' }])
    expect(await postData(data), JSON.stringify(data)).toBe(400)
})

test('a property named "$ref" is validated like any other property', async () => {
  const postData = await createSchemaFixture({
    properties: { $ref: { type: 'string' }, a: { properties: { $ref: { type: 'number' } } } },
  })
  expect(await postData({ $ref: '#/nowhere', a: { $ref: 1 } })).toBe(201)
  expect(await postData({ $ref: 1 })).toBe(400)
  expect(await postData({ a: { $ref: 'x' } })).toBe(400)
})

test('properties named "$id", "$schema" and "$anchor" are validated like any other property', async () => {
  const postData = await createSchemaFixture({
    $id: 'https://a.test/schema',
    $schema: 'http://json-schema.org/draft-07/schema#',
    properties: { $id: { type: 'string' }, $schema: { type: 'number' }, $anchor: { type: 'null' } },
    additionalProperties: false,
  })
  expect(await postData({ $id: 'a', $schema: 1, $anchor: null })).toBe(201)
  for (const data of [{ $id: 1 }, { $schema: 'x' }, { $anchor: 'x' }]) expect(await postData(data)).toBe(400)
})

test('uniqueItems checks a list of 2,400 objects in less than 2 seconds of processor time', async () => {
  const postData = await createSchemaFixture({ properties: { list: { uniqueItems: true } } })
  const list = Array.from({ length: 2_400 }, (_, n) => ({ n, more: [`${n}`] }))
  const start = process.cpuUsage()
  expect(await postData({ list })).toBe(201)
  expect(await postData({ list: [...list, list[7]] })).toBe(400)
  expect(cpuMsSince(start)).toBeLessThan(2_000)
  expect(await postData({ list: [1, '1', null, 'null', [1], ['1']] })).toBe(201)
})

test('a blueprint with 500 schema fields is refused in less than 2 seconds of processor time', async () => {
  const fields = Array.from({ length: 500 }, (_, n) => ({ key: `f${n}`, type: 'object', schema: {} }))
  const start = process.cpuUsage()
  const answer = await admin.post('/blueprints', { key: 'many', name: 'Many', fields })
  expect(statusAndCode(answer)).toEqual([400, 'INVALID_INPUT'])
  expect(cpuMsSince(start)).toBeLessThan(2_000)
  expect((await admin.post('/blueprints', { key: 'some', name: 'Some', fields: fields.slice(0, 10) })).status).toBe(201)
})

test('a schema with a description of 20,000 characters is refused with 400 INVALID_INPUT', async () => {
  const answer = await createWithSchema({ description: 'x'.repeat(20_000) })
  expect([...statusAndCode(answer), answer.body.details[0].path]).toEqual([400, 'INVALID_INPUT', '/fields/0/schema'])
})

test('a text of more than 2,000 characters never matches a pattern of a field or a schema', async () => {
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
