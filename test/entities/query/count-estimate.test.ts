import { beforeAll, expect, test } from 'bun:test'
import { createThingsFixture, importThings, indexWords } from '../fixtures'
import { SIZES, withThresholds } from './small-thresholds'

const COUNT = 400
const fixture = createThingsFixture(
  [
    { key: 'stage', type: 'string', indexed: true },
    { key: 'worth', type: 'number' },
    { key: 'note', type: 'text' },
  ],
  [
    { operation: 'create', scope: 'tenant', roleBased: ['user'] },
    { operation: 'read', scope: 'user', roleBased: ['user'] },
  ],
)
const toThing = (_: unknown, n: number) => ({
  stage: ['won', 'lost', 'open', 'open'][n % 4],
  worth: (n * 7) % 100,
  note: n % 2 ? 'even words' : 'odd words',
})

beforeAll(async () => {
  const own = await fixture
  await importThings(own, Array.from({ length: COUNT }, toThing))
  const tokens = { ...own.tokens, user: own.tokens.other }
  await importThings({ ...own, tokens }, [{ stage: 'won' }, { stage: 'won' }, { stage: 'lost' }])
  await indexWords(own)
})

async function countAs(user: 'admin' | 'user' | 'other', query: string, count = 'estimate') {
  const { as, path } = await fixture
  const { status, headers } = await as(user).get(`${path}?$limit=1&$count=${count}&${query}`)
  expect(status).toBe(200)
  return { count: Number(headers.get('x-total-count')), estimated: headers.get('x-total-count-estimated') }
}

// Filters that other tests have not counted, because what is known exactly is answered exactly.
test.each(['', 'stage=open', 'stage=won&worth[$gte]=50', 'worth[$lt]=80', '$q=words', 'stage[$ne]=won'])(
  'the estimate for the filter "%s" is near the count, and exact and unmarked when few match',
  async (query) => {
    const exact = await countAs('admin', query, 'true')
    expect(exact.estimated).toBeNull()
    expect(await countAs('admin', query)).toEqual(exact)
    await withThresholds('small', async () => {
      // The order of conditions makes another filter of it.
      const estimate = await countAs('admin', `${query}&worth[$gte]=-1`)
      const expected = (await countAs('admin', `${query}&worth[$gte]=-1`, 'true')).count
      expect(estimate.estimated).toBe('true')
      expect(Math.abs(estimate.count - expected)).toBeLessThan(expected * 0.35)
      expect(estimate.count).toBeGreaterThanOrEqual(SIZES.small.exactCount)
    })
  },
)

test('an estimate counts only what the caller may read', async () => {
  await withThresholds('small', async () => {
    expect((await countAs('admin', 'worth[$gte]=-2')).count).toBeGreaterThan(COUNT / 2)
    const own = await countAs('user', 'worth[$lt]=90')
    expect([own.estimated, own.count < COUNT]).toEqual(['true', true])
    expect(await countAs('other', '')).toEqual({ count: 3, estimated: null })
    expect(await countAs('other', 'stage=won')).toEqual({ count: 2, estimated: null })
  })
})

test('other values of $count are refused', async () => {
  const { as, path } = await fixture
  const { status, body } = await as('user').get(`${path}?$count=about`)
  expect([status, body.details]).toEqual([
    400,
    [{ path: '$count', message: '$count must be true, false or estimate.' }],
  ])
})
