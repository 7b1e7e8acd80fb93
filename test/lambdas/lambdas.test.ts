import { describe, expect, test } from 'bun:test'
import { lambdas, runs, versions } from '../../src/lambdas/tables'
import { createTestTenant, statusAndCode } from '../test-tenant'
import { createLambda, toResult } from './fixtures'

const testTenant = await createTestTenant()
const admin = testTenant.as('admin')
const draft = (more: object = {}) => ({ name: 'greet', code: 'export default () => "hello"', ...more })
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

describe('CRUD of lambdas', () => {
  test('an admin creates, reads, updates and deletes a lambda, and a deleted lambda answers 404 LAMBDA_NOT_FOUND', async () => {
    const created = await admin.post('/lambdas', draft({ env: { KEY: 'secret', A: '1' } }))
    expect([created.status, created.body]).toEqual([
      201,
      {
        ...draft(),
        ...{ _id: expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f]{4}-7/), description: '', serviceRole: null, version: 1 },
        ...{ timeoutMs: 5_000, memoryMb: 64, env: ['A', 'KEY'] },
        ...{ created: expect.stringMatching(TIME), updated: created.body.created },
      },
    ])
    expect(JSON.stringify(created.body)).not.toContain('secret')
    const path = `/lambdas/${created.body._id}`
    expect((await admin.get(path)).body).toEqual(created.body)
    expect((await admin.get('/lambdas')).body).toContainEqual(created.body)

    const more = { description: 'says hello', timeoutMs: 100, memoryMb: 8, serviceRole: 'plugin' }
    const changed = await admin.put(path, more)
    expect(changed.body).toEqual({ ...created.body, ...more, updated: changed.body.updated })
    expect((await admin.patch(path, { name: 'wave' })).body).toMatchObject({ ...more, name: 'wave', version: 1 })

    expect((await admin.delete(path)).body).toEqual({ success: true })
    for (const answer of [
      ...[await admin.get(path), await admin.delete(path), await admin.put(path, {}), await admin.get(`${path}/logs`)],
      ...[await admin.get(`${path}/versions`), await admin.post(`${path}/rollback`, { version: 1 })],
      ...[await admin.post(`${path}/execute`, {}), await admin.get('/lambdas/none'), await admin.get('/lambdas/%00')],
    ])
      expect(statusAndCode(answer)).toEqual([404, 'LAMBDA_NOT_FOUND'])
    const id = created.body._id
    const remainingRows = await testTenant.tenant.db.query(
      `select 1 from lambda_versions where lambda = ? union all select 1 from lambda_runs where lambda = ?
        union all select 1 from sealed where owner = ?`,
      [id, id, id],
    )
    expect(remainingRows).toEqual([])
  })

  test('PUT accepts a lambda as it was read and ignores read-only properties', async () => {
    const created = await admin.post('/lambdas', draft({ env: { A: '1' } }))
    const sent = await admin.put(`/lambdas/${created.body._id}`, { ...created.body, _id: 'x', version: 9, more: 1 })
    expect(sent.body).toEqual({ ...created.body, updated: sent.body.updated })
  })

  test('rejects invalid names, code, limits, environments and roles with 400 INVALID_INPUT', async () => {
    for (const wrong of [
      ...[{ name: '' }, { name: 'a\nb' }, { name: undefined }, { code: '' }, { code: 5 }, { code: undefined }],
      ...[{ code: `//${' '.repeat(256 << 10)}` }, { timeoutMs: 30_001 }, { timeoutMs: 0 }, { timeoutMs: 1.5 }],
      ...[{ memoryMb: 0 }, { memoryMb: 257 }, { env: { 'a-b': '1' } }, { env: { a: 1 } }, { env: ['unknown'] }],
      ...[{ serviceRole: '' }, { serviceRole: 5 }, { description: null }],
    ])
      expect([wrong, ...statusAndCode(await admin.post('/lambdas', draft(wrong)))]).toEqual([
        wrong,
        400,
        'INVALID_INPUT',
      ])
  })

  test('rejects a lambda that imports a module with 400 INVALID_INPUT and names the alternatives', async () => {
    for (const code of ['import _ from "lodash"', 'import fs from "node:fs"', 'import { a } from "./a.ts"']) {
      const { status, body } = await admin.post('/lambdas', draft({ code: `${code}\nexport default () => 1` }))
      expect([status, body.code]).toEqual([400, 'INVALID_INPUT'])
      expect(body.message).toEndWith(
        'Lambdas cannot import modules. Use atoll.fetch, atoll.crypto, atoll.entities and atoll.events.',
      )
    }
  })

  test('PUT, DELETE and rollback with an outdated If-Match answer 412 VERSION_MISMATCH', async () => {
    const created = await admin.post('/lambdas', draft())
    const [path, first] = [`/lambdas/${created.body._id}`, created.headers.get('etag')!]
    expect((await admin.get(path)).headers.get('etag')).toBe(first)
    const racing = await Promise.all(
      ['a', 'b', 'c'].map((name) =>
        admin.put(path, { name, code: `export default () => "${name}"` }, { 'if-match': first }),
      ),
    )
    expect(racing.map(({ status }) => status).sort()).toEqual([200, 412, 412])
    expect((await admin.get(path)).body).toEqual(racing.find(({ status }) => status === 200)!.body)
    expect(statusAndCode(await admin.delete(path, { 'if-match': first }))).toEqual([412, 'VERSION_MISMATCH'])
    expect(statusAndCode(await admin.post(`${path}/rollback`, { version: 1 }, { 'if-match': first }))).toEqual([
      412,
      'VERSION_MISMATCH',
    ])
  })

  test('every lambda route answers 403 to other roles and 401 to anonymous callers', async () => {
    const path = await createLambda(admin, '() => 1')
    for (const [client, expected] of [
      [testTenant.as('editor'), [403, 'FORBIDDEN']],
      [testTenant.as('user'), [403, 'FORBIDDEN']],
      [testTenant.anonymous, [401, 'UNAUTHENTICATED']],
    ] as const)
      for (const answer of [
        ...[await client.get('/lambdas'), await client.get(path), await client.post('/lambdas', draft())],
        ...[await client.put(path, {}), await client.delete(path), await client.post(`${path}/execute`, {})],
        ...[
          await client.get(`${path}/logs`),
          await client.get(`${path}/versions`),
          await client.post(`${path}/rollback`, {}),
        ],
      ])
        expect(statusAndCode(answer)).toEqual([...expected])
  })

  test('admins of another tenant get 404 for a lambda and do not see it in their list', async () => {
    const path = await createLambda(admin, '() => 1')
    const otherAdmin = (await createTestTenant()).as('admin')
    expect((await otherAdmin.get('/lambdas')).body).toEqual([])
    for (const answer of [
      ...[await otherAdmin.get(path), await otherAdmin.put(path, { name: 'b' }), await otherAdmin.delete(path)],
      ...[await otherAdmin.post(`${path}/execute`, {}), await otherAdmin.get(`${path}/logs`)],
    ])
      expect(statusAndCode(answer)).toEqual([404, 'LAMBDA_NOT_FOUND'])
    expect((await admin.get(path)).status).toBe(200)
  })

  test('GET /lambdas sorts, filters and pages through the lambdas', async () => {
    const listAdmin = (await createTestTenant()).as('admin')
    for (const name of ['a', 'b', 'c', 'b']) await createLambda(listAdmin, '() => 1', { name })
    const names = async (query: string) =>
      (await listAdmin.get(`/lambdas?${query}`)).body.map(({ name }: { name: string }) => name)
    expect(await names('')).toEqual(['b', 'c', 'b', 'a'])
    expect(await names('sort=name&limit=2&page=2')).toEqual(['b', 'c'])
    expect(await names('name=b')).toEqual(['b', 'b'])
    const page = await listAdmin.get('/lambdas?limit=3&count=true')
    expect(page.headers.get('x-total-count')).toBe('4')
    expect(page.headers.get('link')).toContain('page=2')
    expect(statusAndCode(await listAdmin.get('/lambdas?sort=code'))).toEqual([400, 'INVALID_INPUT'])
  })
})

test('POST /lambdas/:id/execute accepts no body, a body, and unknown properties, but no invalid method', async () => {
  const path = await createLambda(admin, '({ method, body }) => [method, body]')
  expect(toResult(await admin.post(`${path}/execute`))).toEqual(['POST', null])
  expect(toResult(await admin.post(`${path}/execute`, { method: 'PUT', body: 1, input: 2 }))).toEqual(['PUT', 1])
  expect(statusAndCode(await admin.post(`${path}/execute`, { method: 5, input: 2 }))).toEqual([400, 'INVALID_INPUT'])
})

describe('the code of a lambda', () => {
  const refused = async (code: string) => {
    const { status, body } = await admin.post('/lambdas', draft({ code }))
    return [status, body.code, body.message, body.details?.[0]?.line, body.details?.[0]?.column]
  }

  test('a lambda may be TypeScript, and JavaScript keeps its lines for the stacks of errors', async () => {
    const typed = `type Body = { n: number }
      enum Kind { Small, Large }
      interface Answer { kind: string }
      export default async ({ body }: { body: Body }): Promise<Answer> => ({ kind: Kind[body!.n > 9 ? Kind.Large : Kind.Small] as string })`
    const { body } = await admin.post('/lambdas', draft({ code: typed }))
    expect(body.code).toBe(typed)
    expect(toResult(await admin.post(`/lambdas/${body._id}/execute`, { body: { n: 10 } }))).toEqual({ kind: 'Large' })

    const plain = '// a comment\n\n\nconst lambda = () => {\n  throw new Error("here")\n}\nexport default lambda'
    const path = `/lambdas/${(await admin.post('/lambdas', draft({ code: plain }))).body._id}`
    expect((await admin.post(`${path}/execute`, {})).body.error).toEqual({
      code: 'LAMBDA_FAILED',
      message: 'Error: here',
      stack: expect.stringContaining('lambda.js:5:'),
    })
  })

  test('rejects code with a syntax error with 400 INVALID_INPUT, its line and its column', async () => {
    expect(await refused('export default () => {\n  const a = ;\n}')).toEqual([
      ...[400, 'INVALID_INPUT', expect.stringMatching(/^Line 2, column 13: /), 2, 13],
    ])
    // One engine accepts this and the other does not.
    expect(await refused('\nexport default () => /(?<a>x/')).toMatchObject([
      400,
      'INVALID_INPUT',
      expect.any(String),
      2,
      22,
    ])
    const [status, code] = await refused(`export default ${'('.repeat(50_000)}1${')'.repeat(50_000)}`)
    expect([status, code]).toEqual([400, 'INVALID_INPUT'])
  })

  test('rejects code without a default export, with imports or with unsupported syntax with 400 INVALID_INPUT', async () => {
    expect(await refused('export const a = 1')).toEqual([
      400,
      'INVALID_INPUT',
      expect.stringMatching(/default export/),
      undefined,
      undefined,
    ])
    for (const text of ['import fs from "fs"\nexport default fs', 'export { default } from "node:fs"'])
      expect(await refused(text)).toEqual([
        400,
        'INVALID_INPUT',
        expect.stringMatching(/cannot import "(node:)?fs"/),
        undefined,
        undefined,
      ])
    const unsupported = 'export default () => { using a = { [Symbol.dispose]() {} } }'
    expect(await refused(unsupported)).toEqual([
      400,
      'INVALID_INPUT',
      expect.stringMatching(/are not supported/),
      undefined,
      undefined,
    ])
    const value = await createLambda(admin, '5')
    expect(toResult(await admin.post(`${value}/execute`, {}))).toEqual([
      'LAMBDA_FAILED',
      'TypeError: The default export of a lambda must be a function.',
    ])
  })

  test('rejects code that would exhaust the compiler with 400 INVALID_INPUT', async () => {
    const lines = Array.from({ length: 60 }, (_, n) => `a${n + 1} = a${n} + a${n}`)
    const bomb = `const enum E { a0 = 'xxxxxxxx', ${lines.join(', ')} }\nexport default () => E.a60`
    const [status, code] = await refused(bomb)
    expect([status, code]).toEqual([400, 'INVALID_INPUT'])
    expect(toResult(await admin.post(`${await createLambda(admin, '() => 1')}/execute`, {}))).toBe(1)
  })

  test('each change of the code is a new version, and a rollback makes an older one the newest', async () => {
    const path = await createLambda(admin, '() => 1')
    const returned = async () => toResult(await admin.post(`${path}/execute`, {}))
    expect(await returned()).toBe(1)
    expect((await admin.put(path, { code: 'export default () => 2' })).body.version).toBe(2)
    expect(await returned()).toBe(2)
    // Equal code makes no new version.
    expect((await admin.put(path, { code: 'export default () => 2', name: 'b' })).body.version).toBe(2)
    expect(statusAndCode(await admin.put(path, { code: 'export default (' }))).toEqual([400, 'INVALID_INPUT'])
    const back = await admin.post(`${path}/rollback`, { version: 1 })
    expect(back.body).toMatchObject({ version: 3, code: 'export default () => 1', name: 'b' })
    expect(await returned()).toBe(1)
    const { body } = await admin.get(`${path}/versions`)
    expect(body.map(({ version, code }: { version: number; code: string }) => [version, code.at(-1)])).toEqual([
      [3, '1'],
      [2, '2'],
      [1, '1'],
    ])
    expect(body[0]).toEqual({ ...body[0], user: testTenant.users.admin, created: expect.stringMatching(TIME) })
    const page = await admin.get(`${path}/versions?limit=1&page=2&count=1`)
    expect([page.body[0].version, page.headers.get('x-total-count')]).toEqual([2, '3'])
    expect(statusAndCode(await admin.post(`${path}/rollback`, { version: 9 }))).toEqual([404, 'VERSION_NOT_FOUND'])
    for (const version of [0, '1', 1.5])
      expect(statusAndCode(await admin.post(`${path}/rollback`, { version }))).toEqual([400, 'INVALID_INPUT'])
  })

  test('a lambda keeps the last 50 versions of its code', async () => {
    const path = await createLambda(admin, '() => 1')
    const id = path.slice('/lambdas/'.length)
    // Inserted directly, because so many changes take long.
    await testTenant.tenant.write(async (tx) => {
      const row = { lambda: id, code: 'export default 1', js: 'export default 1', user: null }
      for (let version = 2; version <= 60; version++)
        await tx.insert(versions).values({ ...row, version, created: new Date(0).toISOString() })
      await tx.update(lambdas).set({ version: 60 })
    })
    await admin.put(path, { code: 'export default () => 61' })
    const numbers = (await admin.get(`${path}/versions`)).body.map(({ version }: { version: number }) => version)
    expect([numbers.length, numbers[0], numbers.at(-1)]).toEqual([50, 61, 12])
  })
})

test('the values of the environment of a lambda are seen by it alone, and the API returns only their names', async () => {
  const path = await createLambda(admin, '(_, { env }) => env', { env: { A: 'one', B: 'two' } })
  const seen = async () => toResult(await admin.post(`${path}/execute`, {}))
  expect(await seen()).toEqual({ A: 'one', B: 'two' })
  expect((await admin.put(path, { env: { B: 'zwei', C: '' } })).body.env).toEqual(['A', 'B', 'C'])
  expect(await seen()).toEqual({ A: 'one', B: 'zwei', C: '' })
  expect((await admin.put(path, { env: { A: null, D: 'four' } })).body.env).toEqual(['B', 'C', 'D'])
  expect((await admin.put(path, { env: ['D', 'B'] })).body.env).toEqual(['B', 'D'])
  expect(await seen()).toEqual({ B: 'zwei', D: 'four' })
  expect((await admin.put(path, { env: {} })).body.env).toEqual(['B', 'D'])
  const rows = await testTenant.tenant.db.query('select * from sealed')
  expect(JSON.stringify(rows)).not.toContain('zwei')
  const many = Object.fromEntries(Array.from({ length: 99 }, (_, n) => [`N${n}`, '']))
  expect(statusAndCode(await admin.put(path, { env: many }))).toEqual([400, 'INVALID_INPUT'])
})

test('rejects a lambda beyond 16 MiB of code per tenant with 409 TOO_MANY_LAMBDAS', async () => {
  const full = await createTestTenant()
  const path = await createLambda(full.as('admin'), '() => 1')
  // Set directly, because so much code takes long.
  await full.tenant.write((tx) =>
    tx
      .update(lambdas)
      .set({ size: 16 << 20 })
      .run(),
  )
  expect(statusAndCode(await full.as('admin').post('/lambdas', draft()))).toEqual([409, 'TOO_MANY_LAMBDAS'])
  expect((await full.as('admin').put(path, { name: 'still' })).status).toBe(200)
  expect(await full.tenant.db.$count(runs)).toBe(0)
})
