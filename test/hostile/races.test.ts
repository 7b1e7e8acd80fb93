import { expect, test } from 'bun:test'
import { Busy } from '../../src/storage/errors'
import type { Ask } from '../../src/storage/port'
import { Writer } from '../../src/storage/writer'
import { type Entity, shelf } from '../entities/kit'
import { house, rules } from '../house'

/** An engine that answers at once but keeps the processor for a while (ms) at every statement. */
function busyEngine(effort: number) {
  const asked: string[] = []
  const ask: Ask = async (sql) => {
    asked.push(sql)
    if (!sql.startsWith('insert')) return []
    const until = performance.now() + effort
    while (performance.now() < until);
    return []
  }
  const writer = new Writer(async (work) => {
    await work({ ask, each: async (sql, rows) => void (await Promise.all(rows.map((row) => ask(sql, row)))) })
    return {}
  }, 100)
  return { writer, asked, inserts: () => asked.filter((sql) => sql.startsWith('insert')).length }
}

test('a write that runs too long is ended though the engine answers at once', async () => {
  const { writer, asked, inserts } = busyEngine(20)
  const long = writer.write(async ({ ask }) => {
    for (let n = 0; n < 100; n++) await ask(`insert ${n}`)
  })
  await expect(long).rejects.toBeInstanceOf(Busy)
  expect(inserts()).toBeLessThan(100)
  expect(asked.slice(-2)).toEqual(['rollback to unit', 'release unit'])
  expect(await writer.write(async ({ ask }) => (await ask('insert')).length)).toBe(0)
})

test('a write that runs too long is ended though it takes no notice of refusals', async () => {
  const { writer, asked, inserts } = busyEngine(20)
  const stubborn = writer.write(async ({ ask }) => {
    for (let n = 0; n < 100; n++) await ask(`insert ${n}`).catch(() => {})
    return 'done'
  })
  await expect(stubborn).rejects.toBeInstanceOf(Busy)
  expect(inserts()).toBeLessThan(100)
  expect(asked).toContain('rollback to unit')
})

test('an entity that fitted a blueprint does not land in another one of the same key', async () => {
  const { as } = await house()
  const [admin, user] = [as('admin'), as('user')]
  const blueprint = (type: string) => ({
    key: 'things',
    name: 'Things',
    fields: [{ key: 'value', type, required: true }],
    permissions: rules('tenant', 'user'),
  })
  const path = '/blueprints/things'
  let remade = 0
  for (let round = 0; round < 40; round++) {
    await admin.delete(`${path}?force=true`)
    expect((await admin.post('/blueprints', blueprint('string'))).status).toBe(201)
    await user.get(`${path}/entities`)
    // The entity comes a little later each time.
    const entity = async () => {
      for (let turn = 0; turn < round; turn++) await null
      return user.post(`${path}/entities`, { value: 'a text' })
    }
    const answers = await Promise.all([admin.delete(path), admin.post('/blueprints', blueprint('integer')), entity()])
    for (const { status } of answers) expect(status).toBeOneOf([200, 201, 400, 404, 409])
    const now = await admin.get(path)
    if (now.status === 404) continue
    const { type } = now.body.fields[0] as { type: string }
    if (type === 'integer') remade++
    const { body } = (await admin.get(`${path}/entities`)) as { body: Entity[] }
    for (const { value } of body) expect(typeof value).toBe(type === 'integer' ? 'number' : 'string')
  }
  expect(remade).toBeGreaterThan(0)
})

test('entities that come while all are removed and the blueprint changes leave nothing behind', async () => {
  const field = (key: string) => ({ key, type: 'string', multi: true })
  const { as, path, rows, tenant } = await shelf([field('tags')])
  const [admin, user] = [as('admin'), as('user')]
  const orphans = async () =>
    Number(
      (await tenant.db.ask('select count(*) from entity_index where entity not in (select seq from entities)'))[0]![0],
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
