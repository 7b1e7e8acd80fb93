import { beforeAll, expect, test } from 'bun:test'
import { queryDatabase } from '../../fakes/postgres'
import { databaseUrl } from '../../storage/engines'
import { statusAndCode } from '../../test-tenant'
import { createThingsFixture } from '../fixtures'

/** So many entities that charts read them in slices: a few, doubled in the database again and again. */

const DOUBLINGS = 12
const COPIES = 2 ** DOUBLINGS
const { as, path, tenant } = await createThingsFixture([
  { key: 'name', type: 'string' },
  { key: 'price', type: 'decimal' },
  { key: 'tags', type: 'string', multi: true },
  { key: 'marks', type: 'integer', multi: true },
])
/** Returns a chart, and repeats the request while a busy machine answers 503. */
const getChart = async (query: string) => {
  for (;;) {
    const { status, body } = await as('user').get(`/blueprints/things/charts/${query}`)
    if (status !== 503) return body
  }
}

const COPY_ENTITIES = `insert into entities (seq, _id, blueprint, identifier, "user", workspace, shown, keys, version, created, updated)
  select seq + ?, _id || ?, blueprint, identifier || ?, "user", workspace, shown, keys, version, created, updated
  from entities`
const COPY_INDEX = `insert into entity_index (field, path, value, created, entity)
  select field, path, value, created, entity + ? from entity_index`

beforeAll(async () => {
  for (const thing of [
    { name: 'a', price: '0.10', tags: ['x', 'y'], marks: [1, 1] },
    { name: 'b', price: '0.20', tags: ['y'] },
    { name: 'b', price: '0.2' },
    {},
  ])
    expect((await as('user').post(path, thing)).status).toBe(201)
  for (let turn = 0; turn < DOUBLINGS; turn++)
    await tenant.write(async (tx) => {
      const [[last]] = (await tx.query('select max(seq) from entities')) as [[number]]
      await tx.query(COPY_ENTITIES, [last, `-${turn}`, `-${turn}`])
      await tx.query(COPY_INDEX, [last])
    })
  // The server analyzes tables by the number of rows that it has written, which excludes these copies.
  if (databaseUrl) await queryDatabase(databaseUrl, 'analyze')
})

test('a chart counts each of 16,384 entities once', async () => {
  expect(await getChart('count')).toEqual({ count: 4 * COPIES })
  const { xAxis, series } = await getChart('bar?x=name')
  expect(xAxis.data).toEqual(['a', 'b', 'Unknown'])
  expect(series[0].data).toEqual([COPIES, 2 * COPIES, COPIES])
})

test('a chart of 16,384 entities counts those that a filter finds', async () => {
  for (const [filter, counts] of [
    ['name=b', { b: 2 * COPIES }],
    ['name[$ne]=b', { a: COPIES, Unknown: COPIES }],
    ['name[$gte]=b', { b: 2 * COPIES }],
    ['tags=y', { a: COPIES, b: COPIES }],
    ['user[$exists]=true', { a: COPIES, b: 2 * COPIES, Unknown: COPIES }],
  ] as const) {
    const { series } = await getChart(`pie?x=name&${filter}`)
    const found = series[0].data.map(({ name, value }: { name: string; value: number }) => [name, value])
    expect(Object.fromEntries(found), filter).toEqual(counts)
  }
})

test('a chart of 16,384 entities has exact sums', async () => {
  expect(await getChart('sum?sum=price')).toEqual({ sum: COPIES / 2 })
  expect(await getChart('sum?sum=price&groupBy=tags')).toEqual({
    groups: [
      { group: 'x', sum: COPIES / 10 },
      { group: 'y', sum: (3 * COPIES) / 10 },
      { group: 'Unknown', sum: COPIES / 5 },
    ],
    sum: COPIES / 2,
  })
  expect(await getChart('sum?sum=marks&groupBy=name')).toMatchObject({ sum: 2 * COPIES })
})

test('a chart of 16,384 groups is counted and paged', async () => {
  const { headers, body } = await as('user').get('/blueprints/things/charts/bar?x=identifier&$limit=3&$count=true')
  expect(body.series[0].data).toEqual([1, 1, 1])
  expect(headers.get('x-total-count')).toBe(`${4 * COPIES}`)
  expect((await getChart('bar?x=identifier')).series[0].data).toHaveLength(1_000)
  expect((await getChart('bar?x=identifier&$limit=5000')).series[0].data).toHaveLength(1_000)
})

test('a chart of 100,000 groups succeeds, and one of more gets 400 INVALID_INPUT', async () => {
  const { as, path } = await createThingsFixture([{ key: 'tags', type: 'string', multi: true }])
  const tagged = (n: number) => as('user').post(path, { tags: Array.from({ length: 2_000 }, (_, m) => `${n} ${m}`) })
  for (let n = 0; n < 50; n++) expect((await tagged(n)).status).toBe(201)
  const getPie = () => as('user').get('/blueprints/things/charts/pie?x=tags&$limit=2')
  expect((await getPie()).body.series[0].data).toEqual([
    { name: '0 0', value: 1 },
    { name: '0 1', value: 1 },
  ])
  await tagged(50)
  expect(statusAndCode(await getPie())).toEqual([400, 'INVALID_INPUT'])
})

test('a list is answered while a chart of 16,384 entities is computed', async () => {
  const order: string[] = []
  const slow = getChart('sum?sum=marks&groupBy=name').then(() => order.push('chart'))
  await new Promise(setImmediate)
  await as('user').get(`${path}?$limit=1`)
  order.push('list')
  await slow
  expect(order).toEqual(['list', 'chart'])
})
