import { beforeAll, expect, test } from 'bun:test'
import { IdSet } from '../../../src/entities/query/id-set'
import { createThingsFixture, identifiers, importThings, nextPagePath, recordStatements } from '../fixtures'
import { withThresholds } from './small-thresholds'

const COUNT = 60
const things = Array.from({ length: COUNT }, (_, n) => ({
  ...{ identifier: `t${`${n}`.padStart(2, '0')}`, title: `word ${n % 7}`, note: ['😀', '\uffff', 'b', 'a'][n % 4] },
  ...{ tags: n % 5 ? ['x'] : [], place: n % 3 ? { at: n } : {} },
}))
const fixture = createThingsFixture([
  { key: 'title', type: 'string' },
  { key: 'note', type: 'string', indexed: false },
  { key: 'tags', type: 'string', multi: true },
  { key: 'place', type: 'object' },
])
beforeAll(async () => importThings(await fixture, things))

/** Lists all pages, and returns the identifiers. */
async function listAll(path: string): Promise<string[]> {
  const { as } = await fixture
  const found: string[] = []
  for (let next: string | undefined = path; next; ) {
    const { status, body, headers } = await as('user').get(next)
    expect([status, body.message]).toEqual([200, undefined])
    found.push(...identifiers(body))
    next = nextPagePath(headers)
  }
  return found
}

const byNumber = things.map(({ identifier }) => identifier)
/** The order of the notes by code points, and of equal ones by time. */
const byNote = [3, 2, 1, 0].flatMap((rest) => byNumber.filter((_, n) => n % 4 === rest))
const byTitle = Array.from({ length: 7 }, (_, rest) => byNumber.filter((_, n) => n % 7 === rest)).flat()

const queries: [query: string, expected: string[]][] = [
  ['$sort=note', byNote],
  ['$sort=-note', byNote.toReversed()],
  ['$sort=_id', byNumber],
  ['$sort=-_id&$limit=7', byNumber.toReversed()],
  ['$sort=note&$limit=7', byNote],
  ['$sort=note&$limit=7&$skip=40', byNote.slice(40)],
  ['$sort=note&$skip=1000', []],
  ['note=none', []],
  ['note=none&$sort=title', []],
  ['note[$gte]=b&$sort=created', byNumber.filter((_, n) => n % 4 !== 3)],
  ['_id[$gt]=z', []],
  ['_id[$like]=%25z%25', []],
  ['tags[$exists]=false', []],
  ['$q=word&$sort=title', byTitle],
  ['$q=wor&$sort=title&$limit=9', byTitle],
  ['$q=word&$sort=note&$limit=9', byNote],
  ['$q=word&$sort=-created&$limit=9', byNumber.toReversed()],
  ['$q=word&note=b&$sort=created&$limit=4', byNumber.filter((_, n) => n % 4 === 2)],
]

test.each(queries)(
  'the list %s is the same whether its blueprint counts as small or large',
  async (query, expected) => {
    const { path } = await fixture
    for (const size of ['usual', 'small'] as const)
      await withThresholds(size, async () => expect(await listAll(`${path}?${query}`), size).toEqual(expected))
  },
)

test.each([
  '$sort=note',
  '$sort=_id',
  'note=none',
  'note=none&$sort=title',
  '_id[$gt]=z',
  '_id[$like]=%25z%25',
  'tags[$exists]=false&$sort=title',
  '$q=word&$sort=title',
  '$q=word&$sort=note',
])('a list of many entities is read in slices where no index answers it: %s', async (query) => {
  const { origin, path, as } = await fixture
  await as('user').get(`${path}?$q=word`)
  await withThresholds('small', async () => {
    const statements = await recordStatements(origin, () => as('user').get(`${path}?${query}&$limit=2`))
    const ends = statements.filter((one) => /limit 1 offset \?$/.test(one))
    // Slices have at most 3 entities, or 25 rows of an index.
    expect(ends.length, statements.join('\n')).toBeGreaterThanOrEqual(
      query.includes('$q=word&$sort=title') ? 2 : COUNT / 3,
    )
  })
})

test('a statement has the place where the slice before ended first, where SQLite begins to read', async () => {
  const { origin, path, as } = await fixture
  await withThresholds('small', async () => {
    const query = 'updated[$gte]=2020-01-01T00:00:00Z&note=none&$sort=identifier&$limit=2'
    const statements = await recordStatements(origin, () => as('user').get(`${path}?${query}`))
    const placed = statements.filter((one) => one.includes('(e.updated, e.created, e.seq) >'))
    expect(placed.length, statements.join('\n')).toBeGreaterThan(2)
    for (const one of placed) expect(one).toMatch(/ where \(e\.updated, e\.created, e\.seq\) > .* and e\.updated >= /)
  })
})

test.each<[query: string, expected: string[]]>([
  ['$q=word&$skip=50&$limit=4', byNumber.toReversed().slice(50)],
  [
    '$q=word&note=b&$skip=5&$limit=4',
    byNumber
      .filter((_, n) => n % 4 === 2)
      .toReversed()
      .slice(5),
  ],
  ['$q=word&$skip=60', []],
])('a search with many matches reads only the entities of its page: %s', async (query, expected) => {
  const { path, as } = await fixture
  await as('user').get(`${path}?$q=word`)
  await withThresholds('small', async () => {
    expect(await listAll(`${path}?${query}`)).toEqual(expected)
    const { body } = await as('admin').get(`${path}?${query}&$explain=true`)
    const shown = body.statements.filter(({ sql }: { sql: string }) => /^select e\.shown/.test(sql))
    expect(shown.reduce((sum: number, { rows }: { rows: number }) => sum + rows, 0)).toBeLessThanOrEqual(5)
  })
})

test('a set holds the numbers of entities, however far apart they are', () => {
  const numbers = [0, 31, 32, 65_535, 65_536, 2 ** 31 - 1, 2 ** 31, 2 ** 32 + 3, 2 ** 45 + 31]
  const ids = IdSet.of([...numbers].reverse())
  expect([[...ids], ids.size, ids.has(2 ** 45 + 30)]).toEqual([numbers, numbers.length, false])
  const copy = ids.copy()
  copy.delete(2 ** 31)
  copy.delete(5)
  expect([copy.has(2 ** 31), copy.size, ids.has(2 ** 31), ids.size]).toEqual([false, 8, true, 9])
})
