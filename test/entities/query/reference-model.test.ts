import { beforeAll, describe, expect, test } from 'bun:test'
import { columnStatistics } from '../../../src/entities/columns/column-cache'
import { retireUnusedIndexes } from '../../../src/entities/indexing/index-demand'
import { withLease } from '../../../src/jobs/with-lease'
import { type SeededRandom, seededRandom } from '../../blueprints/seeded-random'
import { databaseUrl } from '../../storage/engines'
import { fullAccessRules } from '../../test-tenant'
import { waitUntil } from '../../wait-until'
import { createThingsFixture, type Entity, identifiers, nextPagePath } from '../fixtures'
import {
  COLUMNS,
  type Filter,
  isPatterned,
  OPERATORS,
  referenceModel,
  toQueryString,
  withoutRepeatedLists,
} from './reference-model'
import { withThresholds, withWrongEstimates } from './small-thresholds'

type Kind = {
  type: string
  /** Values that are stored; few, so that queries match some. */
  values: unknown[]
  /** Values in queries, as text: stored ones in other notations, and different ones. */
  queried: string[]
}

// On PostgreSQL each run takes longer, so there are fewer.
const RUNS = databaseUrl ? 10 : 30
const LONG = 'long '.repeat(80)
const plainText = (values: string[], more: string[]): Omit<Kind, 'type'> => ({
  values,
  queried: [...values.filter(Boolean), ...more],
})
// Texts that differ only after the part that the index has of them.
const alike = plainText(
  ['a', 'B', 'ä', '😀', '\uffff', ''].map((end) => LONG + end),
  [`${LONG}b`, `${LONG}Ä`],
)
const words = plainText(
  ['', 'a', 'A', 'ab', 'b', 'ä', 'z', 'ﬀ', '\uffff', '😀', 'x y', 'a+b', '50%', '_', '10', '9', 'true', LONG],
  ['aa', 'B', '\ue000', '𐀀', 'zz', 'y'],
)
const kinds: Record<string, Kind> = {
  title: { type: 'string', ...words },
  notes: { type: 'text', ...words },
  body: {
    type: 'text',
    values: [...alike.values, ...words.values.slice(0, 4)],
    queried: [...alike.queried, ...words.queried.slice(0, 4)],
  },
  price: {
    type: 'number',
    values: [0, 1, -1, 1.5, -1.5, 0.1, 0.1 + 0.2, 100, -100, 1e300, -1e300, 5e-324, -5e-324, 1e15],
    queried: ['0', '-0', '1.0', '-1', '1.5', '0.3', '0.1', '1e2', '1e-9', '-1e301', '99.999', '.5', '5e-324'],
  },
  stock: {
    type: 'integer',
    values: [0, 1, 2, 9, 10, 11, 99, 100, -1, -10, 2 ** 53 - 1, -(2 ** 53 - 1)],
    queried: ['0', '1', '10', '9.5', '-1', '-10.5', '100', '1e1', '9007199254740991'],
  },
  cost: {
    type: 'decimal',
    values: ['0', '-0.0', '1', '1.0', '1.5', '-1.5', '-1.50', '-1.05', '10', '9.99', '100', '0.001', '-0.001', '-10'],
    queried: ['0', '1.00', '01', '1.5', '-1.5', '9.990', '-10.0', '0.0010', '-0.002', '11', `${'9'.repeat(60)}`],
  },
  active: { type: 'boolean', values: [true, false], queried: ['true', 'false', '1', '0'] },
  day: {
    type: 'date',
    ...plainText(['2026-01-31', '2026-02-01', '2025-12-31', '2024-02-29', '0999-01-01'], ['2026-01-01']),
  },
  moment: {
    type: 'datetime',
    values: [
      ...['2026-01-31T12:00:00Z', '2026-01-31T14:00:00+02:00', '2026-01-31T12:00:00.001Z', '1969-12-31T23:59:59Z'],
      ...['2026-01-31T23:30-01:00', '2026-02-01T00:00:00Z', '1600-01-01T00:00:00Z'],
    ],
    queried: ['2026-01-31', '2026-01-31T12:00Z', '2026-01-31T13:00:00+01:00', '2026-02-01T00:30:00Z', '1970-01-01'],
  },
  clock: {
    type: 'time',
    values: ['00:00', '08:00', '08:00:00', '08:00:01', '23:59:59', '12:30'],
    queried: ['08:00', '08:00:00', '00:00:00', '12:29:59', '23:59'],
  },
  mail: { type: 'email', ...plainText(['a@b.de', 'A@b.de', 'b@b.de', 'a+x@b.de'], ['a@b']) },
  link: { type: 'url', ...plainText(['https://a.de/', 'https://a.de/?b=c&d=e', 'http://a.de'], ['https://']) },
  picture: { type: 'file', ...plainText(['/a.png', 'https://a.de/a.png', '/b'], ['/']) },
  plain: { type: 'string', ...words },
  // A range over a list refuses longer texts.
  tags: { type: 'string', ...words, queried: words.queried.filter((text) => text !== LONG) },
  scores: { type: 'integer', values: [1, 2, 3, 10, -5], queried: ['1', '2', '2.5', '10', '-5'] },
  prices: { type: 'decimal', values: ['1', '1.0', '2.5', '-1', '10'], queried: ['1.00', '2', '2.5', '-1'] },
}
const MULTI = ['tags', 'scores', 'prices']
const fields = [
  ...Object.entries(kinds).map(([key, { type }]) => ({
    ...{ key, type, multi: MULTI.includes(key) },
    ...(key === 'plain' && { indexed: false }),
  })),
  { key: 'place', type: 'object' },
  { key: 'steps', type: 'object', multi: true },
]
const PATHS = [
  'place.city',
  'place.zip',
  'place.deep.flag',
  'place.list',
  'place.deep.list.n',
  'steps.name',
  'steps.zip',
]
const parts = {
  strings: ['a', 'b', 'ä', '10', 'true', '😀'],
  scalars: ['a', 'b', '10', 10, 2, -1.5, true, false, null, 'true'],
}
const { holds, sort } = referenceModel(Object.fromEntries(Object.entries(kinds).map(([key, { type }]) => [key, type])))

function anyThing({ chance, pick, some }: SeededRandom, place = true): Record<string, unknown> {
  const thing: Record<string, unknown> = {}
  for (const [key, { values }] of Object.entries(kinds)) {
    if (chance(0.25)) continue
    thing[key] = MULTI.includes(key) ? some(values, 4) : pick(values)
  }
  const part = () => pick(parts.scalars)
  if (place && chance(0.8))
    thing.place = {
      ...(chance(0.7) && { city: pick(parts.strings) }),
      ...(chance(0.7) && { zip: part() }),
      ...(chance(0.6) && { deep: { flag: chance(0.5), list: some([1, 2, 3], 3).map((n) => ({ n })) } }),
      ...(chance(0.5) && { list: some(parts.scalars, 3) }),
    }
  if (place && chance(0.5)) thing.steps = some([0, 1, 2], 3).map(() => ({ name: pick(parts.strings), zip: part() }))
  return thing
}

/** Returns a pattern that matches a text, or nearly so: with some wildcards, and in other letter cases. */
function patternOf({ pick, chance, below }: SeededRandom, text: string) {
  const characters = [...text].map((one) => {
    const special = '%_\\'.includes(one)
    return chance(0.15) ? '_' : special && chance(0.7) ? `\\${one}` : chance(0.2) ? one.toUpperCase() : one
  })
  const [from, to] = [below(3), characters.length - below(3)]
  const middle = characters.slice(from, Math.min(to, from + 30)).join('')
  return pick([middle, `%${middle}`, `${middle}%`, `%${middle}%`, `${middle.slice(0, 1)}%`, '%', `${middle}_`]) || '%'
}

function anyFilter(source: SeededRandom, entities: Entity[], names: string[]): Filter {
  const { pick, chance, some } = source
  const name = pick(names)
  const able = isPatterned(name, kinds[name]?.type) && name !== 'plain'
  const operator = pick(OPERATORS.filter((one) => able || one !== '[$like]'))
  const queryText = () => {
    if (name === 'created' || name === 'updated') return chance(0.2) ? '2026-01-01' : pick(entities)[name]
    if (COLUMNS.includes(name)) return (pick(entities)[name] as string) ?? 'none'
    return name.includes('.')
      ? pick(['a', 'ä', '10', '2', '-1.5', '1', 'true', 'false', 'zz', '9.5'])
      : pick(kinds[name]!.queried)
  }
  if (operator === '[$exists]') return { name, operator, text: pick(['true', 'false', '1', '0']) }
  if (operator === '[$like]') return { name, operator, text: patternOf(source, queryText()) }
  if (!/in\]$/.test(operator)) return { name, operator, text: queryText() }
  return { name, operator, text: [queryText(), ...some([0, 0, 0], 3).map(queryText)].join(',') }
}

/** Returns a random query and its expected answer. `entities` are in the order of their creation. */
function anyQuery(source: SeededRandom, entities: Entity[], names: string[], sortable: string[]) {
  const { below, chance, pick } = source
  const filters = withoutRepeatedLists(
    Array.from({ length: pick([0, 1, 1, 1, 2, 2, 3]) }, () => anyFilter(source, entities, names)),
  )
  const by = Array.from({ length: pick([0, 1, 1, 2, 3]) }, () => ({ name: pick(sortable), descending: chance(0.5) }))
  const [limit, skip] = [chance(0.5) ? 1 + below(30) : 1_000, chance(0.4) ? below(60) : 0]
  const matching = entities.filter((entity) => filters.every((filter) => holds(filter, entity)))
  const sorted = sort(matching, by.length ? by : [{ name: 'created', descending: true }])
  const query = toQueryString(filters, by, { $limit: limit, $skip: skip, $count: true })
  return {
    query,
    expected: identifiers(sorted.slice(skip, skip + limit)),
    total: sorted.length,
    more: sorted.length > skip + limit,
  }
}

/** Returns a function that reads a random list as a user, and compares the answer with the reference model. */
function createComparer(
  { as, path, users }: Awaited<ReturnType<typeof createThingsFixture>>,
  entities: Entity[],
  name: 'admin' | 'user' | 'other',
  source: ReturnType<typeof seededRandom>,
) {
  const reached = name === 'admin' ? entities : entities.filter(({ user }) => user === users[name])
  return async (names: string[], sortable: string[], run: string) => {
    const { query, expected, total, more } = anyQuery(source, reached, names, sortable)
    const label = `${run}, as ${name}: ${query}`
    const { status, body, headers } = await as(name).get(`${path}?${query}`)
    expect([status, body.message], label).toEqual([200, undefined])
    const answer = [identifiers(body), headers.get('x-total-count'), !!nextPagePath(headers)]
    expect(answer, label).toEqual([expected, `${total}`, more])
  }
}

describe('a list of entities with fields of every type', () => {
  const SEED = 4_711
  const source = seededRandom(SEED)
  const own = createThingsFixture(fields, fullAccessRules('user', 'user'))
  const entities: Entity[] = []

  beforeAll(async () => {
    const { as, path } = await own
    for (let n = 0; n < 400; n++) {
      const { status, body } = await as(source.pick(['user', 'user', 'other', 'admin'])).post(path, anyThing(source))
      expect([status, body.message]).toEqual([201, undefined])
      entities.push(body)
    }
    // Some entities are changed, and some are deleted.
    for (let n = 0; n < 100; n++) {
      const at = source.below(entities.length)
      const { identifier, metadata } = entities[at]!
      if (source.chance(0.2)) {
        await as('admin').delete(`${path}/${identifier}`)
        entities.splice(at, 1)
      } else {
        const cleared = Object.fromEntries(
          Object.keys(metadata).map((key) => [key, source.chance(0.3) ? null : metadata[key]]),
        )
        const { status, body } = await as('admin').put(`${path}/${identifier}`, { ...cleared, ...anyThing(source) })
        expect([status, body.message]).toEqual([200, undefined])
        entities[at] = body
      }
    }
  })

  const names = [...Object.keys(kinds), ...PATHS, ...COLUMNS]
  const sortable = [...Object.keys(kinds).filter((key) => !MULTI.includes(key)), ...COLUMNS]

  test.each([
    ['admin', 'usual'],
    ['user', 'usual'],
    ['other', 'usual'],
    ['admin', 'small'],
    ['user', 'small'],
    ['other', 'small'],
  ] as const)('a list agrees with the reference model for %s, with %s thresholds', async (name, size) => {
    const compare = createComparer(await own, entities, name, source)
    await withThresholds(size, async () => {
      for (let run = 0; run < RUNS * 5; run++) await compare(names, sortable, `seed ${SEED}, run ${run}`)
    })
  })

  test.skipIf(!!databaseUrl).each(['admin', 'user', 'other'] as const)(
    'a list of values in memory agrees with the reference model for %s',
    async (name) => {
      const compare = createComparer(await own, entities, name, source)
      const work = async () => {
        for (let run = 0; run < RUNS * 5; run++) await compare(names, sortable, `seed ${SEED}, run ${run}`)
      }
      const { reads } = columnStatistics
      await withThresholds('small', work, { usesColumns: true })
      expect(columnStatistics.reads - reads).toBeGreaterThan(RUNS)
    },
  )

  test.each(['usual', 'small'] as const)(
    'a list agrees with the reference model although every estimate is wrong, with %s thresholds',
    async (size) => {
      const setup = await own
      await withThresholds(size, () =>
        withWrongEstimates(source, async () => {
          for (const name of ['admin', 'user'] as const) {
            const compare = createComparer(setup, entities, name, source)
            for (let run = 0; run < RUNS * 3; run++) await compare(names, sortable, `seed ${SEED}, run ${run}`)
          }
        }),
      )
    },
  )

  test('a list shows every entity as it was answered when it was written', async () => {
    const { as, path } = await own
    const { body } = await as('admin').get(`${path}?$limit=1000&$sort=created`)
    expect(body).toEqual(entities)
  })

  const walkPages = async () => {
    const { as, path } = await own
    for (let run = 0; run < 12; run++) {
      const by = [{ name: source.pick(sortable), descending: source.chance(0.5) }]
      const [limit, { name, descending }] = [40 + source.below(100), by[0]!]
      const start = `${path}?$sort=${descending ? '-' : ''}${name}&$limit=${limit}`
      const seen: string[] = []
      for (let at: string | undefined = start; at; ) {
        const { body, headers } = await as('admin').get(at)
        seen.push(...identifiers(body))
        at = nextPagePath(headers)
      }
      expect(seen, `seed ${SEED}, run ${run}: ${start}`).toEqual(identifiers(sort(entities, by)))
    }
  }
  test.each(['usual', 'small'] as const)(
    'paging by links returns each entity once and in order, with %s thresholds',
    (size) => withThresholds(size, walkPages),
  )
  test('paging by links through values in memory returns each entity once and in order', () =>
    withThresholds('small', walkPages, { usesColumns: true }))
})

describe('a list of 2,600 entities with common values', () => {
  const SEED = 1_234
  const source = seededRandom(SEED)
  const keys = ['title', 'stock', 'active', 'tags', 'cost']
  const own = createThingsFixture(
    fields.filter(({ key }) => [...keys, 'place'].includes(key)),
    fullAccessRules('user', 'user'),
  )
  const entities: Entity[] = []

  beforeAll(async () => {
    const { as, path } = await own
    const { chance, pick, some } = source
    for (let n = 0; n < 2_600; n++) {
      const thing = {
        ...(chance(0.9) && { title: chance(0.5) ? 'a' : pick(kinds.title!.values) }),
        ...(chance(0.9) && { stock: chance(0.5) ? 1 : pick(kinds.stock!.values) }),
        ...(chance(0.95) && { active: chance(0.9) }),
        ...(chance(0.9) && { tags: ['a', ...some(kinds.tags!.values, 2)] }),
        ...(chance(0.3) && { cost: pick(kinds.cost!.values) }),
        ...(chance(0.9) && { place: { city: chance(0.8) ? 'a' : 'b', zip: pick(parts.scalars) } }),
      }
      const { status, body } = await as(chance(0.6) ? 'user' : 'other').post(path, thing)
      expect([status, body.message]).toEqual([201, undefined])
      entities.push(body)
    }
  })

  test.each([
    ['admin', 'usual'],
    ['user', 'usual'],
    ['admin', 'middle'],
    ['user', 'middle'],
  ] as const)(
    'a list of 2,600 entities agrees with the reference model for %s, with %s thresholds',
    async (name, size) => {
      const compare = createComparer(await own, entities, name, source)
      const names = [...keys, 'place.city', 'place.zip', 'user', 'created', 'updated']
      const sortable = ['title', 'stock', 'active', 'cost', 'created', 'updated', 'user']
      await withThresholds(size, async () => {
        for (let run = 0; run < RUNS * 2; run++) await compare(names, sortable, `seed ${SEED}, run ${run}`)
      })
    },
  )

  test.skipIf(!!databaseUrl).each(['admin', 'user'] as const)(
    'a list of values of 2,600 entities in memory agrees with the reference model for %s',
    async (name) => {
      const compare = createComparer(await own, entities, name, source)
      const sortable = ['title', 'stock', 'active', 'cost', 'created', 'updated', 'user']
      const work = async () => {
        for (let run = 0; run < RUNS * 6; run++)
          await compare(
            ['title', 'stock', 'active', 'cost', 'user', 'created', 'updated'],
            sortable,
            `seed ${SEED}, run ${run}`,
          )
      }
      const { reads } = columnStatistics
      await withThresholds('middle', work, { usesColumns: true })
      expect(columnStatistics.reads - reads).toBeGreaterThan(RUNS * 4)
    },
  )

  test.each(['usual', 'middle'] as const)(
    'a list of 2,600 entities agrees with the reference model although every estimate is wrong, with %s thresholds',
    async (size) => {
      const compare = createComparer(await own, entities, 'user', source)
      const names = [...keys, 'place.city', 'place.zip', 'user', 'created', 'updated']
      const sortable = ['title', 'stock', 'active', 'cost', 'created', 'updated', 'user']
      await withThresholds(size, () =>
        withWrongEstimates(source, async () => {
          for (let run = 0; run < RUNS * 2; run++) await compare(names, sortable, `seed ${SEED}, run ${run}`)
        }),
      )
    },
  )

  test('a list agrees with the reference model while the indexes that it asks for wait, are built and are removed', async () => {
    const setup = await own
    const { tenant } = setup
    const names = [...keys, 'place.city', 'user', 'created']
    const sortable = ['title', 'stock', 'active', 'cost', 'created']
    const countIndexes = async (...states: string[]) =>
      Number(
        (await tenant.db.query(`select count(*) from field_indexes where state in ('${states.join("','")}')`))[0]![0],
      )
    const settled = () => waitUntil(async () => (await countIndexes('building', 'retiring', 'removing')) === 0)
    const retireAll = () =>
      withLease(tenant, 'removal', async (leased) => {
        await tenant.write((tx) => tx.query("update field_indexes set used = 0 where state = 'ready'"))
        await retireUnusedIndexes(leased)
      })
    const compareSome = async (run: string) => {
      for (const name of ['admin', 'user'] as const) {
        const compare = createComparer(setup, entities, name, source)
        for (let n = 0; n < RUNS; n++) await compare(names, sortable, `seed ${SEED}, ${run}, run ${n}`)
      }
    }
    await withThresholds('middle', async () => {
      for (const round of [1, 2]) {
        await settled()
        await retireAll()
        await settled()
        await withLease(tenant, 'indexing things', async () => {
          await waitUntil(async () => {
            await compareSome(`round ${round}, indexes wait`)
            return (await countIndexes('building')) > 0
          })
        })
        await compareSome(`round ${round}, indexes are built`)
        await settled()
        await retireAll()
        await compareSome(`round ${round}, indexes are removed`)
      }
    })
  })

  test('paging by links through 2,600 entities returns each match once and in order', async () => {
    const { as, path } = await own
    const filter: Filter = { name: 'tags', operator: '', text: 'a' }
    const matching = entities.filter((entity) => holds(filter, entity))
    for (const [sorting, by] of [
      ['-stock', [{ name: 'stock', descending: true }]],
      ['cost', [{ name: 'cost', descending: false }]],
      ['', [{ name: 'created', descending: true }]],
    ] as const) {
      const seen: string[] = []
      for (let at: string | undefined = `${path}?tags=a&$sort=${sorting}&$limit=300`; at; ) {
        const { body, headers } = await as('admin').get(at)
        seen.push(...identifiers(body))
        at = nextPagePath(headers)
      }
      expect(seen, `seed ${SEED}: $sort=${sorting}`).toEqual(identifiers(sort(matching, [...by])))
    }
  })
})
