import { describe, expect, test } from 'bun:test'
import { createThingsFixture, identifiers, importThings, nextPagePath } from '../fixtures'
import { withThresholds } from './small-thresholds'

const ENDS = ['a', 'b', 'c', 'd', 'e', 'f']
const toText = (end: string) => 'long '.repeat(60) + end
const fields = [
  { key: 'body', type: 'text' },
  { key: 'kind', type: 'string' },
]

describe('texts that share their first 300 characters', async () => {
  const fixture = await createThingsFixture(fields)
  const [admin, things] = [fixture.as('admin'), fixture.path]
  await importThings(
    fixture,
    [...ENDS.toReversed(), 'short'].map((end) => ({
      ...{ identifier: end, kind: end < 'd' ? 'early' : 'late', body: end === 'short' ? 'short' : toText(end) },
    })),
  )
  const list = async (query: string) => identifiers((await admin.get(`${things}?${query}`)).body).join('')
  const filter = (operator: string, end: string) => `body[${operator}]=${encodeURIComponent(toText(end))}`

  const runs: [string, (work: () => Promise<void>) => Promise<unknown>][] = [
    ['in one statement', (work) => work()],
    ['in steps', (work) => withThresholds('small', work)],
  ]
  test.each(runs)('a list compares and orders them by all of their characters %s', (_, run) =>
    run(async () => {
      expect(await list(`${filter('$gt', 'c')}&$sort=body`)).toBe('defshort')
      expect(await list(`${filter('$gte', 'c')}&$sort=-body`)).toBe('shortfedc')
      expect(await list(`${filter('$lt', 'c')}&$sort=body`)).toBe('ab')
      expect(await list(`${filter('$lte', 'c')}&${filter('$gt', 'a')}&$sort=-body`)).toBe('cb')
      expect(await list(`${filter('$gt', 'a')}&kind=early&$sort=body`)).toBe('bc')
      expect(await list(`${filter('$gt', 'b')}&${filter('$in', 'd')}&$sort=body`)).toBe('d')
      expect(await list('$sort=-kind,-body')).toBe('shortfedcba')
    }),
  )

  test.each(['body', '-body'])('cursors list each once in the order of %s', async (order) => {
    const seen: string[] = []
    for (let path: string | undefined = `${things}?$sort=${order}&$limit=2`; path; ) {
      const { body, headers } = await admin.get(path)
      seen.push(...identifiers(body))
      path = nextPagePath(headers)
    }
    expect(seen).toEqual(order === 'body' ? [...ENDS, 'short'] : ['short', ...ENDS.toReversed()])
  })
})
