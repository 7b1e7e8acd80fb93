import { describe, expect, test } from 'bun:test'
import { createThingsFixture, identifiers, importThings, nextPagePath } from '../fixtures'
import { withThresholds } from './small-thresholds'

const ENDS = ['a', 'b', 'c', 'd', 'e', 'f']
const toText = (end: string) => 'long '.repeat(60) + end
const fields = [
  { key: 'body', type: 'text' },
  { key: 'kind', type: 'string' },
  { key: 'tags', type: 'string', multi: true },
  { key: 'place', type: 'object' },
]

describe('texts that share their first 300 characters', async () => {
  const fixture = await createThingsFixture(fields, undefined, { history: true })
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

  test('a list as of an earlier time compares and orders them by all of their characters', async () => {
    const then = encodeURIComponent(new Date(Date.now() + 1).toISOString())
    await Bun.sleep(5)
    for (const end of ENDS) await admin.patch(`${things}/${end}`, { kind: 'other' })
    expect(await list(`$asOf=${then}&${filter('$gt', 'c')}&$sort=body`)).toBe('defshort')
    expect(await list(`$asOf=${then}&${filter('$lte', 'c')}&$sort=-body`)).toBe('cba')
    const [first, ...rest] = ENDS
    const page = await admin.get(`${things}?$asOf=${then}&$sort=body&$limit=1`)
    expect(identifiers(page.body)).toEqual([first!])
    expect(identifiers((await admin.get(nextPagePath(page.headers)!.replace('limit=1', 'limit=9'))).body)).toEqual([
      ...rest,
      'short',
    ])
    for (const end of ENDS) await admin.patch(`${things}/${end}`, { kind: end < 'd' ? 'early' : 'late' })
  })

  test.each(['body', '-body'])('cursors list each once in the order of %s', async (order) => {
    const seen: string[] = []
    for (let path: string | undefined = `${things}?$sort=${order}&$limit=2`; path; ) {
      const { body, headers } = await admin.get(path)
      seen.push(...identifiers(body))
      path = nextPagePath(headers)
    }
    expect(seen).toEqual(order === 'body' ? [...ENDS, 'short'] : ['short', ...ENDS.toReversed()])
  })

  test.each(['tags', 'place.street'])(
    'a range over %s is refused for a text that is longer than what is compared',
    async (name) => {
      const query = (operator: string, text: string) => `${things}?${name}${operator}=${encodeURIComponent(text)}`
      for (const operator of ['[$gt]', '[$gte]', '[$lt]', '[$lte]']) {
        const { status, body } = await admin.get(query(operator, toText('a')))
        expect([status, body.code, body.message]).toEqual([
          400,
          'INVALID_INPUT',
          expect.stringContaining('256 characters'),
        ])
        expect((await admin.get(query(operator, 'x'.repeat(256)))).status).toBe(200)
      }
      expect((await admin.get(query('', toText('a')))).status).toBe(200)
    },
  )
})
