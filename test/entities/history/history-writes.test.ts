import { afterAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { exportTenant, importTenant } from '../../../src/backups/tenant-export'
import { createClientOf, freshId } from '../../backups/fixtures'
import { type ApiClient, fullAccessRules, statusAndCode, withoutRateLimits } from '../../test-tenant'
import { createBlueprintsFixture, createThingsFixture, importThings } from '../fixtures'
import { importBody, toNdjson } from '../transfer/import-fixtures'

setDefaultTimeout(60_000)
const limits = withoutRateLimits()
afterAll(() => limits[Symbol.dispose]())

const fields = [
  { key: 'title', type: 'string' },
  { key: 'n', type: 'integer' },
]
const createFixture = (history: object | boolean = true) =>
  createThingsFixture(fields, fullAccessRules('tenant', 'user'), { history })

/** Returns the versions of an entity in short: what each did, and the title after it. */
async function titlesOf(client: ApiClient, path: string, identifier: string) {
  const { body } = await client.get(`${path}/${identifier}/history?$limit=100&$entity=true`)
  return (body as { version: number; action: string; entity?: { title?: string } }[]).map(
    ({ version, action, entity }) => `${version} ${action} ${entity?.title ?? ''}`.trim(),
  )
}
const countVersions = async ({ tenant }: Awaited<ReturnType<typeof createFixture>>) =>
  Number((await tenant.db.query('select count(*) from entity_versions'))[0]![0])

describe('a creation', () => {
  test('a creation is the first version without a row, also by an import, and has its author', async () => {
    const own = await createFixture()
    const { as, path, users } = own
    await as('other').post(path, { identifier: 'a', title: 'one' })
    await importThings(
      own,
      Array.from({ length: 20 }, (_, n) => ({ identifier: `i${n}`, title: 'imported' })),
    )
    expect(await countVersions(own)).toBe(0)
    const { body } = await as('user').get(`${path}/a/history`)
    expect(body).toMatchObject([{ version: 1, action: 'create', by: users.other }])
    expect((await as('user').get(`${path}/i7/history`)).body).toMatchObject([{ version: 1, by: users.user }])
    await as('user').put(`${path}/i7`, { title: 'changed' })
    expect(await titlesOf(as('user'), path, 'i7')).toEqual(['2 change changed', '1 create imported'])
    expect((await as('user').get(`${path}/a?$asOf=${body[0].at}`)).body).toMatchObject({ title: 'one' })
  })

  test('an entity that is created again goes on with the versions of the removed one, also by an import', async () => {
    const own = await createFixture()
    const { as, path, users } = own
    for (const identifier of ['a', 'b']) {
      await as('other').post(path, { identifier, title: 'first' })
      await as('other').delete(`${path}/${identifier}`)
    }
    await as('user').post(path, { identifier: 'a', title: 'second' })
    await importThings(
      own,
      ['b', ...Array.from({ length: 20 }, (_, n) => `i${n}`)].map((identifier) => ({ identifier, title: 'second' })),
    )
    for (const identifier of ['a', 'b']) {
      await as('user').put(`${path}/${identifier}`, { title: 'third' })
      expect(await titlesOf(as('user'), path, identifier)).toEqual([
        ...['4 change third', '3 create second', '2 remove', '1 create first'],
      ])
      const { body } = await as('user').get(`${path}/${identifier}/history`)
      expect(body.map(({ by }: { by: string }) => by)).toEqual([users.user, users.user, users.other, users.other])
    }
    await as('user').delete(`${path}/a`)
    await as('user').post(path, { identifier: 'a', title: 'again' })
    expect((await titlesOf(as('user'), path, 'a')).slice(0, 2)).toEqual(['6 create again', '5 remove'])
  })
})

describe('an import', () => {
  const upsert = (own: Awaited<ReturnType<typeof createFixture>>, entries: object[]) =>
    importBody(own)(toNdjson(entries), 'format=ndjson&mode=upsert&atomic=true')

  test('each changed line of an import is a version', async () => {
    const own = await createFixture()
    const { as, path } = own
    await as('user').post(path, { identifier: 'a', title: 'one' })
    const lines = ['two', 'two', 'three'].map((title) => ({ identifier: 'a', title }))
    expect((await upsert(own, [...lines, { identifier: 'b', title: 'new' }])).body).toMatchObject({ failed: 0 })
    expect(await titlesOf(as('user'), path, 'a')).toEqual(['3 change three', '2 change two', '1 create one'])
    expect(await titlesOf(as('user'), path, 'b')).toEqual(['1 create new'])
  })

  test('an undone import leaves no versions of what it created, and a restored entity has what came before', async () => {
    const own = await createFixture()
    const { as, path } = own
    await as('user').post(path, { identifier: 'old', title: 'one' })
    await as('user').put(`${path}/old`, { title: 'two' })
    await as('user').post(path, { identifier: 'gone', title: 'first life' })
    await as('user').delete(`${path}/gone`)
    const rows = await countVersions(own)
    const made = ['a', 'b', 'a', 'gone', 'gone'].map((identifier, n) => ({ identifier, title: `import ${n}` }))
    // The lines before the refused one are more than one transaction takes.
    const more = Array.from({ length: 2_000 }, (_, n) => ({ n }))
    const { body } = await upsert(own, [{ identifier: 'old', title: 'three' }, ...made, ...more, { n: 'no number' }])
    expect(body).toMatchObject({ imported: 0, failed: 1 })
    expect(await titlesOf(as('user'), path, 'old')).toEqual([
      ...['4 change two', '3 change three', '2 change two', '1 create one'],
    ])
    // The change of the import and its restoration remain.
    expect(await countVersions(own)).toBe(rows + 2)
    expect(statusAndCode(await as('user').get(`${path}/a/history`))).toEqual([404, 'ENTITY_NOT_FOUND'])
    expect(await titlesOf(as('user'), path, 'gone')).toEqual(['2 remove', '1 create first life'])
    await as('user').post(path, { identifier: 'gone', title: 'second life' })
    expect((await titlesOf(as('user'), path, 'gone'))[0]).toBe('3 create second life')
  })
})

describe('removals', () => {
  test('a reference that is set to null with its target is a version of the entity that had it', async () => {
    const { admin, at, add, tenant } = await createBlueprintsFixture(
      { key: 'targets', fields: [] },
      {
        key: 'notes',
        fields: [
          { key: 'title', type: 'string' },
          { key: 'one', type: 'relation', target: 'targets', onDelete: 'nullify' },
          { key: 'many', type: 'relation', target: 'targets', multi: true, onDelete: 'nullify' },
        ],
        ...{ history: true },
      },
      {
        key: 'computing',
        fields: [
          { key: 'one', type: 'relation', target: 'targets', onDelete: 'nullify' },
          { key: 'sum', type: 'string' },
        ],
        computed: { sum: '$exists(one) ? "some" : "none"' },
        ...{ history: true },
      },
    )
    for (const target of ['x', 'y']) await add('targets', target)
    for (const note of ['a', 'b', 'c']) await add('notes', note, { one: 'x', many: ['x', 'y'] })
    for (const one of ['p', 'q', 'r']) await add('computing', one, { one: 'x' })
    expect((await admin.delete(at('targets', '/x'))).status).toBe(200)
    const me = (await admin.get('/me')).body._id
    for (const note of ['a', 'b', 'c'])
      expect((await admin.get(at('notes', `/${note}/history`))).body).toMatchObject([
        { version: 2, by: me, changes: { one: { from: 'x', to: null }, many: { from: ['x', 'y'], to: ['y'] } } },
        { version: 1, action: 'create' },
      ])
    for (const one of ['p', 'q', 'r'])
      expect((await admin.get(at('computing', `/${one}/history`))).body).toMatchObject([
        { version: 2, changes: { one: { from: 'x', to: null }, sum: { from: 'some', to: 'none' } } },
        { version: 1, changes: { sum: { from: null, to: 'some' } } },
      ])
    const crossed = `select count(*) from entities e join entity_versions v on v.seq = e.version_row
      where v.identifier <> e.identifier or v.number <> e.version_number`
    expect(Number((await tenant.db.query(crossed))[0]![0])).toBe(0)
  })

  test('a purge removes the versions of all lives of an entity, and of no other', async () => {
    const own = await createFixture()
    const { as, path } = own
    for (const identifier of ['a', 'b', 'c']) {
      await as('user').post(path, { identifier, title: 'one' })
      await as('user').put(`${path}/${identifier}`, { title: 'two' })
      await as('user').delete(`${path}/${identifier}`)
      await as('user').post(path, { identifier, title: 'three' })
      await as('user').put(`${path}/${identifier}`, { title: 'four' })
    }
    expect(await countVersions(own)).toBe(12)
    expect((await as('admin').delete(`${path}/a?purge=true`)).status).toBe(200)
    expect(await countVersions(own)).toBe(8)
    await as('user').delete(`${path}/b`)
    expect((await as('admin').delete(`${path}/b?purge=true`)).status).toBe(200)
    expect(await titlesOf(as('user'), path, 'c')).toHaveLength(5)
    for (const identifier of ['a', 'b']) {
      expect((await as('admin').get(`${path}/${identifier}/history`)).status).toBe(404)
      await as('user').post(path, { identifier, title: 'new' })
      expect(await titlesOf(as('user'), path, identifier)).toEqual(['1 create new'])
    }
    expect(await countVersions(own)).toBe(4)
  })
})

describe('a chain of versions', () => {
  test('changes at once, of few entities and in one transaction, make one complete chain each', async () => {
    const own = await createFixture()
    const { as, path, tenant } = own
    const identifiers = ['a', 'b', 'c', 'd']
    for (const identifier of identifiers) await as('user').post(path, { identifier, n: 0 })
    await Promise.all(
      Array.from({ length: 160 }, async (_, n) => {
        const identifier = identifiers[n % 4]!
        const data = { n: n + 1 }
        if (n % 8 < 4) return as('user').put(`${path}/${identifier}`, data)
        const operations = identifiers.map((name) => ({ op: 'update', identifier: name, data: { title: `${n}` } }))
        return as('user').post(`${path}/batch`, { operations })
      }),
    )
    for (const identifier of identifiers) {
      const { body } = await as('user').get(`${path}/${identifier}/history?$limit=100&$entity=true`)
      expect(body).toHaveLength(100)
      const [latest] = body
      expect((await as('user').get(`${path}/${identifier}`)).body.metadata).toEqual(latest.entity.metadata)
      for (const [at, { version, changes }] of body.entries()) {
        expect(version).toBe(latest.version - at)
        for (const [key, { from, to }] of Object.entries(changes) as [string, { from: unknown; to: unknown }][]) {
          expect(body[at].entity.metadata[key] ?? null).toEqual(to)
          if (body[at + 1]) expect(body[at + 1].entity.metadata[key] ?? null).toEqual(from)
        }
      }
    }
    const crossed = `select count(*) from entity_versions v join entity_versions p on p.seq = v.previous
      where p.identifier <> v.identifier or p.number <> v.number - 1`
    expect(Number((await tenant.db.query(crossed))[0]![0])).toBe(0)
  })

  test('more versions than are kept are not shown, and their rows are removed now and then', async () => {
    const own = await createFixture({ versions: 40, days: 30 })
    const { as, path } = own
    const made = await as('user').post(path, { identifier: 'a', n: 0 })
    await Bun.sleep(5)
    for (let n = 1; n < 75; n++) {
      await as('user').put(`${path}/a`, { n })
      const { body } = await as('user').get(`${path}/a/history?$limit=100`)
      expect(body.map(({ version }: { version: number }) => version)).toEqual(
        Array.from({ length: Math.min(n + 1, 40) }, (_, at) => n + 1 - at),
      )
      expect(Object.keys(body.at(-1).changes)).toEqual(n < 40 ? ['user', 'n'] : [])
      const known = await as('user').get(`${path}/a?$asOf=${made.body.created}`)
      expect([known.status, known.body.n ?? known.body.code]).toEqual(n < 40 ? [200, 0] : [410, 'HISTORY_NOT_KEPT'])
      const list = await as('user').get(`${path}?$asOf=${made.body.created}`)
      expect(list.status).toBe(n < 40 ? 200 : 410)
      expect(await countVersions(own)).toBeLessThanOrEqual(40 + 16)
    }
    expect((await as('user').post(`${path}/a/history/36/restore`)).body.n).toBe(35)
    expect(statusAndCode(await as('user').post(`${path}/a/history/36/restore`))).toEqual([404, 'VERSION_NOT_FOUND'])
  })

  test('a later history begins with what an entity is, whatever an earlier one said of it', async () => {
    const own = await createFixture()
    const { as, path } = own
    await as('user').post(path, { identifier: 'a', title: 'one' })
    await as('user').post(path, { identifier: 'b', title: 'one' })
    for (const title of ['two', 'three']) await as('user').put(`${path}/a`, { title })
    await as('admin').put('/blueprints/things', { history: false })
    await as('user').put(`${path}/a`, { title: 'between' })
    await Bun.sleep(5)
    await as('admin').put('/blueprints/things', { history: true })
    expect((await as('user').get(`${path}/a/history`)).body).toEqual([])
    await Bun.sleep(5)
    await as('user').put(`${path}/a`, { title: 'new' })
    expect((await as('user').get(`${path}/a/history?$entity=true`)).body).toMatchObject([
      { version: 2, action: 'change', changes: { title: { from: 'between', to: 'new' } } },
      { version: 1, action: 'change', by: null, changes: {}, entity: { title: 'between' } },
    ])
    await as('user').delete(`${path}/b`)
    expect((await as('user').get(`${path}/b/history?$entity=true`)).body).toMatchObject([
      { version: 2, action: 'remove' },
      { version: 1, action: 'create', by: null, entity: { title: 'one' } },
    ])
  })
})

test('an exported tenant keeps the versions of its entities, and goes on with them', async () => {
  const own = await createFixture()
  const { as, path, id, users } = own
  await as('user').post(path, { identifier: 'a', title: 'one' })
  await Bun.sleep(5)
  for (const title of ['two', 'three']) await as('user').put(`${path}/a`, { title })
  await as('user').post(path, { identifier: 'b', title: 'gone' })
  await as('user').delete(`${path}/b`)
  const before = await as('admin').get(`${path}/a/history?$entity=true`)
  const content = await new Promise<Blob>((resolve, reject) =>
    exportTenant(id, undefined, async (stream) => resolve(await new Response(stream).blob())).catch(reject),
  )
  const other = freshId()
  await importTenant(content.stream(), other, undefined)
  const copy = await createClientOf(other, users.admin)
  expect((await copy.get(`${path}/a/history?$entity=true`)).body).toEqual(before.body)
  expect(await titlesOf(copy, path, 'b')).toEqual(['2 remove', '1 create gone'])
  await copy.put(`${path}/a`, { title: 'four' })
  await copy.post(path, { identifier: 'b', title: 'back' })
  expect(await titlesOf(copy, path, 'a')).toEqual(['4 change four', '3 change three', '2 change two', '1 create one'])
  expect((await titlesOf(copy, path, 'b'))[0]).toBe('3 create back')
  expect((await copy.get(`${path}?$asOf=${before.body.at(-1).at}`)).body).toMatchObject([{ title: 'one' }])
})
