import { expect, test } from 'bun:test'
import { createThingsFixture, type Entity, nextPagePath } from '../entities/fixtures'
import { callApi, createTestTenant, fullAccessRules, statusAndCode, type TestResponse } from '../test-tenant'
import { cpuMsSince } from './cpu-time'

test('an object with values at very long paths is refused with 400 in less than 2 seconds of processor time', async () => {
  const { as, path, rows } = await createThingsFixture([{ key: 'data', type: 'object' }])
  const names = Array.from({ length: 40 }, (_, n) => `${n}`.padEnd(10_000, 'x'))
  const leaves = Object.fromEntries(Array.from({ length: 50_000 }, (_, n) => [`k${n}`, 1]))
  const deep = names.reduce<object>((inside, name) => ({ [name]: inside }), leaves)
  const start = process.cpuUsage()
  for (const data of [deep, { ['x'.repeat(257)]: 1 }]) {
    const answer = await as('user').post(path, { data })
    expect(statusAndCode(answer)).toEqual([400, 'INVALID_INPUT'])
    expect(JSON.stringify(answer.body).length).toBeLessThan(1_000)
  }
  expect(cpuMsSince(start)).toBeLessThan(2_000)
  expect((await as('user').post(path, { data: { ['x'.repeat(256)]: 1 } })).status).toBe(201)
  expect(await rows('entity_index')).toBe(1)
})

test('an entity with more than 2,000 indexed values is refused with 400 INVALID_INPUT', async () => {
  const { as, path, rows } = await createThingsFixture([
    { key: 'data', type: 'object' },
    { key: 'tags', type: 'integer', multi: true },
    { key: 'rest', type: 'object', indexed: false },
  ])
  const numbers = (length: number) => Array.from({ length }, (_, n) => n)
  const named = (length: number) => Object.fromEntries(numbers(length).map((n) => [`k${n}`, n]))
  const start = process.cpuUsage()
  for (const body of [
    { data: { list: numbers(2_001) } },
    { data: { list: numbers(100_000) } },
    { data: named(2_001) },
    { data: { list: numbers(1_000).map((n) => ({ a: n, b: [n], c: { d: n } })) } },
    { data: named(1_001), tags: numbers(1_000) },
  ])
    expect(statusAndCode(await as('user').post(path, body))).toEqual([400, 'INVALID_INPUT'])
  expect(cpuMsSince(start)).toBeLessThan(2_000)
  expect(await rows('entity_index')).toBe(0)
  const { status, body } = await as('user').post(path, { data: named(1_000), tags: numbers(1_000), rest: named(5_000) })
  expect([status, await rows('entity_index')]).toEqual([201, 2_000])
  expect(statusAndCode(await as('user').put(`${path}/${body._id}`, { tags: numbers(1_001) }))).toEqual([
    400,
    'INVALID_INPUT',
  ])
  expect(await rows('entity_index')).toBe(2_000)
})

test('a list of more than 2,000 values is refused with 400 INVALID_INPUT, indexed or not', async () => {
  const { as, path } = await createThingsFixture([
    { key: 'tags', type: 'integer', multi: true },
    { key: 'rest', type: 'integer', multi: true, indexed: false },
  ])
  for (const key of ['tags', 'rest']) {
    const list = Array.from({ length: 2_001 }, (_, n) => n)
    const answer = await as('user').post(path, { [key]: list })
    expect([...statusAndCode(answer), answer.body.details[0].path]).toEqual([400, 'INVALID_INPUT', `/${key}`])
    expect((await as('user').post(path, { [key]: list.slice(1) })).status).toBe(201)
  }
})

test('a refusal lists at most 100 errors and quotes the choices of a field briefly', async () => {
  const choices = Array.from({ length: 1_000 }, (_, n) => `${n} `.padEnd(100, 'x'))
  const { as, path } = await createThingsFixture([
    { key: 'choices', type: 'string', multi: true, enum: choices },
    { key: 'one', type: 'string', enum: choices },
    { key: 'parts', type: 'object', multi: true, schema: { required: ['a'] } },
  ])
  const unknown = Object.fromEntries(Array.from({ length: 5_000 }, (_, n) => [`u${n}`, 1]))
  for (const body of [
    { choices: Array(2_000).fill('none') },
    { parts: Array(2_000).fill({}) },
    unknown,
    { ...unknown, choices: Array(2_000).fill('none') },
  ]) {
    const answer = await as('user').post(path, body)
    expect(statusAndCode(answer)).toEqual([400, 'INVALID_INPUT'])
    expect(answer.body.details).toHaveLength(100)
    expect(JSON.stringify(answer.body).length).toBeLessThan(100_000)
  }
  const source = { name: 'Stock', kind: 'http', authentication: unknown }
  expect((await as('admin').post('/integration-sources', source)).body.details).toHaveLength(100)
  const { body } = await as('user').post(path, { one: 'none' })
  expect(body.message.length).toBeLessThan(400)
})

test('profile metadata that grows beyond 64 KiB by several updates is refused with 400 INVALID_INPUT', async () => {
  const { as } = await createTestTenant()
  const user = as('user')
  const piece = 'x'.repeat(30_000)
  for (const key of ['a', 'b']) expect((await user.post('/me', { metadata: { [key]: piece } })).status).toBe(200)
  const answer = await user.post('/me', { metadata: { c: piece } })
  expect([...statusAndCode(answer), answer.body.details[0].path]).toEqual([400, 'INVALID_INPUT', '/metadata'])
  expect(Object.keys((await user.get('/me')).body.metadata)).toEqual(['a', 'b'])
  expect((await user.post('/me', { metadata: { a: '', c: piece } })).status).toBe(200)
})

test('an entity that grows beyond the size limit by several updates is refused with 400 INVALID_INPUT', async () => {
  const { as, path, rows } = await createThingsFixture([
    { key: 'one', type: 'text', indexed: true },
    { key: 'other', type: 'text' },
  ])
  const half = 'x'.repeat(600_000)
  const { body } = await as('user').post(path, { one: half })
  const at = `${path}/${body._id}`
  expect(statusAndCode(await as('user').put(at, { other: half }))).toEqual([400, 'INVALID_INPUT'])
  const stored = (await as('user').get(at)).body
  expect([stored.one.length, stored.other, await rows('entity_index')]).toEqual([600_000, undefined, 1])
  expect((await as('user').put(at, { one: 'x', other: half })).status).toBe(200)
})

test.each([
  ['default values', { default: 'x'.repeat(900_000) }, {}],
  ['formulas', {}, { computed: { body: '$pad("x", 900000)' } }],
])('a small batch that grows too large by %s is refused with 413 BATCH_TOO_LARGE', async (_, more, rest) => {
  const body = { key: 'body', type: 'text', indexed: false, ...more }
  const { as, path, rows, origin, tokens } = await createThingsFixture(
    [body, { key: 'n', type: 'integer' }],
    fullAccessRules('tenant', 'user'),
    rest,
  )
  const user = as('user')
  const batch = async (operations: object[]): Promise<TestResponse> => {
    const answer = await user.post(`${path}/batch?$select=n`, { operations })
    // On a busy machine the batch may exceed the deadline of a write: it is retried.
    return answer.status === 503 ? batch(operations) : answer
  }
  const creates = (count: number) =>
    Array.from({ length: count }, (_, n) => ({ op: 'create', identifier: `e${n}`, data: { n } }))
  const refused = await batch(creates(30))
  expect([...statusAndCode(refused), await rows('entities')]).toEqual([413, 'BATCH_TOO_LARGE', 0])
  const made = await batch(creates(15))
  expect([made.status, await rows('entities')]).toEqual([200, 15])
  const updates = Array.from({ length: 30 }, (_, n) => ({ op: 'update', identifier: `e${n % 15}`, data: { n: n + 1 } }))
  expect(statusAndCode(await batch(updates))).toEqual([413, 'BATCH_TOO_LARGE'])
  expect((await user.get(`${path}/e0?$select=n`)).body.n).toBe(0)
  // The entities of an import are not answered, and are stored a few at a time.
  const lines = Array.from({ length: 30 }, (_, n) => `{"n":${n}}\n`).join('')
  const headers = { 'x-api-key': tokens.user, 'content-type': 'application/x-ndjson' }
  const imported = await callApi('POST', `${origin}/api${path}/import`, { headers, raw: lines })
  expect(imported.body).toEqual({ imported: 30, failed: 0, errors: [] })
})

test.each([1000, 50])(
  'a page of large entities with $limit=%d ends early, and its links lead to every entity once',
  async (limit) => {
    const { as, path } = await createThingsFixture([{ key: 'text', type: 'text', indexed: false }])
    const text = 'x'.repeat(1_000_000)
    const sent: string[] = []
    for (let n = 0; n < 20; n++) {
      const identifier = `e${n}`
      expect((await as('user').post(path, { identifier, text })).status).toBe(201)
      sent.push(identifier)
    }
    const MiB = 1 << 20
    const seen: string[] = []
    const sizes: number[] = []
    let next: string | undefined = `${path}?$sort=created&$limit=${limit}`
    while (next) {
      const { status, headers, body }: { status: number; headers: Headers; body: Entity[] } = await as('user').get(next)
      expect(status).toBe(200)
      seen.push(...body.map(({ identifier }) => identifier))
      sizes.push(JSON.stringify(body).length)
      next = nextPagePath(headers)
    }
    expect(seen).toEqual(sent)
    expect(sizes.length).toBeGreaterThan(1)
    for (const size of sizes) expect(size).toBeLessThan(19 * MiB)
    for (const size of sizes.slice(0, -1)) expect(size).toBeGreaterThan(14 * MiB)
  },
  15_000,
)
