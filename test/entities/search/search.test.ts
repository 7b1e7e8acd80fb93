import { beforeAll, describe, expect, test } from 'bun:test'
import { seededRandom } from '../../blueprints/seeded-random'
import type { ApiClient } from '../../test-tenant'
import { createTestTenant, fullAccessRules, statusAndCode } from '../../test-tenant'
import { createThingsFixture, importThings } from '../fixtures'
import { withThresholds } from '../query/small-thresholds'

const fields = [
  { key: 'title', type: 'string' },
  { key: 'notes', type: 'text' },
  { key: 'contact', type: 'email' },
  { key: 'tags', type: 'string', multi: true },
  { key: 'price', type: 'number' },
  { key: 'secret', type: 'string', readRoles: ['boss'] },
]
const things = [
  { identifier: 'lodz', title: 'Fabryka w Łodzi', notes: 'A mill of red brick.', price: 3 },
  { identifier: 'strasse', title: 'Hauptstraße 5', notes: 'Corner of the street, café opposite.', price: 1 },
  { identifier: 'cafe', title: 'CAFÉ Müller', notes: 'Cake, and cake again', contact: 'anna@example.com', price: 2 },
  { identifier: 'tokyo', title: '東京都の図書館', tags: ['library', 'quiet place'], price: 5 },
  { identifier: 'cyrillic', title: 'Ёлка в Москве', notes: "don't_panic 42nd", price: 4 },
  { identifier: 'hidden', title: 'Nothing', secret: 'treasure', price: 6 },
]

async function createFilledFixture(scope: 'user' | 'tenant' = 'tenant') {
  const own = await createTestTenant()
  await own
    .as('admin')
    .post('/blueprints', { key: 'things', name: 'Things', fields, permissions: fullAccessRules(scope, 'user') })
  for (const thing of things)
    expect((await own.as('admin').post('/blueprints/things/entities', thing)).status).toBe(201)
  return own
}
const searchIdentifiers = async (client: ApiClient, query: string) => {
  const { status, body } = await client.get(`/blueprints/things/entities?${query}`)
  expect([status, body]).toEqual([200, expect.any(Array)])
  return body.map(({ identifier }: { identifier: string }) => identifier) as string[]
}
const searchSorted = async (client: ApiClient, query: string) => (await searchIdentifiers(client, query)).sort()

describe('full-text search', () => {
  let user: ApiClient
  let admin: ApiClient
  beforeAll(async () => {
    const { as } = await createFilledFixture()
    user = as('user')
    admin = as('admin')
  })

  test.each([
    ['lodzi', ['lodz']],
    ['ŁÓDŹ', ['lodz']],
    ['lod', ['lodz']],
    ['hauptstrasse', ['strasse']],
    ['HAUPTSTRAßE 5', ['strasse']],
    ['cafe', ['cafe', 'strasse']],
    ['Café', ['cafe', 'strasse']],
    ['muller', ['cafe']],
    ['MÜLL', ['cafe']],
    ['cake café', ['cafe']],
    ['cake brick', []],
    ['anna@example', ['cafe']],
    ['東京', ['tokyo']],
    ['図書', ['tokyo']],
    ['place quiet', ['tokyo']],
    ['елка', ['cyrillic']],
    ['МОСКВ', ['cyrillic']],
    ["don't", ['cyrillic']],
    ['panic 42', ['cyrillic']],
    ['42 panic', []],
  ])('a search for "%s" finds %j', async (q, expected) => {
    expect(await searchSorted(user, `$q=${encodeURIComponent(q)}`)).toEqual(expected)
  })

  test.each(['', '   '])('an empty search (%j) finds everything', async (q) => {
    expect(await searchIdentifiers(user, `$q=${encodeURIComponent(q)}`)).toHaveLength(things.length)
  })

  test.each(['!?', '"', '*', "' -- ", '+++', '...', '😀'])('a search without a word (%j) finds nothing', async (q) => {
    for (const more of ['', '&$sort=price', '&price[$gt]=0', '&$count=true'])
      expect(await searchIdentifiers(user, `$q=${encodeURIComponent(q)}${more}`)).toEqual([])
    const { body } = await admin.delete(`/blueprints/things/entities/all?confirm=things&$q=${encodeURIComponent(q)}`)
    expect(body.deletedCount).toBe(0)
  })

  test('the last word of a search is complete when a sign follows it', async () => {
    expect(await searchSorted(user, '$q=c')).toEqual(['cafe', 'strasse'])
    expect(await searchIdentifiers(user, `$q=${encodeURIComponent('C++')}`)).toEqual([])
    expect(await searchIdentifiers(user, `$q=${encodeURIComponent('"caf"')}`)).toEqual([])
    expect(await searchSorted(user, `$q=${encodeURIComponent('"café"')}`)).toEqual(['cafe', 'strasse'])
  })

  test.each([
    'cafe OR brick',
    'NOT cafe',
    'brick OR (',
    'title:cafe',
    'NEAR(cafe cake)',
    'caf* "x',
    'a & b | c:*',
    "'; drop",
  ])('a search treats operators of search engines as plain words: %s', async (q) => {
    expect(await searchIdentifiers(user, `$q=${encodeURIComponent(q)}`)).toEqual([])
  })

  test('a search combines with filters, sorting, paging, counts and charts', async () => {
    expect(await searchIdentifiers(user, '$q=cafe&$sort=price')).toEqual(['strasse', 'cafe'])
    expect(await searchIdentifiers(user, '$q=cafe&$sort=-price')).toEqual(['cafe', 'strasse'])
    expect(await searchIdentifiers(user, '$q=cafe&price[$gt]=1')).toEqual(['cafe'])
    const { headers, body } = await user.get('/blueprints/things/entities?$q=cafe&$limit=1&$count=true')
    expect([body.length, headers.get('x-total-count')]).toEqual([1, '2'])
    const next = /<\/api([^>]+)>; rel="next"/.exec(headers.get('link')!)![1]!
    const rest = await user.get(next)
    expect([body[0].identifier, rest.body[0].identifier].sort()).toEqual(['cafe', 'strasse'])
    expect((await user.get('/blueprints/things/charts/count?$q=cafe')).body).toEqual({ count: 2 })
    expect((await user.get('/blueprints/things/charts/sum?sum=price&$q=cafe')).body).toEqual({ sum: 3 })
    expect((await user.get('/blueprints/things/charts/sum?sum=price&groupBy=title&$q=mull')).body.groups).toEqual([
      { group: 'CAFÉ Müller', sum: 2 },
    ])
  })

  test('$qProps limits a search to the named fields, and other fields get 400 INVALID_INPUT', async () => {
    expect(await searchIdentifiers(user, '$q=cafe&$qProps=title')).toEqual(['cafe'])
    expect(await searchIdentifiers(user, '$q=cafe&$qProps=notes, contact')).toEqual(['strasse'])
    for (const key of ['price', 'nowhere', 'secret']) {
      const answer = await user.get(`/blueprints/things/entities?$q=cafe&$qProps=${key}`)
      expect(statusAndCode(answer), key).toEqual([400, 'INVALID_INPUT'])
    }
  })

  test('a search finds nothing by fields that the caller may not read', async () => {
    expect(await searchIdentifiers(user, '$q=treasure')).toEqual([])
    expect(await searchIdentifiers(admin, '$q=treasure')).toEqual(['hidden'])
  })

  test('a search of 21 words or 1,001 characters gets 400 INVALID_INPUT', async () => {
    const words = Array.from({ length: 21 }, (_, n) => `word${n}`).join(' ')
    for (const q of [words, 'x'.repeat(1_001)])
      expect(statusAndCode(await user.get(`/blueprints/things/entities?$q=${encodeURIComponent(q)}`))).toEqual([
        400,
        'INVALID_INPUT',
      ])
  })
})

test('a search finds only entities that the caller may read, and none of another tenant', async () => {
  const [first, second] = [await createFilledFixture('user'), await createFilledFixture('user')]
  await first.as('user').post('/blueprints/things/entities', { title: 'My café', identifier: 'mine' })
  expect(await searchIdentifiers(first.as('user'), '$q=cafe')).toEqual(['mine'])
  expect(await searchSorted(first.as('admin'), '$q=cafe')).toEqual(['cafe', 'mine', 'strasse'])
  expect(await searchSorted(second.as('admin'), '$q=cafe')).toEqual(['cafe', 'strasse'])
})

test('a search follows every create, update and delete, before and after its index is built', async () => {
  const { as } = await createFilledFixture()
  const admin = as('admin')
  for (const round of ['before', 'after']) {
    await admin.post('/blueprints/things/entities', { identifier: round, title: `Zebra ${round}` })
    await admin.put('/blueprints/things/entities/lodz', { title: `Giraffe ${round}` })
    expect(await searchIdentifiers(admin, `$q=zebra ${round}`)).toEqual([round])
    expect(await searchIdentifiers(admin, `$q=giraffe ${round}`)).toEqual(['lodz'])
    expect(await searchIdentifiers(admin, '$q=fabryka')).toEqual([])
    await admin.delete(`/blueprints/things/entities/${round}`)
    expect(await searchIdentifiers(admin, '$q=zebra')).toEqual([])
  }
  const { body } = await admin.delete('/blueprints/things/entities/all?confirm=things&$q=cafe')
  expect(body).toEqual({ success: true, deletedCount: 2 })
  expect(await searchIdentifiers(admin, '$q=cafe')).toEqual([])
  expect(await searchIdentifiers(admin, '')).toHaveLength(things.length - 2)
})

test('a search returns better matches first', async () => {
  const { as } = await createFilledFixture()
  const admin = as('admin')
  const long = Array.from({ length: 100 }, (_, n) => `filler${n}`).join(' ')
  for (const [identifier, title, notes] of [
    ['last', 'Animals', `${long} otter`],
    ['first', 'Otter', 'An otter'],
    ['middle', 'Animals', 'An otter, seen on Monday'],
  ])
    await admin.post('/blueprints/things/entities', { identifier, title, notes })
  const expected = ['first', 'middle', 'last']
  expect(await searchIdentifiers(admin, '$q=otter')).toEqual(expected)
  // A word of many entities does not change the order.
  for (const n of [1, 2, 3]) await admin.post('/blueprints/things/entities', { title: `Animals of Monday ${n}` })
  await admin.put('/blueprints/things/entities/first', { notes: 'An otter among animals' })
  await withThresholds('middle', async () =>
    expect(await searchIdentifiers(admin, '$q=otter animals')).toEqual(expected),
  )
  await withThresholds('small', async () =>
    expect(await searchIdentifiers(admin, '$q=animals otter')).toEqual(expected),
  )
})

test('the first searches of a blueprint find all earlier entities while others are being written', async () => {
  const { as } = await createFilledFixture()
  const admin = as('admin')
  const writes = Array.from({ length: 400 }, (_, n) =>
    admin.post('/blueprints/things/entities', { identifier: `n${n}`, title: `Heron ${n}`, price: n }),
  )
  await Promise.all(writes.slice(0, 300))
  const searches = Array.from({ length: 10 }, () => searchIdentifiers(admin, '$q=heron&$limit=1000'))
  await Promise.all(writes)
  for (const found of await Promise.all(searches)) expect(found.length).toBeGreaterThanOrEqual(300)
  expect(await searchIdentifiers(admin, '$q=heron&$limit=1000')).toHaveLength(400)
})

test('other requests get their turns while the first search indexes all earlier entities', async () => {
  const fixture = await createThingsFixture([{ key: 'title', type: 'string' }])
  const SLICES = 24 // of 100 entities each
  await importThings(
    fixture,
    Array.from({ length: SLICES * 100 }, (_, n) => ({ title: `number ${n}` })),
  )
  const progress = new Set<unknown>()
  const readProgress = async () =>
    (await fixture.tenant.db.query('select done, done >= upto from search_progress'))[0] ?? [0, 0]
  expect(await searchIdentifiers(fixture.as('user'), '$q=number&$limit=1')).toHaveLength(1)
  for (let isReady: unknown; !isReady; await new Promise(setImmediate)) {
    const [done, ready] = await readProgress()
    progress.add(done)
    isReady = Number(ready)
  }
  // A few slices may follow each other, but without turns almost nothing would be seen in between.
  expect(progress.size).toBeGreaterThan(SLICES / 4)
})

test('an entity of 90,000 words is stored, and found by one of its first words', async () => {
  const { as } = await createFilledFixture()
  const words = Array.from({ length: 90_000 }, (_, n) => `w${n.toString(36)}ü`).join(' ')
  await searchIdentifiers(as('admin'), '$q=cafe')
  const made = await as('admin').post('/blueprints/things/entities', { identifier: 'large', notes: words })
  expect(made.status).toBe(201)
  expect(await searchIdentifiers(as('admin'), '$q=w1u')).toContain('large')
})

test.each(['usual', 'small'] as const)(
  'a search finds exactly the entities with all of its random words, with %s thresholds',
  async (size) => {
    const { as } = await createTestTenant()
    const admin = as('admin')
    const texts = ['title', 'notes'].map((key) => ({ key, type: 'text' }))
    await admin.post('/blueprints', { key: 'things', name: 'Things', fields: texts })
    const { pick, some } = seededRandom(7)
    const words = ['a', 'ab', 'abc', 'b', 'bc', '1', '12', 'and', 'or', 'not', 'near', 'f1', 'É', 'ß', '東']
    const plain = (word: string) => ({ É: 'e', ß: 'ss' })[word] ?? word
    const all: Record<string, string[]>[] = []
    for (let n = 0; n < 60; n++) {
      const thing = { title: some(words, 4), notes: some(words, 6) }
      all.push(thing)
      const body = { identifier: `${n}`, title: thing.title.join(pick([' ', ', ', '-'])), notes: thing.notes.join(' ') }
      expect((await admin.post('/blueprints/things/entities', body)).status).toBe(201)
    }
    for (let n = 0; n < 150; n++) {
      const queryWords = [pick(words), ...some(words, 2)]
      const props = pick(['title', 'notes', 'title,notes'])
      const fits = (thing: Record<string, string[]>) => {
        const has = props.split(',').flatMap((key) => thing[key]!.map(plain))
        // A repeated word counts once, and only the last word matches by its beginning.
        const wanted = [...new Set(queryWords.map(plain))]
        return wanted.every((word, at) =>
          has.some((one) => (at === wanted.length - 1 ? one.startsWith(word) : one === word)),
        )
      }
      const expected = all.flatMap((thing, n) => (fits(thing) ? [`${n}`] : [])).sort()
      const question = `$q=${encodeURIComponent(queryWords.join(' '))}&$qProps=${props}`
      await withThresholds(size, async () =>
        expect(await searchSorted(admin, question), queryWords.join(' ')).toEqual(expected),
      )
    }
  },
)

test('the first search in large texts finds the entity at once', async () => {
  const own = await createTestTenant()
  const admin = own.as('admin')
  await admin.post('/blueprints', { key: 'books', name: 'Books', fields: [{ key: 'text', type: 'text' }] })
  await admin.post('/blueprints', { key: 'others', name: 'Others', fields: [{ key: 'text', type: 'text' }] })
  const words = (n: number) => Array.from({ length: 60_000 }, (_, at) => (at * 7919 + n).toString(36)).join(' ')
  for (let n = 0; n < 16; n++) {
    expect((await admin.post('/blueprints/books/entities', { text: words(n) })).status).toBe(201)
    await admin.post('/blueprints/others/entities', { text: `last${n}` })
  }
  await admin.post('/blueprints/books/entities', { identifier: 'last', text: 'last' })
  const answer = await admin.get('/blueprints/books/entities?$q=last&$select=identifier')
  expect(answer.status).toBe(200)
  expect(answer.body.map(({ identifier }: { identifier: string }) => identifier)).toEqual(['last'])
}, 60_000)

test('a word that begins with a digit is not found as a word of a field whose number ends with that digit', async () => {
  const hidden = { key: 'hidden', type: 'string', readRoles: ['admin'] }
  const visible = Array.from({ length: 14 }, (_, n) => ({ key: `note${n}`, type: 'string' }))
  const own = await createThingsFixture([hidden, ...visible])
  const admin = own.as('admin')
  await admin.post(own.path, { identifier: 'hidden', hidden: '0secret 1secret 2secret 3secret 4secret' })
  expect([
    await searchIdentifiers(own.as('user'), '$q=secret'),
    await searchIdentifiers(own.as('user'), '$q=secr'),
    await searchIdentifiers(admin, '$q=2secret'),
  ]).toEqual([[], [], ['hidden']])
})

test('marks that make another letter are compared, and accents and vowel points are not', async () => {
  const { as, path } = await createThingsFixture([{ key: 'title', type: 'string' }])
  const user = as('user')
  const titles = ['がく', 'かく', 'ﾊﾞｽ', 'किताब', 'काताब', 'กิน', 'กีน', 'كِتَاب', 'שָׁלוֹם', 'naïve']
  for (const title of titles) expect((await user.post(path, { title })).status).toBe(201)
  const findTitles = async (q: string) =>
    (await user.get(`${path}?$q=${encodeURIComponent(q)}`)).body.map(({ title }: { title: string }) => title)
  expect(await findTitles('か')).toEqual(['かく'])
  expect(await findTitles('か\u3099')).toEqual(['がく'])
  expect(await findTitles('バス')).toEqual(['ﾊﾞｽ'])
  expect(await findTitles('किताब')).toEqual(['किताब'])
  expect(await findTitles('กิน')).toEqual(['กิน'])
  expect(await findTitles('كتاب')).toEqual(['كِتَاب'])
  expect(await findTitles('שלום')).toEqual(['שָׁלוֹם'])
  expect(await findTitles('naive')).toEqual(['naïve'])
})

test('a search in a blueprint without text fields finds nothing, and an empty one finds everything', async () => {
  const own = await createThingsFixture([{ key: 'cost', type: 'decimal' }])
  const user = own.as('user')
  await user.post(own.path, { cost: '1' })
  for (const query of ['$q=a', '$q=a%20b&$sort=cost', '$q=1&$count=true'])
    expect([(await user.get(`${own.path}?${query}`)).body, query]).toEqual([[], query])
  expect((await user.get(`${own.path}?$q=`)).body).toHaveLength(1)
})

test('a search by the beginning of a word follows creates and deletes of entities with longer words', async () => {
  const { as } = await createFilledFixture()
  const [user, path] = [as('user'), '/blueprints/things/entities']
  expect(await searchSorted(user, '$q=cake')).toEqual(['cafe'])
  expect((await user.post(path, { identifier: 'cakes', title: 'Cakes' })).status).toBe(201)
  expect(await searchSorted(user, '$q=cake')).toEqual(['cafe', 'cakes'])
  expect((await user.post(path, { identifier: 'cake0', title: 'cake0 and more' })).status).toBe(201)
  expect((await user.delete(`${path}/cakes`)).status).toBe(200)
  expect(await searchSorted(user, '$q=cake')).toEqual(['cafe', 'cake0'])
  expect(await searchSorted(user, '$q=more cake')).toEqual(['cake0'])
})

test('a search finds entities by their final words only after a batch has changed them repeatedly', async () => {
  const { as } = await createFilledFixture()
  const admin = as('admin')
  const path = '/blueprints/things/entities'
  expect(await searchIdentifiers(admin, '$q=apple')).toEqual([])
  expect((await admin.post(path, { identifier: 'latest', title: 'apple' })).status).toBe(201)
  const upsertAndUpdate = (identifier: string, ...texts: string[]) =>
    texts.map((title, n) => ({ op: n ? 'update' : 'upsert', identifier, data: { title } }))
  const operations = [
    { op: 'delete', identifier: 'latest' },
    ...upsertAndUpdate('short', 'apple', 'pear'),
    { op: 'delete', identifier: 'short' },
    ...upsertAndUpdate('kept', 'plum', 'apple', 'cherry'),
  ]
  expect(await admin.post(`${path}/batch`, { operations })).toMatchObject({ status: 200 })
  for (const [word, those] of Object.entries({ apple: [], pear: [], plum: [], cherry: ['kept'] }))
    expect(await searchIdentifiers(admin, `$q=${word}`)).toEqual(those)
})

test('DELETE /all with a search deletes matching entities only, also during concurrent writes', async () => {
  const { as } = await createFilledFixture()
  const admin = as('admin')
  const path = '/blueprints/things/entities'
  expect(await searchIdentifiers(admin, '$q=apple')).toEqual([])
  const made = Array.from({ length: 30 }, (_, n) => admin.post(path, { identifier: `a${n}`, title: 'apple' }))
  const removal = admin.delete(`${path}/all?$q=apple&confirm=things`)
  expect((await Promise.all(made)).map(({ status }) => status)).toEqual(made.map(() => 201))
  const { status, body } = await removal
  expect([status, (await searchIdentifiers(admin, '$q=apple&$limit=100')).length]).toEqual([
    200,
    30 - body.deletedCount,
  ])
  // An entity that has other words by now stays, unless it was deleted before.
  const [changed, deletion] = await Promise.all([
    admin.put(`${path}/cyrillic`, { title: 'pear', notes: null }),
    admin.delete(`${path}/all?$q=elka&confirm=things`),
  ])
  expect([200, 404]).toContain(changed.status)
  expect((await searchIdentifiers(admin, '$q=pear')).length + deletion.body.deletedCount).toBe(1)
})
