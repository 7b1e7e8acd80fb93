import { expect, test } from 'bun:test'
import { withLease } from '../../../src/jobs/with-lease'
import { SliceSize } from '../../../src/tenancy/slice-size'
import type { Tenant } from '../../../src/tenancy/tenants'
import { createThingsFixture, identifiers, importThings, indexWords } from '../fixtures'

/** The column of `search_words` with the number of the entity. */
const NUMBER = process.env.TEST_DATABASE_URL ? 'entity' : 'rowid'

const readIndexed = async ({ db }: Tenant) =>
  (await db.query(`select ${NUMBER} from search_words order by ${NUMBER}`)).map(([seq]) => Number(seq))
const readSeq = async ({ db }: Tenant, identifier: string) =>
  Number((await db.query('select seq from entities where identifier = ?', [identifier]))[0]![0])

async function createFixture() {
  const fixture = await createThingsFixture([{ key: 'title', type: 'string' }])
  await importThings(
    fixture,
    Array.from({ length: 10 }, (_, n) => ({ identifier: `thing${n}`, title: `Heron ${n}` })),
  )
  return fixture
}

/** Runs the work while the words of the things up to one are indexed, and no process goes on. */
const withHalfAnIndex = ({ tenant }: { tenant: Tenant }, last: string, work: (done: number) => Promise<unknown>) =>
  withLease(tenant, 'words things', async () => {
    const done = await readSeq(tenant, last)
    await tenant.write(async (tx) => {
      await tx.query("insert into search_progress (blueprint, done, upto) values ('things', ?, ?)", [done, done + 1])
      const rows = await tx.query('select seq from entities where seq <= ? order by seq', [done])
      const [[field] = []] = await tx.query("select number from fields where blueprint = 'things'")
      await tx.executeMany(
        'insert into search_words (rowid, words) values (?, ?)',
        rows.map(([seq]) => [seq, `f${field}wheron`]),
      )
    })
    await work(done)
  })

test('writes index the words of indexed entities, and leave those of others to the build', async () => {
  const fixture = await createFixture()
  const { as, path, tenant } = fixture
  const admin = as('admin')
  await withHalfAnIndex(fixture, 'thing4', async (done) => {
    const before = await readIndexed(tenant)
    expect(before.at(-1)).toBe(done)
    expect((await admin.post(path, { identifier: 'new', title: 'Otter' })).status).toBe(201)
    await importThings(fixture, [
      { identifier: 'more', title: 'Otter' },
      { identifier: 'most', title: 'Otter' },
    ])
    expect((await admin.put(`${path}/thing7`, { title: 'Otter' })).status).toBe(200)
    expect(await readIndexed(tenant)).toEqual(before)
    expect((await admin.put(`${path}/thing2`, { title: 'Otter' })).status).toBe(200)
    expect((await admin.delete(`${path}/thing1`)).status).toBe(200)
    const removed = before[1]
    expect(await readIndexed(tenant)).toEqual(before.filter((seq) => seq !== removed))
  })
  await indexWords(fixture)
  const search = async (query: string) => identifiers((await admin.get(`${path}?$q=${query}&$limit=100`)).body).sort()
  expect(await search('otter')).toEqual(['more', 'most', 'new', 'thing2', 'thing7'])
  expect(await search('heron')).toEqual(['thing0', 'thing3', 'thing4', 'thing5', 'thing6', 'thing8', 'thing9'])
  // From now on, writers index all words.
  await admin.post(path, { identifier: 'last', title: 'Otter' })
  expect(await search('otter')).toContain('last')
})

test('searches find all words of entities created and removed during the build', async () => {
  const fixture = await createThingsFixture([{ key: 'title', type: 'string' }])
  const { as, path, tenant } = fixture
  const admin = as('admin')
  await importThings(
    fixture,
    Array.from({ length: 1_500 }, (_, n) => ({ identifier: `thing${n}`, title: `Heron ${n}` })),
  )
  const indexing = indexWords(fixture)
  let isDone = false
  indexing.finally(() => {
    isDone = true
  })
  let count = 0
  for (; !isDone; count++) {
    await Promise.all([
      admin.post(path, { identifier: `new${count}`, title: 'Otter' }),
      admin.put(`${path}/thing${count % 700}`, { title: `Egret ${count}` }),
      admin.delete(`${path}/thing${1_499 - (count % 700)}`),
    ])
    // The number of a removed entity may be that of the next one.
    await admin.post(path, { identifier: 'passing', title: 'Otter' })
    await admin.delete(`${path}/passing`)
  }
  await indexing
  const found = async (query: string) =>
    Number((await admin.get(`${path}?$q=${query}&$limit=1&$count=true`)).headers.get('x-total-count'))
  const [changed, removed] = [Math.min(count, 700), Math.min(count, 700)]
  expect(await found('otter')).toBe(count)
  expect(await found('egret')).toBe(changed)
  expect(await found('heron')).toBe(1_500 - changed - removed)
  const countRows = async (table: string) => Number((await tenant.db.query(`select count(*) from ${table}`))[0]![0])
  expect(await countRows('search_words')).toBe(await countRows('entities'))
})

test('an update indexes words only if texts have changed', async () => {
  const fixture = await createThingsFixture([
    { key: 'title', type: 'string' },
    { key: 'price', type: 'integer' },
  ])
  const { as, path, tenant } = fixture
  const admin = as('admin')
  await importThings(fixture, [{ identifier: 'one', title: 'Heron', price: 1 }])
  await indexWords(fixture)
  // PostgreSQL tells which transaction has written a row.
  const written = process.env.TEST_DATABASE_URL
    ? `select xmin::text from search_words order by ${NUMBER}`
    : 'select id, block from search_words_data order by id'
  const readWritten = async () => (await tenant.db.query(written)).join()
  const before = await readWritten()
  expect((await admin.put(`${path}/one`, { price: 2 })).status).toBe(200)
  expect(await readWritten()).toBe(before)
  expect((await admin.put(`${path}/one`, { title: 'Egret' })).status).toBe(200)
  expect(await readWritten()).not.toBe(before)
  const search = async (word: string) => identifiers((await admin.get(`${path}?$q=${word}`)).body)
  expect([await search('heron'), await search('egret')]).toEqual([[], ['one']])
})

test('a slice takes fewer rows after a slow write, and at most twice as many after a fast one', () => {
  const size = new SliceSize(20, 500)
  const sizeAfter = (ms: number) => {
    size.record(size.rows, ms)
    return size.rows
  }
  expect([size.rows, sizeAfter(0.1), sizeAfter(0.1), sizeAfter(8), sizeAfter(80)]).toEqual([20, 40, 80, 40, 20])
  for (let n = 0; n < 10; n++) size.record(size.rows, 0)
  expect(size.rows).toBe(500)
})
