import { beforeAll, describe, expect, test } from 'bun:test'
import { fullAccessRules, statusAndCode } from '../../test-tenant'
import { createThingsFixture, importThings } from '../fixtures'

const fields = [
  { key: 'title', type: 'string', indexed: true },
  { key: 'stock', type: 'integer', indexed: true },
  { key: 'active', type: 'boolean', indexed: true },
  { key: 'tags', type: 'string', multi: true },
  { key: 'plain', type: 'string', indexed: false },
]
const fixture = createThingsFixture(fields, fullAccessRules('user', 'user'))

beforeAll(async () => {
  const things = Array.from({ length: 2_500 }, (_, n) => ({
    title: `t${n}`,
    stock: n % 100,
    active: true,
    tags: ['a'],
  }))
  await importThings(await fixture, things)
})

const explainQuery = async (query: string, name: 'admin' | 'user' = 'admin') => {
  const { as, path } = await fixture
  return as(name).get(`${path}?$explain=true&${query}`)
}

describe('$explain', () => {
  test.each([
    ['', { driver: { by: 'time' }, considered: [], left: [], reach: 'all', order: ['-created'] }],
    ['stock=7', { driver: { by: 'value', of: 'stock in' }, left: [] }],
    [
      'stock=7&active=true&plain=x&$sort=title',
      {
        driver: { by: 'values', of: 'stock in' },
        considered: [
          { of: 'stock in', rows: 25 },
          { of: 'active in', rows: 2_000, more: true },
        ],
        left: ['active in', 'plain in'],
        order: ['title'],
      },
    ],
    ['active=true&$sort=-title', { driver: { by: 'order', of: 'title' }, left: ['active in'], order: ['-title'] }],
    ['$sort=plain', { driver: { by: 'time' }, order: ['plain'] }],
    ['$q=t7', { driver: { by: 'words' }, order: ['fit'] }],
    ['title[$like]=T14__', { driver: { by: 'values', of: 'title in' }, left: [] }],
    ['title[$like]=t%25&stock=7', { driver: { by: 'value', of: 'stock in' }, left: ['title between'] }],
    ['stock=7&bypassAdmin=true', { reach: 'user', shown: 0 }],
  ])('an explained list of "%s" returns its plan and its statements', async (query, plan) => {
    const { status, body, headers } = await explainQuery(query)
    expect([status, body.message]).toEqual([200, undefined])
    expect(body).toMatchObject(plan)
    expect(headers.get('cache-control')).toBe('no-store')
    expect(body.statements.length).toBeGreaterThan(0)
    expect(body.rowsRead).toBe(body.statements.reduce((sum: number, { rows }: { rows: number }) => sum + rows, 0))
    for (const { sql, ms } of body.statements) expect([/^select/.test(sql), ms >= 0]).toEqual([true, true])
  })

  test('$explain returns no values of the query and no entities', async () => {
    const { body } = await explainQuery('title=t7&tags=a&stock[$lt]=98&$limit=5')
    const text = JSON.stringify(body, (key, value) => (key === 'ms' ? undefined : value))
    expect(text).not.toMatch(/t7|"a"|98|t1\d/)
    expect([body.shown, body.more]).toEqual([1, false])
    expect((await explainQuery('$limit=5')).body).toMatchObject({ shown: 5, more: true })
  })

  test('$explain rejects users with 403 and anonymous callers with 401, and is off for falsy values', async () => {
    expect(statusAndCode(await explainQuery('stock=7', 'user'))).toEqual([403, 'FORBIDDEN'])
    const { anonymous, path, as } = await fixture
    expect(statusAndCode(await anonymous.get(`${path}?$explain=true`))).toEqual([401, 'UNAUTHENTICATED'])
    for (const off of ['false', '0', '', 'undefined'])
      expect((await as('user').get(`${path}?$explain=${off}&stock=7`)).body).toHaveLength(25)
    const nonsense = await as('user').get(`${path}?$explain=maybe`)
    expect([...statusAndCode(nonsense), nonsense.body.details[0].path]).toEqual([400, 'INVALID_INPUT', '$explain'])
  })

  test('$explain is rejected by exports and charts with 400 INVALID_INPUT', async () => {
    const { as, path } = await fixture
    expect(statusAndCode(await as('admin').get(`${path}/export?$explain=true`))).toEqual([400, 'INVALID_INPUT'])
    expect(statusAndCode(await as('admin').get('/blueprints/things/charts/bar?x=stock&$explain=true'))).toEqual([
      400,
      'INVALID_INPUT',
    ])
  })
})
