import { expect, test } from 'bun:test'
import { createTestTenant, fullAccessRules } from '../../test-tenant'
import { type Entity, identifiers, nextPagePath } from '../fixtures'

/** Reads two pages of a list, and does the work between the two steps in which the first one is read. */
async function withList(work: (own: Awaited<ReturnType<typeof createTestTenant>>) => Promise<void>) {
  const own = await createTestTenant()
  const make = (key: string, fields: object[], permissions: object[]) =>
    own.as('admin').post('/blueprints', { key, name: key, fields, permissions })
  await make('notes', [{ key: 'n', type: 'integer' }], fullAccessRules('user', 'user'))
  await make('wages', [{ key: 'amount', type: 'integer', readRoles: ['boss'] }], [])
  for (let n = 0; n < 160; n++) await own.as('user').post(NOTES, { n, identifier: `n${n}` })

  const originalQuery = own.tenant.db.query
  let between = false
  own.tenant.db.query = async (sql, params) => {
    if (!between && sql.startsWith('select e.seq, concat(e._id')) {
      between = true
      await work(own)
    }
    return originalQuery(sql, params)
  }
  const first = await own.as('user').get(`${NOTES}?$limit=120&$sort=n&n[$gte]=0`)
  expect([first.status, between]).toEqual([200, true])
  const second = await own.as('user').get(nextPagePath(first.headers)!)
  return { first: first.body as Entity[], second: second.body as Entity[], users: own.users }
}
const NOTES = '/blueprints/notes/entities'

test('an entity that changes its owner while a list is read is left out', async () => {
  const { first } = await withList(async ({ as, users }) => {
    const { status } = await as('admin').patch(`${NOTES}/n7`, { user: users.other, n: 1_000 })
    expect(status).toBe(200)
  })
  expect(identifiers(first)).not.toContain('n7')
})

test('an entity that ceases to match while a list is read is left out', async () => {
  const { first } = await withList(async ({ as }) => void (await as('user').patch(`${NOTES}/n7`, { n: -1 })))
  expect(identifiers(first)).not.toContain('n7')
})

test('an entity of another blueprint that takes the row of a deleted one never appears in a list', async () => {
  const { first, second } = await withList(async ({ as }) => {
    await as('user').delete(`${NOTES}/n159`)
    await as('user').delete(`${NOTES}/n7`)
    await as('admin').post('/blueprints/wages/entities', { amount: 99_999 })
  })
  for (const entity of [...first, ...second]) expect(entity).not.toHaveProperty('amount')
})

test('entities that are deleted while a page is read do not push others out of the next page', async () => {
  const deleted = ['n1', 'n2', 'n3']
  const { first, second } = await withList(async ({ as }) => {
    for (const identifier of deleted) await as('user').delete(`${NOTES}/${identifier}`)
  })
  const all = Array.from({ length: 160 }, (_, n) => `n${n}`)
  expect(first).toHaveLength(117)
  expect([...identifiers(first), ...identifiers(second)]).toEqual(all.filter((one) => !deleted.includes(one)))
})
