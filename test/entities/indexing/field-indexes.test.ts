import { afterEach, describe, expect, test } from 'bun:test'
import { getModel } from '../../../src/blueprints/blueprints'
import { DAY_MS, moveClock } from '../../../src/core/clock'
import { retireUnusedIndexes } from '../../../src/entities/indexing/index-demand'
import { withLease } from '../../../src/jobs/with-lease'
import type { ApiClient } from '../../test-tenant'
import { statusAndCode } from '../../test-tenant'
import { waitUntil } from '../../wait-until'
import { createThingsFixture, identifiers, importThings } from '../fixtures'

const fields = [
  { key: 'title', type: 'string' },
  { key: 'stock', type: 'integer' },
  { key: 'active', type: 'boolean' },
  { key: 'tags', type: 'string', multi: true },
  { key: 'code', type: 'string', unique: true },
  { key: 'fixed', type: 'string', indexed: true },
  { key: 'plain', type: 'string', indexed: false },
]
const toThing = (n: number) => ({
  ...{ identifier: `t${n}`, title: `Title ${n}`, stock: n % 10, active: n % 2 > 0, code: `c${n}` },
  ...{ fixed: 'x', plain: 'p', tags: ['a'] },
})

type IndexItem = { field: string; state: string; reason: string }

/** Returns a tenant with so many things. */
async function createStockFixture(count: number, more: object = {}) {
  const own = await createThingsFixture(fields, undefined, more)
  if (count)
    await importThings(
      own,
      Array.from({ length: count }, (_, n) => toThing(n)),
    )
  const admin = own.as('admin')
  const indexes = () => listIndexes(admin)
  /** Waits until no index is being built or removed and these fields have one. */
  const settled = (...keys: string[]) =>
    waitUntil(
      () => admin.get('/blueprints/things/indexes'),
      ({ body }) =>
        body.every(({ state }: IndexItem) => state === 'ready') &&
        keys.every((key) => body.some(({ field }: IndexItem) => field === key)),
    ).then(indexes)
  const found = async (query: string) => identifiers((await admin.get(`${own.path}?${query}`)).body)
  const rowsOf = async (field: string) => {
    const { number } = (await getModel(own.tenant, 'things')).field.get(field)!
    return Number((await own.tenant.db.query('select count(*) from entity_index where field = ?', [number]))[0]![0])
  }
  return { ...own, admin, indexes, settled, found, rowsOf }
}

/** Returns the reason for the index of each field that has one. */
async function listIndexes(admin: ApiClient): Promise<Record<string, string>> {
  const { status, body } = await admin.get('/blueprints/things/indexes')
  expect(status).toBe(200)
  return Object.fromEntries(body.map(({ field, reason }: IndexItem) => [field, reason]))
}

const REQUIRED = { tags: 'list or object', code: 'unique', fixed: 'setting' }

afterEach(() => moveClock())

describe('indexes of fields', () => {
  test('a field has no index at first, and gets one when a filter, a sort or a chart reads many entities', async () => {
    const { admin, found, indexes, settled, rowsOf } = await createStockFixture(250)
    expect(await indexes()).toEqual(REQUIRED)
    expect(await rowsOf('stock')).toBe(0)
    const before = await found('stock=3&$limit=1000')
    expect(before).toHaveLength(25)
    expect(await settled('stock')).toEqual({ ...REQUIRED, stock: 'filter' })
    expect(await rowsOf('stock')).toBe(250)
    expect(await found('stock=3&$limit=1000')).toEqual(before)
    const sorted = await found('$sort=title&$limit=1000')
    await admin.get('/blueprints/things/charts/pie?x=active')
    expect(await settled('title', 'active')).toEqual({ ...REQUIRED, stock: 'filter', title: 'sort', active: 'chart' })
    expect(await found('$sort=title&$limit=1000')).toEqual(sorted)
  })

  test('a field gets an index when a pattern is compared with many entities, and not when a filter leaves few', async () => {
    const { admin, path, found, indexes, settled } = await createStockFixture(250)
    expect(await found('code=c7&fixed=x&title[$like]=%25le 7')).toEqual(['t7'])
    await Bun.sleep(50)
    expect(await indexes()).toEqual(REQUIRED)
    const before = await found('title[$like]=%2511%25&$limit=1000')
    expect(await settled('title')).toEqual({ ...REQUIRED, title: 'filter' })
    expect(await found('title[$like]=%2511%25&$limit=1000')).toEqual(before)
    const { body } = await admin.get(`${path}?$explain=true&title[$like]=%2511%25`)
    expect(body.left).toEqual([])
  })

  test('a field gets no index for a few entities, for a selective filter, or with indexed: false', async () => {
    const few = await createStockFixture(150)
    expect(await few.found('stock=3&$limit=1000')).toHaveLength(15)
    const many = await createStockFixture(250)
    expect(await many.found('code=c7&stock=7')).toEqual(['t7'])
    expect(await many.found('plain=p&$limit=1000&$sort=plain')).toHaveLength(250)
    await Bun.sleep(50)
    expect([await few.indexes(), await many.indexes()]).toEqual([REQUIRED, REQUIRED])
  })

  test('an index has the entities that are created, changed and deleted before, during and after it is built', async () => {
    const { admin, path, found, settled, rowsOf } = await createStockFixture(2_500)
    const writes = [found('stock=3')]
    for (let n = 0; n < 60; n++) {
      await admin.post(path, { ...toThing(3_000 + n), stock: 77 })
      await admin.put(`${path}/t${n}`, { stock: 77 })
      await admin.delete(`${path}/t${100 + n}`)
      if (n === 30) writes.push(found('stock=4'))
    }
    await Promise.all(writes)
    await settled('stock')
    expect(await rowsOf('stock')).toBe(2_500)
    expect(await found('stock=77&$limit=1000')).toHaveLength(120)
    expect(await found('stock=5&$limit=1000')).toHaveLength(238)
  })

  test('an index has only the latest value of an entity that changes repeatedly during the build', async () => {
    const count = 5_000
    const { admin, path, found, settled, rowsOf } = await createStockFixture(count)
    await found('stock=3')
    let isBuilt = false
    const built = settled('stock').finally(() => (isBuilt = true))
    for (let at = 0; !isBuilt; at += 20)
      await Promise.all(
        Array.from({ length: 20 }, (_, n) => admin.put(`${path}/t${(at + n) % count}`, { stock: 50 + (at % 7) })),
      )
    await built
    expect(await rowsOf('stock')).toBe(count)
  })

  test('an index is removed when no query has used it for 30 days, and built again when one needs it', async () => {
    const { tenant, found, indexes, settled, rowsOf } = await createStockFixture(250)
    await found('stock=3')
    await found('$sort=title')
    await settled('stock', 'title')
    moveClock(Date.now() + 29 * DAY_MS)
    await found('$sort=title')
    moveClock(Date.now() + 31 * DAY_MS)
    await withLease(tenant, 'housekeeping', retireUnusedIndexes)
    await waitUntil(async () => !(await indexes()).stock)
    expect(await settled()).toEqual({ ...REQUIRED, title: 'sort' })
    expect(await rowsOf('stock')).toBe(0)
    expect(await found('stock=3&$limit=1000')).toHaveLength(25)
    expect(await settled('stock')).toEqual({ ...REQUIRED, title: 'sort', stock: 'filter' })
    expect(await rowsOf('stock')).toBe(250)
  })

  test('a field gets an index when its setting or a limitation requires it, and keeps it afterwards', async () => {
    const { admin, settled, rowsOf } = await createStockFixture(50)
    const limitations = [{ scope: 'tenant', properties: ['stock'], value: 100 }]
    const change = { fields: fields.map((one) => (one.key === 'title' ? { ...one, indexed: true } : one)), limitations }
    expect((await admin.put('/blueprints/things', change)).status).toBe(200)
    expect(await settled()).toEqual({ ...REQUIRED, title: 'setting', stock: 'limitation' })
    expect([await rowsOf('title'), await rowsOf('stock')]).toEqual([50, 50])
    expect((await admin.put('/blueprints/things', { fields, limitations: [] })).status).toBe(200)
    expect(Object.keys(await settled()).sort()).toEqual(['code', 'fixed', 'stock', 'tags', 'title'])
  })

  test('a field that is renamed and changes its type keeps its index', async () => {
    const { admin, found, settled, rowsOf } = await createStockFixture(250)
    await found('stock=3')
    await settled('stock')
    const renamed = fields.map((one) =>
      one.key === 'stock' ? { key: 'amount', type: 'number', renamedFrom: 'stock' } : one,
    )
    expect((await admin.put('/blueprints/things', { fields: renamed })).status).toBe(200)
    expect(await settled()).toEqual({ ...REQUIRED, amount: 'filter' })
    expect([await found('amount=3&$limit=1000'), await rowsOf('amount')]).toEqual([expect.any(Array), 250])
    expect(await found('amount=3&$limit=1000')).toHaveLength(25)
  })

  test('the state of an index is part of $explain, and listed for editors only', async () => {
    const { admin, as, path, settled } = await createStockFixture(250)
    const explain = async () => (await admin.get(`${path}?$explain=true&stock=3&fixed[$exists]=true`)).body
    expect((await explain()).indexes).toEqual([
      { field: 'stock', state: 'none' },
      { field: 'fixed', state: 'ready', reason: 'setting' },
    ])
    await settled('stock')
    expect(await explain()).toMatchObject({
      considered: [{ of: 'stock in', rows: 25 }],
      indexes: [{ field: 'stock', state: 'ready', reason: 'filter' }, { field: 'fixed' }],
    })
    expect(statusAndCode(await as('user').get('/blueprints/things/indexes'))).toEqual([403, 'FORBIDDEN'])
    expect(statusAndCode(await admin.get('/blueprints/nothing/indexes'))).toEqual([404, 'BLUEPRINT_NOT_FOUND'])
  })

  test('an index of one tenant leaves the same blueprint of another tenant without one', async () => {
    const [own, other] = [await createStockFixture(250), await createStockFixture(250)]
    await own.found('stock=3')
    expect(await own.settled('stock')).toEqual({ ...REQUIRED, stock: 'filter' })
    expect(await other.indexes()).toEqual(REQUIRED)
  })

  test('an entity has index rows only for the fields that have an index', async () => {
    const { admin, path, rows } = await createStockFixture(0)
    expect((await admin.post(path, toThing(1))).status).toBe(201)
    expect(await rows('entity_index')).toBe(3)
  })
})

test('$like, $ne, $nin, ranges and $exists find the same entities with and without indexes', async () => {
  const long = 'long '.repeat(100)
  const things = Array.from({ length: 260 }, (_, n) => ({
    identifier: `t${n}`,
    ...(n % 7 ? { title: n % 5 ? `Ä${n}` : `${long}${n}` } : {}),
    stock: n % 10,
  }))
  const queries = ['title[$like]=%25 11%25', 'title[$like]=ä1%25', 'title[$exists]=false', 'stock[$gte]=4&stock[$lt]=6']
  queries.push(
    'stock[$nin]=1,2,3',
    'title[$ne]=Ä1',
    'stock=3&title[$like]=%252%25',
    '$sort=-title',
    '$sort=stock,title',
  )
  const ask = async (indexed?: boolean) => {
    const own = await createThingsFixture([
      { key: 'title', type: 'string', ...(indexed && { indexed }) },
      { key: 'stock', type: 'integer', ...(indexed && { indexed }) },
    ])
    await importThings(own, things)
    const answers: unknown[] = []
    for (const query of queries) {
      const { body, headers } = await own.as('admin').get(`${own.path}?${query}&$limit=1000&$count=true`)
      const chart = (await own.as('admin').get(`/blueprints/things/charts/count?${query.replace(/\$sort.*/, '')}`)).body
      answers.push([query, identifiers(body), headers.get('x-total-count'), chart])
    }
    return answers
  }
  expect(await ask()).toEqual(await ask(true))
})
