import { expect, test } from 'bun:test'
import { compactEntities } from '../../src/entities/compaction'
import { withLease } from '../../src/jobs/with-lease'
import type { Tenant } from '../../src/tenancy/tenants'
import { fullAccessRules } from '../test-tenant'
import { countEarlier, storeAsEarlier } from './earlier-entities'
import { createThingsFixture, importThings } from './fixtures'

const fields = [
  { key: 'title', type: 'string', indexed: true },
  { key: 'notes', type: 'text' },
  { key: 'price', type: 'decimal' },
  { key: 'stock', type: 'integer', indexed: true },
  { key: 'active', type: 'boolean' },
  { key: 'moment', type: 'datetime' },
  { key: 'tags', type: 'string', multi: true },
  { key: 'place', type: 'object' },
]
const toThing = (n: number) => ({
  ...{ identifier: n % 3 ? `t${n}` : undefined, title: n % 5 ? `Title "${n}"` : 'long '.repeat(60 + n) },
  ...{ notes: n % 2 ? `{Notes}\n${n}` : undefined, price: `${n}.50`, stock: n % 10, active: n % 2 > 0 },
  ...{ moment: '2026-01-31T12:00:00Z', tags: ['a', `b${n}`], place: { city: 'Ulm', at: n } },
})

const QUERIES = ['title=Title "7"', 'notes[$like]=%251%25', 'price[$gt]=600', 'stock=3', 'tags=b8', 'place.city=Ulm']
QUERIES.push('$sort=title', '$sort=-notes,stock', 'active=true&$sort=moment', '$q=title', '$select=title,tags')

const compact = ({ tenant }: { tenant: Tenant }) => withLease(tenant, 'housekeeping', compactEntities)

async function createEarlierFixture(count: number) {
  const own = await createThingsFixture(fields, fullAccessRules('tenant', 'user'))
  await importThings(
    own,
    Array.from({ length: count }, (_, n) => toThing(n)),
  )
  const admin = own.as('admin')
  const answers = async () => {
    const all: unknown[] = []
    for (const query of QUERIES)
      for (const shape of ['', '&$flat=false'])
        all.push([query, (await admin.get(`${own.path}?${query}${shape}&$limit=50&$count=true`)).body])
    all.push((await admin.get(`${own.path}/export?format=csv`)).body)
    return all
  }
  return { ...own, admin, answers }
}

test('entities of an earlier version are read as they are, and take less room after they were stored anew', async () => {
  const own = await createEarlierFixture(700)
  const before = await own.answers()
  const sizeOf = async () => Number((await own.tenant.db.query('select sum(octet_length(shown)) from entities'))[0]![0])
  const lean = await sizeOf()
  await storeAsEarlier(own.tenant)
  expect(await countEarlier(own.tenant)).toBe(700)
  expect(await sizeOf()).toBeGreaterThan(lean + 700 * 200)
  expect(await own.answers()).toEqual(before)
  await compact(own)
  expect([await countEarlier(own.tenant), await sizeOf()]).toEqual([0, lean])
  expect(await own.answers()).toEqual(before)
  expect(await own.tenant.db.query('select * from entity_compaction')).toEqual([])
})

test('entities of an earlier version are changed and deleted before and while they are stored anew', async () => {
  const own = await createEarlierFixture(900)
  const indexRows = await own.rows('entity_index')
  await storeAsEarlier(own.tenant)
  const running = compact(own)
  for (let n = 1; n < 900; n += 30) {
    expect((await own.admin.put(`${own.path}/t${n}`, { title: `Title ${n}` })).status).toBe(200)
    expect((await own.admin.delete(`${own.path}/t${n + 1}`)).status).toBe(200)
  }
  await running
  expect(await countEarlier(own.tenant)).toBe(0)
  expect(await own.rows('entities')).toBe(870)
  // Title, stock, two tags and two parts of the place.
  expect(await own.rows('entity_index')).toBe(indexRows - 30 * 6)
  const found = await own.admin.get(`${own.path}?title=Title 31`)
  expect(found.body.map(({ identifier }: { identifier: string }) => identifier)).toEqual(['t31'])
})

test('an interrupted rewrite of earlier entities goes on where it ended', async () => {
  const own = await createEarlierFixture(900)
  await storeAsEarlier(own.tenant)
  const interrupted = withLease(own.tenant, 'housekeeping', (leased) =>
    compactEntities({ ...leased, signal: AbortSignal.timeout(15) }),
  )
  expect(await interrupted.catch((error: Error) => error.name)).toBe('TimeoutError')
  const left = await countEarlier(own.tenant)
  expect(left).toBeLessThan(900)
  expect(left).toBeGreaterThan(0)
  await compact(own)
  expect(await countEarlier(own.tenant)).toBe(0)
})
