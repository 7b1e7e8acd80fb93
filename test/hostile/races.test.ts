import { expect, test } from 'bun:test'
import { Busy } from '../../src/storage/errors'
import { GroupCommitWriter } from '../../src/storage/group-commit'
import type { ExecuteMany, RunQuery } from '../../src/storage/port'
import { createThingsFixture, type Entity } from '../entities/fixtures'
import { errorOf } from '../rejections'
import { createTestTenant, fullAccessRules } from '../test-tenant'

/** An engine that answers at once but blocks the processor for `effort` ms at every insert. */
function createBusyEngine(effort: number) {
  const statements: string[] = []
  const query: RunQuery = async (sql) => {
    statements.push(sql)
    if (!sql.startsWith('insert')) return []
    const until = performance.now() + effort
    while (performance.now() < until);
    return []
  }
  const each: ExecuteMany = async (sql, rows) => (await Promise.all(rows.map((row) => query(sql, row)))).flat()
  const writer = new GroupCommitWriter(async (work) => {
    try {
      await work({ query, executeMany: each })
      statements.push('commit')
    } catch (error) {
      statements.push('rollback')
      throw error
    }
    return {}
  }, 100)
  return { writer, statements, inserts: () => statements.filter((sql) => sql.startsWith('insert')).length }
}

test('a write beyond the deadline is rolled back with Busy, and concurrent writes are committed', async () => {
  const { writer, statements, inserts } = createBusyEngine(20)
  const long: Parameters<typeof writer.write>[0] = async ({ query }) => {
    for (let n = 0; n < 100; n++) await query(`insert ${n}`)
  }
  expect(await errorOf(writer.write(long))).toBeInstanceOf(Busy)
  expect(inserts()).toBeLessThan(100)
  expect(statements.at(-1)).toBe('rollback')
  do {
    const short = writer.write(async () => 'kept')
    expect(await errorOf(writer.write(long))).toBeInstanceOf(Busy)
    expect(await short).toBe('kept')
  } while (statements.at(-1) === 'rollback') // on a slow machine, the short one may be committed before
  expect(statements.slice(-3)).toEqual(['rollback to unit', 'release unit', 'commit'])
  expect(await writer.write(async ({ query }) => (await query('insert')).length)).toBe(0)
})

test('a write beyond the deadline that ignores failed statements is rolled back with Busy', async () => {
  const { writer, statements, inserts } = createBusyEngine(20)
  const stubborn = writer.write(async ({ query }) => {
    for (let n = 0; n < 100; n++) await query(`insert ${n}`).catch(() => {})
    return 'done'
  })
  expect(await errorOf(stubborn)).toBeInstanceOf(Busy)
  expect(inserts()).toBeLessThan(100)
  expect(statements.at(-1)).toBe('rollback')
})

test('a write that fails when the engine retries its transaction fails alone', async () => {
  const query: RunQuery = async () => []
  const writer = new GroupCommitWriter(async (work) => {
    for (const _ of ['interrupted at its end', 'anew']) await work({ query, executeMany: async () => [] })
    return {}
  }, 1_000)
  let attempts = 0
  const failing = writer.write(async () => {
    if (++attempts > 1) throw new Error('not this time')
  })
  const beside = writer.write(async () => 'kept')
  expect((await errorOf(failing)).message).toContain('not this time')
  expect([await beside, attempts]).toEqual(['kept', 2])
})

test('an entity that was validated against a deleted blueprint is not stored in a new one of the same key', async () => {
  const { as } = await createTestTenant()
  const [admin, user] = [as('admin'), as('user')]
  const blueprint = (type: string) => ({
    key: 'things',
    name: 'Things',
    fields: [{ key: 'value', type, required: true }],
    permissions: fullAccessRules('tenant', 'user'),
  })
  const path = '/blueprints/things'
  let recreatedCount = 0
  for (let round = 0; round < 40; round++) {
    await admin.delete(`${path}?force=true`)
    expect((await admin.post('/blueprints', blueprint('string'))).status).toBe(201)
    await user.get(`${path}/entities`)
    const recreate = async () => [await admin.delete(path), await admin.post('/blueprints', blueprint('integer'))]
    // The entity is created a little later in each round.
    const entity = async () => {
      for (const start = performance.now() + round / 8; performance.now() < start; ) await new Promise(setImmediate)
      return user.post(`${path}/entities`, { value: 'a text' })
    }
    const answers = (await Promise.all([recreate(), entity()])).flat()
    for (const { status } of answers) expect(status).toBeOneOf([200, 201, 400, 404, 409])
    const now = await admin.get(path)
    if (now.status === 404) continue
    const { type } = now.body.fields[0] as { type: string }
    if (type === 'integer') recreatedCount++
    const { body } = (await admin.get(`${path}/entities`)) as { body: Entity[] }
    for (const { value } of body) expect(typeof value).toBe(type === 'integer' ? 'number' : 'string')
  }
  expect(recreatedCount).toBeGreaterThan(0)
})

test('entities created during removals and blueprint changes leave no orphaned index rows', async () => {
  const field = (key: string) => ({ key, type: 'string', multi: true })
  const { as, path, rows, tenant } = await createThingsFixture([field('tags')])
  const [admin, user] = [as('admin'), as('user')]
  const orphans = async () =>
    Number(
      (
        await tenant.db.query('select count(*) from entity_index where entity not in (select seq from entities)')
      )[0]![0],
    )
  for (let round = 0; round < 10; round++) {
    const fields = [field('tags'), ...Array.from({ length: round + 1 }, (_, n) => field(`more${n}`))]
    const add = () => user.post(path, { tags: ['a', 'b', 'c'] })
    await Promise.all(Array.from({ length: 20 }, add))
    const answers = await Promise.all([
      user.delete(`${path}/all?confirm=things`),
      add(),
      admin.put('/blueprints/things', { fields }),
      user.post(path, { tags: ['a'], more0: ['x', 'y'] }),
      admin.put('/blueprints/things', { description: `${round}` }),
      add(),
      user.delete(`${path}/all?confirm=things`),
    ])
    for (const { status } of answers) expect(status).toBeOneOf([200, 201, 400, 409])
    expect(await orphans()).toBe(0)
  }
  expect((await user.delete(`${path}/all?confirm=things`)).status).toBe(200)
  expect([await rows('entities'), await rows('entity_index')]).toEqual([0, 0])
})
