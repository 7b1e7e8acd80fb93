import { expect, test } from 'bun:test'
import { withLease } from '../../../src/jobs/with-lease'
import type { Tenant } from '../../../src/tenancy/tenants'
import { type SeededRandom, seededRandom } from '../../blueprints/seeded-random'
import { createThingsFixture, identifiers, importThings, indexWords, nextPagePath } from '../fixtures'
import { withThresholds } from '../query/small-thresholds'

/** Runs the work while another process seems to build the index of words. */
const withoutWordIndex = (tenant: Tenant, work: () => Promise<unknown>) => withLease(tenant, 'words things', work)

const countIndexed = async ({ db }: Tenant) => Number((await db.query('select count(*) from search_words'))[0]![0])
const fields = [
  { key: 'title', type: 'string' },
  { key: 'notes', type: 'text' },
  { key: 'tags', type: 'string', multi: true },
  { key: 'secret', type: 'string', readRoles: ['boss'] },
  { key: 'price', type: 'integer' },
]
const WORDS = [
  ...['a', 'ab', 'abc', 'b', '1', '12', 'and', 'f1', 'É', 'é', 'ß', 'ss', '東', '東京', 'Łódź', 'lodz', 'ﬁn', 'fin'],
  ...['в', 'Ёлка', 'елка', 'がく', 'かく', 'कि', 'का', 'naïve', "don't", 'x_y', '\\u0041', '"q"', 'n\nn', 'İ', 'I'],
  ...['w'.repeat(63), 'w'.repeat(64), 'w'.repeat(65), `${'w'.repeat(64)}é`],
]
const makeThing = ({ pick, some, below }: SeededRandom, n: number) => ({
  identifier: `thing${n}`,
  title: some(WORDS, 3).join(pick([' ', ', ', '-', ''])),
  notes: [...some(WORDS, 5), ...(n % 97 ? [] : [' '.repeat(pick([5_000, 60_000]))]), ...some(WORDS, 1)].join(' '),
  tags: some(WORDS, 2),
  secret: pick(WORDS),
  price: below(5),
})

async function createFixture(count: number) {
  const fixture = await createThingsFixture(fields)
  const random = seededRandom(11)
  await importThings(
    fixture,
    Array.from({ length: count }, (_, n) => makeThing(random, n)),
  )
  return fixture
}

test.each(['usual', 'small'] as const)(
  'a search before its words are indexed has the pages, count, charts and export of one after, with %s thresholds',
  async (size) => {
    const fixture = await createFixture(300)
    const { as, path, tenant } = fixture
    const { pick, some, below } = seededRandom(23)
    const questions = Array.from({ length: size === 'usual' ? 100 : 50 }, () => {
      const text = [pick(WORDS), ...some(WORDS, 1)].join(' ') + pick(['', '', '!', ' '])
      const more = pick(['', '', '&$qProps=title', '&price[$gt]=1', '&price=3', '&title[$like]=%25a%25'])
      return {
        by: pick(['user', 'admin'] as const),
        query: `$q=${encodeURIComponent(text)}${more}`,
        page: `${pick(['$sort=price,-identifier', '$sort=-created', '$sort=identifier'])}&$limit=${1 + below(40)}`,
      }
    })
    const answer = async ({ by, query, page }: (typeof questions)[number]) => {
      const client = as(by)
      const found: string[] = []
      for (let next: string | undefined = `${path}?${query}&${page}`; next; ) {
        const { status, body, headers } = await client.get(next)
        expect(status, next).toBe(200)
        found.push(...identifiers(body))
        next = nextPagePath(headers)
      }
      const { headers, body: ranked } = await client.get(`${path}?${query}&$count=true&$limit=1000`)
      const { body: sums } = await client.get(`/blueprints/things/charts/sum?sum=price&groupBy=price&${query}`)
      const exported = await client.get(`${path}/export?format=ndjson&$select=identifier&${query}`)
      const total = headers.get('x-total-count')
      return { by, query, found, total, ranked: identifiers(ranked).sort(), sums, exported: exported.body }
    }
    const answerAll = async () => {
      const answers: unknown[] = []
      for (const question of questions) answers.push(await answer(question))
      return answers
    }
    await withThresholds(size, async () => {
      let read: unknown[] = []
      await withoutWordIndex(tenant, async () => {
        read = await answerAll()
        expect(await countIndexed(tenant)).toBe(0)
      })
      await indexWords(fixture)
      expect(await answerAll()).toEqual(read)
    })
  },
  120_000,
)

test('a ranked search without its index has the same order on all pages as one with the index', async () => {
  const fixture = await createThingsFixture([{ key: 'title', type: 'string' }])
  const { as, path, tenant } = fixture
  const random = seededRandom(5)
  const fillers = (most: number) => random.some(['oak', 'elm', 'fir', 'ash', 'yew', 'box', 'bay', 'may'], most)
  await importThings(
    fixture,
    Array.from({ length: 200 }, (_, n) => ({
      identifier: `thing${n}`,
      title: [...(n % 3 ? ['heron'] : []), ...(n % 20 ? [] : ['otter']), ...fillers(8)].join(' '),
    })),
  )
  const readPages = async (q: string) => {
    const pages: string[][] = []
    for (let next: string | undefined = `${path}?$q=${q}&$limit=7`; next; ) {
      const { body, headers } = await as('user').get(next)
      pages.push(identifiers(body))
      next = nextPagePath(headers)
    }
    return pages
  }
  // The rare word is ranked, and the common one has its latest entities first.
  await withThresholds('middle', async () => {
    const pages: string[][][] = []
    await withoutWordIndex(tenant, async () => pages.push(await readPages('otter'), await readPages('heron')))
    expect(pages.map((one) => one.flat().length)).toEqual([10, 133])
    await indexWords(fixture)
    expect([await readPages('otter'), await readPages('heron')]).toEqual(pages)
  })
})

test('the cursor of a search without its index works once the index is ready', async () => {
  const fixture = await createFixture(100)
  const { as, path, tenant } = fixture
  let first = await as('user').get(path)
  await withoutWordIndex(tenant, async () => {
    first = await as('user').get(`${path}?$q=a&$limit=5`)
    expect(first.status).toBe(200)
  })
  await indexWords(fixture)
  const all = (await as('user').get(`${path}?$q=a&$limit=1000`)).body
  const seen = identifiers(first.body)
  for (let next = nextPagePath(first.headers); next; ) {
    const { body, headers } = await as('user').get(next)
    seen.push(...identifiers(body))
    next = nextPagePath(headers)
  }
  expect([seen.length, seen.toSorted()]).toEqual([new Set(seen).size, identifiers(all).sort()])
})

test('a search without its index reflects writes, and DELETE /all removes its matches', async () => {
  const fixture = await createFixture(60)
  const { as, path, tenant } = fixture
  const admin = as('admin')
  await withoutWordIndex(tenant, async () => {
    expect((await admin.post(path, { identifier: 'new', title: 'Zebra', price: 3 })).status).toBe(201)
    expect(identifiers((await admin.get(`${path}?$q=zebra`)).body)).toEqual(['new'])
    expect((await admin.put(`${path}/new`, { title: 'Giraffe' })).status).toBe(200)
    expect((await admin.get(`${path}?$q=zebra`)).body).toEqual([])
    for (let n = 0; n < 30; n++) await admin.post(path, { identifier: `g${n}`, title: 'Giraffe', price: n % 2 })
    const removed = await admin.delete(`${path}/all?confirm=things&$q=giraffe&price=1`)
    expect(removed.body).toEqual({ success: true, deletedCount: 15 })
    expect((await admin.get(`${path}?$q=giraffe&$limit=100`)).body).toHaveLength(16)
    expect(await countIndexed(tenant)).toBe(0)
  })
})

test('$explain lists the full-text index during its build and afterwards', async () => {
  const fixture = await createFixture(10)
  const { as, path, tenant } = fixture
  const readPlan = async () => (await as('admin').get(`${path}?$q=a&$explain=true`)).body
  await withoutWordIndex(tenant, async () =>
    expect(await readPlan()).toMatchObject({ left: ['words'], indexes: [{ field: '$q', state: 'building' }] }),
  )
  await indexWords(fixture)
  expect(await readPlan()).toMatchObject({ left: [], indexes: [{ field: '$q', state: 'ready' }] })
})
