import { beforeAll, expect, test } from 'bun:test'
import { seededRandom, toDecimalUnits } from '../../blueprints/seeded-random'
import { fullAccessRules } from '../../test-tenant'
import { createThingsFixture, type Entity } from '../fixtures'

/** The expected answers of charts, computed the slow way: scan all entities, filter, group and sum. */

const SEED = 90_210
const source = seededRandom(SEED)
const { below, chance, pick, some } = source

const values: Record<string, unknown[]> = {
  title: ['', 'a', 'A', 'ä', 'Unknown', '😀', 'x y', '10', '9', 'long '.repeat(80), `${'long '.repeat(80)}er`],
  price: [0, 1, -1.5, 0.1, 0.2, 0.3, 1e15, 1e-7, 1e300, -1e300],
  stock: [0, 1, 9, 10, -10, 2 ** 53 - 1, 2 ** 52],
  cost: ['0', '0.1', '0.20', '-1.05', '19.90', '123456789012345678.9', '0.000000000000000001'],
  active: [true, false],
  day: ['2026-01-31', '2026-02-01', '2025-12-31', '2024-02-29', '2026-02-02'],
  moment: ['2026-01-31T23:30:00-01:00', '2026-01-31T12:00:00Z', '1969-12-31T23:59:59.999Z', '2024-12-30T00:00Z'],
  clock: ['00:00', '08:00', '08:59:59', '23:59:59'],
  mail: ['a@b.de', 'A@b.de'],
}
const types: Record<string, string> = {
  ...{ title: 'string', price: 'number', stock: 'integer', cost: 'decimal', active: 'boolean', day: 'date' },
  ...{ moment: 'datetime', clock: 'time', mail: 'email' },
}
const lists: Record<string, unknown[]> = {
  tags: values.title!,
  marks: [1, 2, 3, 3, -1],
  days: values.day!,
  costs: ['1.10', '2', '-0.5'],
}
const listTypes: Record<string, string> = { tags: 'string', marks: 'integer', days: 'date', costs: 'decimal' }
const parts = ['a', 'b', 1, 2.5, true, false, 'long '.repeat(80)]

const fixture = await createThingsFixture(
  [
    ...Object.entries(types).map(([key, type]) => ({ key, type, indexed: key !== 'mail' })),
    ...Object.entries(listTypes).map(([key, type]) => ({ key, type, multi: true })),
    { key: 'place', type: 'object' },
  ],
  fullAccessRules('user', 'user'),
)
const { as, path, users } = fixture
const entities: Entity[] = []

const anyThing = () => ({
  ...Object.fromEntries(Object.keys(types).flatMap((key) => (chance(0.8) ? [[key, pick(values[key]!)]] : []))),
  ...Object.fromEntries(Object.keys(lists).flatMap((key) => (chance(0.7) ? [[key, some(lists[key]!, 3)]] : []))),
  ...(chance(0.7) && { place: { part: chance(0.5) ? pick(parts) : some(parts, 3), deep: [{ part: pick(parts) }] } }),
})

beforeAll(async () => {
  for (let n = 0; n < 300; n++) {
    const { status, body } = await as(pick(['user', 'user', 'other'])).post(path, anyThing())
    expect([status, body.message]).toEqual([201, undefined])
    entities.push(body)
  }
})

type Value = string | number | boolean
const DAY_MS = 86_400_000

/** Returns the values of an entity by the name or the path of a field. */
function valuesOf(entity: Entity, name: string): Value[] {
  if (['user', 'created'].includes(name)) return [entity[name] as Value]
  const at = (value: unknown, [key, ...rest]: string[]): unknown[] =>
    Array.isArray(value)
      ? value.flatMap((one) => at(one, key === undefined ? [] : [key, ...rest]))
      : key === undefined
        ? value === undefined
          ? []
          : [value]
        : at((value as Record<string, unknown> | undefined)?.[key], rest)
  return at(entity.metadata, name.split('.')) as Value[]
}

const typeOf = (name: string) => types[name] ?? listTypes[name] ?? (name === 'created' ? 'datetime' : 'string')

/** Returns the position and the name of the group of a value. */
function groupOf(
  name: string,
  value: Value,
  interval: string | undefined,
): [order: string | number | bigint, name: Value] {
  const type = typeOf(name)
  if (type === 'time') return [Number(`${value}`.slice(0, 2)), Number(`${value}`.slice(0, 2))]
  if (type === 'date' || type === 'datetime') {
    const date = new Date(value as string)
    if (!interval) return [date.getUTCDay(), date.getUTCDay()]
    const [year, month] = [date.getUTCFullYear(), date.getUTCMonth()]
    const day = Math.floor(date.getTime() / DAY_MS)
    const week = new Date((day - ((date.getUTCDay() + 6) % 7)) * DAY_MS)
    const start = {
      day: new Date(day * DAY_MS),
      week,
      month: new Date(Date.UTC(year, month)),
      year: new Date(Date.UTC(year, 0)),
    }
    const text = start[interval as 'day'].toISOString().slice(0, 10)
    return [text, text]
  }
  if (type === 'decimal') return [toDecimalUnits(value as string), value]
  // Parts of objects sort by their type: booleans, then numbers, then texts.
  if (name.includes('.')) return [`${['boolean', 'number', 'string'].indexOf(typeof value)} ${value}`, value]
  return [typeof value === 'boolean' ? Number(value) : value, value]
}

/** Returns a double as a fraction over 2^1074. */
function fraction(value: number): bigint {
  let [whole, exponent] = [value, 0]
  while (!Number.isInteger(whole)) [whole, exponent] = [whole * 2, exponent + 1]
  return BigInt(whole) << BigInt(1074 - exponent)
}

function sumOf(list: Value[], type: string): number | string {
  if (type === 'number') {
    const sum = (list as number[]).map(fraction).reduce((one, other) => one + other, 0n)
    // The exact sum, cut after 40 decimal digits, is rounded to the nearest double.
    return Number(`${(sum * 10n ** 40n) >> 1074n}e-40`)
  }
  if (type === 'integer') {
    const sum = list.map((one) => BigInt(one as number)).reduce((one, other) => one + other, 0n)
    return Number.isSafeInteger(Number(sum)) ? Number(sum) : `${sum}`
  }
  const sum = list.map((one) => toDecimalUnits(one as string)).reduce((one, other) => one + other, 0n)
  const digits = `${sum < 0n ? -sum : sum}`.padStart(61, '0')
  const part = digits.slice(-60).replace(/0+$/, '')
  const text = `${sum < 0n ? '-' : ''}${digits.slice(0, -60)}${part && `.${part}`}`
  const number = Number(text)
  return digits.replace(/^0+|0+$/g, '').length <= 15 || `${number}` === text ? number : text
}

type ChartRequest = { by?: string; sum?: string; interval?: string; entities: Entity[] }

/** Returns every group with its count or sum, in order; `Unknown` comes last. */
function expectedChart({ by, sum, interval, entities: found }: ChartRequest) {
  const amount = (list: Entity[]) =>
    sum
      ? sumOf(
          list.flatMap((entity) => valuesOf(entity, sum)),
          typeOf(sum),
        )
      : list.length
  const groups = new Map<string | number | bigint, { name: Value; members: Entity[] }>()
  const unknown: Entity[] = []
  for (const entity of by ? found : []) {
    const own = new Map(valuesOf(entity, by!).map((value) => groupOf(by!, value, interval)))
    if (!own.size) unknown.push(entity)
    for (const [order, name] of own) {
      const group = groups.get(order) ?? { name, members: [] }
      groups.set(order, group)
      group.members.push(entity)
    }
  }
  const sorted = [...groups].sort(([one], [other]) => (one < other ? -1 : 1))
  const named = sorted.map(([, { name, members }]) => [name, amount(members)] as [Value, number | string])
  const all = interval ? fillGaps(named, interval) : named
  return { all: amount(found), groups: unknown.length ? [...all, ['Unknown', amount(unknown)] as const] : all }
}

function fillGaps(named: [Value, number | string][], interval: string) {
  const known = new Map(named)
  const filled: [Value, number | string][] = []
  const [first, last] = [named[0]?.[0] as string, named.at(-1)?.[0] as string]
  // Days that do not begin an interval are skipped.
  for (let day = Date.parse(first); day <= Date.parse(last); day += DAY_MS) {
    const date = new Date(day)
    const begins = {
      day: true,
      week: date.getUTCDay() === 1,
      month: date.getUTCDate() === 1,
      year: date.getUTCDate() === 1 && !date.getUTCMonth(),
    }
    const text = date.toISOString().slice(0, 10)
    if (begins[interval as 'day']) filled.push([text, known.get(text) ?? 0])
  }
  return filled
}

const filters: [query: string, holds: (entity: Entity) => boolean][] = [
  ['', () => true],
  ['', () => true],
  ['title=a', ({ metadata }) => metadata.title === 'a'],
  ['stock[$gte]=1', ({ metadata }) => Number(metadata.stock ?? Number.NaN) >= 1],
  ['active[$ne]=true', ({ metadata }) => metadata.active !== true],
  ['tags=a', (entity) => valuesOf(entity, 'tags').includes('a')],
  ['mail=a@b.de', ({ metadata }) => metadata.mail === 'a@b.de'],
  ['place.part=a', (entity) => valuesOf(entity, 'place.part').includes('a')],
  ['day[$exists]=true&stock[$lt]=10', ({ metadata }) => !!metadata.day && Number(metadata.stock ?? Number.NaN) < 10],
]
const dates = ['day', 'moment', 'days', 'created']
const groupable = [...Object.keys(types), ...Object.keys(lists), 'place.part', 'place.deep.part', 'user', 'created']
const addable = ['price', 'stock', 'cost', 'marks', 'costs']

test.each(['admin', 'user', 'other'] as const)('charts agree with the reference model for %s', async (name) => {
  for (let run = 0; run < 150; run++) {
    const type = pick(['bar', 'line', 'scatter', 'area', 'pie', 'sum', 'sum', 'count'])
    const [filter, holds] = pick(filters)
    const found = entities.filter((entity) => (name === 'admin' || entity.user === users[name]) && holds(entity))
    const by = type === 'count' || (type === 'sum' && chance(0.3)) ? undefined : pick(groupable)
    const sum = type === 'sum' || (by && chance(0.3)) ? pick(addable) : undefined
    const interval = by && dates.includes(by) && chance(0.6) ? pick(['week', 'month', 'year']) : undefined
    const mayHaveTooManyPoints = interval === 'week' && by === 'moment'
    const [skip, limit] = chance(0.3) ? [below(4), 1 + below(5)] : [0, 1_000]
    const query = new URLSearchParams({
      ...(by && { [type === 'sum' ? 'groupBy' : 'x']: by }),
      ...(sum && { sum }),
      ...(interval && { interval }),
      ...(type !== 'count' && limit < 1_000 && { $limit: `${limit}`, $skip: `${skip}` }),
    })
    const label = `seed ${SEED}, run ${run}, as ${name}: ${type}?${query}&${filter}`
    const { status, body } = await as(name).get(`/blueprints/things/charts/${type}?${query}&${filter}`)
    if (mayHaveTooManyPoints && status === 400) continue // The chart would have too many points.
    expect([status, body.message], label).toEqual([200, undefined])

    const { all, groups } = expectedChart({ by, sum, interval, entities: found })
    const page = groups.slice(skip, skip + limit)
    if (type === 'count') expect(body, label).toEqual({ count: found.length })
    else if (type === 'sum')
      expect(body, label).toEqual({ sum: all, ...(by && { groups: page.map(([group, sum]) => ({ group, sum })) }) })
    else if (type === 'pie')
      expect(
        body.series[0].data.map(({ name, value }: { name: Value; value: number }) => [name, value]),
        label,
      ).toEqual(page)
    else
      expect([body.xAxis.data, body.series[0].data], label).toEqual([
        page.map(([name]) => name),
        page.map(([, value]) => value),
      ])
  }
})
