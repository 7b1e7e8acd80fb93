import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { getModel } from '../../../src/blueprints/blueprints'
import { BlueprintColumns } from '../../../src/entities/columns/blueprint-columns'
import {
  columnStatistics,
  dropIdleColumns,
  findColumns,
  measureColumns,
} from '../../../src/entities/columns/column-cache'
import { columnLimits } from '../../../src/entities/columns/column-limits'
import { shouldUseColumns } from '../../../src/entities/columns/column-reads'
import { parseQuery } from '../../../src/entities/query/query-parser'
import { withLease } from '../../../src/jobs/with-lease'
import { dropCache } from '../../../src/tenancy/cache'
import { type SeededRandom, seededRandom } from '../../blueprints/seeded-random'
import { databaseUrl } from '../../storage/engines'
import { fullAccessRules } from '../../test-tenant'
import { waitUntil } from '../../wait-until'
import { createThingsFixture, identifiers, importThings, nextPagePath } from '../fixtures'
import { withThresholds } from '../query/small-thresholds'

const fields = [
  { key: 'title', type: 'string' },
  { key: 'stage', type: 'string' },
  { key: 'price', type: 'integer' },
  { key: 'active', type: 'boolean' },
  { key: 'code', type: 'string' },
]
const STAGES = ['lead', 'won', 'lost', '😀', '\uffff', 'é']

const makeThing = ({ pick, below, chance }: SeededRandom) => ({
  ...(chance(0.9) && { title: `title ${below(500)} ${pick(STAGES)}` }),
  ...(chance(0.9) && { stage: pick(STAGES) }),
  ...(chance(0.8) && { price: below(50) - 10 }),
  ...(chance(0.8) && { active: chance(0.5) }),
  code: `${pick(['x', 'y'])}${below(1e9)}`.padEnd(200, 'z'),
})

function makeQuery({ pick, below, chance }: SeededRandom) {
  const price = () => below(60) - 15
  const filters = [
    () => `stage=${encodeURIComponent(pick(STAGES))}`,
    () => `stage[$ne]=${pick(STAGES.slice(0, 3))}`,
    () => `stage[$in]=${pick(STAGES.slice(0, 3))},lost`,
    () => `stage[$exists]=${chance(0.5)}`,
    () => `price[$gte]=${price()}`,
    () => `price[$gt]=${price()}&price[$lte]=${price()}`,
    () => `active=${chance(0.5)}`,
    () => `title[$lt]=${encodeURIComponent(`title ${below(500)}`)}`,
    () => `created[$gte]=2026-01-01`,
  ]
  const chosen = Array.from({ length: below(4) }, () => pick(filters)())
  // A name may be filtered once.
  const names = chosen.map((one) => one.replace(/[[=].*/, ''))
  const orders = [
    'title',
    '-title',
    '-price',
    'stage',
    '-stage,price',
    'active,-title',
    '-created',
    'created',
    '-updated',
  ]
  return [
    ...chosen.filter((_, at) => names.indexOf(names[at]!) === at),
    ...(chance(0.8) ? [`$sort=${pick(orders)}`] : []),
    ...(chance(0.5) ? [`$skip=${below(30)}`] : []),
    `$limit=${1 + below(40)}`,
    '$count=true',
  ].join('&')
}

// PostgreSQL answers each list itself.
describe.skipIf(!!databaseUrl)('values of entities in memory', () => {
  const limits = { ...columnLimits }
  const own = createThingsFixture(fields, fullAccessRules('user', 'user'))
  const source = seededRandom(99)

  beforeAll(async () => {
    const { as, path, tokens, origin, tenant } = await own
    // No index is built, which would answer instead.
    void withLease(tenant, 'indexing things', () => end.promise)
    await importThings(
      { origin, tokens, path },
      Array.from({ length: 1_500 }, () => makeThing(source)),
    )
    for (let n = 0; n < 40; n++) expect((await as('other').post(path, makeThing(source))).status).toBe(201)
  })
  beforeEach(() => dropIdleColumns(0))
  afterEach(() => {
    Object.assign(columnLimits, limits)
  })

  /** `more` has conditions that hold for all, so that no answer is that of a list without them. */
  async function readLists(users: readonly ('admin' | 'user' | 'other')[], queries: string[], more = '') {
    const { as, path } = await own
    const answers: unknown[] = []
    for (const user of users)
      for (const query of queries) {
        const { status, body, headers } = await as(user).get(`${path}?${query}${more}`)
        expect([status, body.message], query).toEqual([200, undefined])
        answers.push([query, identifiers(body), headers.get('x-total-count'), !!nextPagePath(headers)])
      }
    return answers
  }

  /** Counts are kept until an entity changes, so those of the database are of another query with the same answer. */
  const ALWAYS = '&identifier[$exists]=true'
  const USERS = ['admin', 'user', 'other'] as const
  const inMemory = <T>(work: () => Promise<T>) => withThresholds('middle', work, { usesColumns: true })
  const end = Promise.withResolvers<void>()
  afterAll(() => end.resolve())
  const withoutMemory = <T>(work: () => Promise<T>) => withThresholds('middle', work)
  const columns = async () => findColumns((await own).tenant.db, await getModel((await own).tenant, 'things'))!

  test('lists and counts are the same from memory as from the database, while entities change in between', async () => {
    const { as, path, origin, tokens } = await own
    const queries = Array.from({ length: 12 }, () => makeQuery(source))
    const changes = [
      async () => (await as('user').post(path, makeThing(source))).status,
      async (identifier: string) =>
        (await as('admin').patch(`${path}/${identifier}`, { stage: source.pick(STAGES), price: source.below(40) }))
          .status,
      async (identifier: string) =>
        (await as('admin').patch(`${path}/${identifier}`, { title: null, active: null })).status,
      async (identifier: string) => (await as('admin').delete(`${path}/${identifier}`)).status,
      async () =>
        importThings(
          { origin, tokens, path },
          Array.from({ length: 60 }, () => makeThing(source)),
        ),
    ]
    let held: Awaited<ReturnType<typeof columns>> | undefined
    for (let round = 0; round < 12; round++) {
      queries.splice(0, 3)
      while (queries.length < 12) queries.push(makeQuery(source))
      const { reads } = columnStatistics
      const fromMemory = await inMemory(() => readLists(USERS, queries))
      expect(columnStatistics.reads - reads, `seed 99, round ${round}`).toBeGreaterThan(30)
      held ??= await columns()
      expect(await columns()).toBe(held)
      expect(fromMemory, `seed 99, round ${round}`).toEqual(
        await withoutMemory(() => readLists(USERS, queries, ALWAYS)),
      )
      const { body } = await as('admin').get(`${path}?$limit=1000`)
      for (let n = 0; n < 30; n++) {
        const change = source.pick(changes.slice(0, n < 29 ? 4 : 5))
        await change(source.pick(identifiers(body)))
      }
    }
  })

  test('changes of entities reach the values that stay in memory', async () => {
    const { as, path } = await own
    const query = 'stage=moved&price[$gte]=1&$sort=-price&$count=true'
    const read = async () => (await readLists(['admin'], [query]))[0]
    await inMemory(async () => {
      expect(await read()).toEqual([query, [], '0', false])
      const held = await columns()
      const { body } = await as('user').post(path, { identifier: 'mover', stage: 'moved', price: 5 })
      expect(await read()).toEqual([query, ['mover'], '1', false])
      await as('user').patch(`${path}/mover`, { price: 0 })
      expect(await read()).toEqual([query, [], '0', false])
      await as('user').patch(`${path}/mover`, { price: 2_000 })
      expect(await read()).toEqual([query, ['mover'], '1', false])
      await as('user').delete(`${path}/mover`)
      expect(await read()).toEqual([query, [], '0', false])
      await as('user').post(path, { identifier: 'mover', stage: 'moved', price: 7 })
      expect(await read()).toEqual([query, ['mover'], '1', false])
      await as('user').delete(`${path}/mover`)
      expect(await columns()).toBe(held)
      expect(body.identifier).toBe('mover')
    })
  })

  test('a walk by links in an order of memory has each entity once', async () => {
    const { as, path } = await own
    await inMemory(async () => {
      const all = identifiers((await as('admin').get(`${path}?$sort=-stage&$limit=1000`)).body)
      for (const order of ['-stage', 'title', '-price', 'active,-price', 'created']) {
        const seen: string[] = []
        for (let at: string | undefined = `${path}?$sort=${order}&$limit=100`; at; ) {
          const { body, headers } = await as('admin').get(at)
          seen.push(...identifiers(body))
          at = nextPagePath(headers)
        }
        expect(seen.length).toBe(new Set(seen).size)
        expect(new Set(seen).isSupersetOf(new Set(all)), order).toBe(true)
      }
    })
  })

  test.each([
    ['of the same fields', ['stage=won&$sort=-price']],
    ['of different fields', ['stage=won&$sort=-price', 'active=true&$sort=title', '$sort=-stage']],
  ])('lists %s that come together share one read of the entities', async (_, queries) => {
    const { as, path } = await own
    await inMemory(async () => {
      const one = await columns()
      let steps = 0
      const step = one.step
      one.step = function (...args: Parameters<typeof step>) {
        steps++
        return step.apply(this, args)
      }
      columnLimits.step = 100
      const answers = await Promise.all(
        Array.from({ length: 9 }, (_, n) => as('admin').get(`${path}?${queries[n % queries.length]}&$limit=1000`)),
      )
      columnLimits.step = 1_000
      const lists = answers.map(({ body }) => identifiers(body))
      for (const [n, list] of lists.entries()) expect(list).toEqual(lists[n % queries.length]!)
      const { body } = await as('admin').get(`${path}?$count=true&$limit=1`)
      expect(body).toHaveLength(1)
      // Each entity is read once, in hundreds, and the rest are steps that find nothing left to do.
      expect(steps).toBeWithin(15, 60)
    })
  })

  test('a blueprint with too many entities, or values that take too much room, is answered by the database', async () => {
    const queries = ['stage=won&$sort=-price&$count=true', '$sort=title']
    const expected = await withoutMemory(() => readLists(USERS, queries))
    columnLimits.rows = 1_000
    expect(await inMemory(() => readLists(USERS, queries))).toEqual(expected)
    expect(measureColumns()).toBe(0)
    columnLimits.rows = 250_000
    dropCache((await own).tenant)
    columnLimits.bytes = 20_000
    expect(await inMemory(() => readLists(USERS, queries))).toEqual(expected)
    expect(measureColumns()).toBe(0)
    dropCache((await own).tenant)
  })

  test('columns leave the memory when they are unused, when their tenant is closed, and when the blueprint changes', async () => {
    const { as, tenant } = await own
    const read = () => inMemory(() => readLists(['admin'], ['stage=won&$sort=-price']))
    const expected = await read()
    expect(measureColumns()).toBeGreaterThan(0)
    dropIdleColumns(60_000)
    expect(measureColumns()).toBeGreaterThan(0)
    dropIdleColumns(0)
    expect(measureColumns()).toBe(0)
    expect(await read()).toEqual(expected)
    dropCache(tenant)
    expect(measureColumns()).toBe(0)
    expect(await read()).toEqual(expected)
    const held = await columns()
    await as('admin').patch('/blueprints/things', { fields: [...fields, { key: 'more', type: 'string' }] })
    expect(await read()).toEqual(expected)
    expect(await columns()).not.toBe(held)
  })

  test('a request with an older model of a blueprint leaves the columns of the current one in memory', async () => {
    const { as, tenant } = await own
    const older = await getModel(tenant, 'things')
    await as('admin').patch('/blueprints/things', { name: 'Other things' })
    await inMemory(async () => {
      const expected = await readLists(['admin'], ['stage=won&$sort=-price'])
      const [held, bytes] = [await columns(), measureColumns()]
      expect(findColumns(tenant.db, older)).toBeUndefined()
      expect(await columns()).toBe(held)
      expect(measureColumns()).toBe(bytes)
      expect(await readLists(['admin'], ['stage=won&$sort=-price'])).toEqual(expected)
    })
  })

  test('columns that grow by later entities leave the memory when they have more than they may', async () => {
    const { path, origin, tokens, tenant, rows } = await own
    const query = 'stage=won&$sort=-price&$count=true'
    await inMemory(async () => {
      for (const limit of ['rows', 'bytes'] as const) {
        dropCache(tenant)
        await readLists(['admin'], [query])
        expect(measureColumns()).toBeGreaterThan(0)
        columnLimits[limit] = limit === 'bytes' ? measureColumns() + 100 : (await rows('entities')) + 10
        let fromMemory: unknown[] = []
        // Of so few changes at once, the columns take over the values without a step.
        for (let n = 0; n < 4; n++) {
          await importThings(
            { origin, tokens, path },
            Array.from({ length: 300 }, () => makeThing(source)),
          )
          fromMemory = await readLists(['admin'], [query])
        }
        expect(measureColumns(), limit).toBe(0)
        columnLimits[limit] = limits[limit]
        expect(fromMemory).toEqual(await withoutMemory(() => readLists(['admin'], [query], ALWAYS)))
      }
      dropCache(tenant)
    })
  })

  test('counts by many values are right, and do not stay in memory, where each change would look all of them up', async () => {
    const { tenant } = await own
    const many = Array.from({ length: 300 }, (_, n) => n).join(',')
    const queries = [`price[$nin]=${many}&$sort=-price&$count=true`, `price[$nin]=1,2&$sort=-price&$count=true`]
    const fromMemory = await inMemory(() => readLists(USERS, queries))
    expect(fromMemory).toEqual(await withoutMemory(() => readLists(USERS, queries, ALWAYS)))
    const table = (await columns()).open(tenant.db, await getModel(tenant, 'things'), [])
    const names = [...table!.followers.keys()]
    expect(names.length).toBeGreaterThan(0)
    expect(names.filter((name) => name.length > 500)).toEqual([])
  })

  test('columns of a tenant that is closed while they are read leave the memory', async () => {
    const { as, path, tenant } = await own
    await inMemory(async () => {
      columnLimits.step = 50
      const lists = Array.from({ length: 4 }, () => as('admin').get(`${path}?stage=won&$sort=-price`))
      const step = BlueprintColumns.prototype.step
      let steps = 0
      BlueprintColumns.prototype.step = function (...args) {
        const result = step.apply(this, args)
        if (++steps % 5 === 0 && steps < 50) queueMicrotask(() => dropCache(tenant))
        return result
      }
      try {
        for (const { status } of await Promise.all(lists)) expect(status).toBe(200)
      } finally {
        BlueprintColumns.prototype.step = step
      }
      expect(steps).toBeGreaterThan(20)
      dropCache(tenant)
      expect(measureColumns()).toBe(0)
    })
  })

  test('many changes are followed in steps, and the list then has all of them', async () => {
    const { path, origin, tokens } = await own
    const query = 'stage=won&$sort=-price&$count=true'
    await inMemory(async () => {
      await readLists(['admin'], [query])
      await importThings(
        { origin, tokens, path },
        Array.from({ length: 420 }, () => makeThing(source)),
      )
      const step = BlueprintColumns.prototype.step
      let steps = 0
      BlueprintColumns.prototype.step = function (...args) {
        steps++
        return step.apply(this, args)
      }
      let answers: unknown[] = []
      try {
        answers = await readLists(['admin'], [query])
      } finally {
        BlueprintColumns.prototype.step = step
      }
      expect(steps).toBeGreaterThan(420 / 50)
      expect(answers).toEqual(await withoutMemory(() => readLists(['admin'], [query], ALWAYS)))
    })
  })

  test.each([
    ['title', 20_000],
    ['code', 100_000],
  ])(
    'the field %s is left to the database without room for its values, and others stay in memory',
    async (name, room) => {
      const { tenant } = await own
      dropCache(tenant)
      await inMemory(async () => {
        await readLists(['admin'], ['stage=won&$sort=-price'])
        const limit = measureColumns() + room
        columnLimits.bytes = limit
        const query = `stage=lost&$sort=-${name}`
        const sorted = await readLists(['admin'], [query])
        expect(measureColumns()).toBeWithin(1, limit)
        const { reads } = columnStatistics
        await readLists(['admin'], ['stage=won&$sort=-price'])
        expect(columnStatistics.reads).toBeGreaterThan(reads)
        expect(sorted).toEqual(await withoutMemory(() => readLists(['admin'], [query], ALWAYS)))
      })
      dropCache(tenant)
    },
  )

  test('counts that read many index rows between changes are soon answered from memory', async () => {
    const counted = await createThingsFixture(fields)
    const { as, path, origin, tokens } = counted
    await importThings(
      { origin, tokens, path },
      Array.from({ length: 600 }, (_, n) => ({ stage: n % 2 ? 'won' : 'lost', price: n })),
    )
    const count = async () =>
      (await as('admin').get(`${path}?stage=won&price[$gte]=100&$sort=-created&$limit=1&$count=true`)).headers.get(
        'x-total-count',
      )
    const hasIndex = async () => (await getModel(counted.tenant, 'things')).compoundIndexes.length
    await withThresholds('middle', async () => {
      columnLimits.bytes = limits.bytes
      await waitUntil(async () => (await count()) && (await hasIndex()))
      const { reads } = columnStatistics
      for (let expected = 251; expected < 1_000; expected++) {
        expect((await as('admin').post(path, { stage: 'won', price: 1_000 })).status).toBe(201)
        expect(await count()).toBe(`${expected}`)
        if (columnStatistics.reads > reads + 5) break
      }
      expect(columnStatistics.reads).toBeGreaterThan(reads)
    })
  })

  test('a list in order of texts longer than 256 characters is not expected to be short', async () => {
    const { as, path, tenant } = await own
    const model = await getModel(tenant, 'things')
    const isExpected = () =>
      shouldUseColumns(tenant.db, model, { all: true }, parseQuery(model, undefined, '$sort=title'))
    await inMemory(async () => {
      const read = () => readLists(['admin'], ['$sort=title&$limit=1000'])
      await read()
      expect(isExpected()).toBe(true)
      for (const end of ['b', 'a'])
        expect((await as('user').post(path, { title: `${'long '.repeat(60)}${end}` })).status).toBe(201)
      expect(await read()).toEqual(await withoutMemory(() => readLists(['admin'], ['$sort=title&$limit=1000'], ALWAYS)))
      expect(isExpected()).toBe(false)
    })
  })

  test('a tenant that fills the memory alone leaves room for the columns of another one', async () => {
    const { tenant } = await own
    const other = await createThingsFixture(fields)
    const { origin, tokens, path } = other
    await importThings(
      { origin, tokens, path },
      Array.from({ length: 300 }, () => makeThing(source)),
    )
    await inMemory(async () => {
      await readLists(['admin'], ['stage=won&$sort=-price'])
      columnLimits.bytes = measureColumns() + 1_000
      const { reads } = columnStatistics
      for (let n = 0; n < 2; n++)
        expect((await other.as('admin').get(`${path}?stage=won&$sort=-price`)).status).toBe(200)
      expect(columnStatistics.reads).toBeGreaterThan(reads)
    })
    dropCache(tenant)
    dropCache(other.tenant)
  })

  test('a list that passes more entities than columns pass is not expected to be short', async () => {
    const { tenant } = await own
    const model = await getModel(tenant, 'things')
    await inMemory(async () => {
      await readLists(['admin'], ['stage=won&$sort=-price'])
      const expected = (search: string) =>
        shouldUseColumns(tenant.db, model, { all: true }, parseQuery(model, undefined, search))
      expect(expected('stage=won&$sort=-price')).toBe(true)
      expect(expected('stage=won&$sort=-price&$skip=10001')).toBe(false)
    })
  })

  test('the same blueprint of another tenant has columns of its own', async () => {
    const other = await createThingsFixture(fields)
    const { origin, tokens, path } = other
    await importThings({ origin, tokens, path }, [
      { identifier: 'only', stage: 'won', price: 1 },
      ...Array.from({ length: 20 }, () => ({ stage: 'lost' })),
    ])
    await inMemory(async () => {
      await readLists(['admin'], ['stage=won&$sort=-price'])
      const { body } = await other.as('admin').get(`${path}?stage=won&$sort=-price`)
      expect(identifiers(body)).toEqual(['only'])
    })
  })
})
