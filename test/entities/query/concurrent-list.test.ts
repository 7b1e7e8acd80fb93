import { expect, test } from 'bun:test'
import { createTestTenant, fullAccessRules } from '../../test-tenant'
import { type Entity, identifiers, nextPagePath } from '../fixtures'

/** A list that is read in two steps, with something done to its entities between them. */
async function withList(work: (home: Awaited<ReturnType<typeof createTestTenant>>) => Promise<void>) {
  const home = await createTestTenant()
  const make = (key: string, fields: object[], permissions: object[]) =>
    home.as('admin').post('/blueprints', { key, name: key, fields, permissions })
  await make('notes', [{ key: 'n', type: 'integer' }], fullAccessRules('user', 'user'))
  await make('wages', [{ key: 'amount', type: 'integer', readRoles: ['boss'] }], [])
  for (let n = 0; n < 160; n++) await home.as('user').post(NOTES, { n, identifier: `n${n}` })

  const ask = home.tenant.db.query
  let between = false
  home.tenant.db.query = async (sql, params) => {
    if (!between && sql.startsWith('select e.seq, e.shown')) {
      between = true
      await work(home)
    }
    return ask(sql, params)
  }
  const first = await home.as('user').get(`${NOTES}?$limit=120&$sort=n&n[$gte]=0`)
  expect([first.status, between]).toEqual([200, true])
  const second = await home.as('user').get(nextPagePath(first.headers)!)
  return { first: first.body as Entity[], second: second.body as Entity[], users: home.users }
}
const NOTES = '/blueprints/notes/entities'

test('an entity that goes to another owner while a list is read is not in it', async () => {
  const { first } = await withList(async ({ as, users }) => {
    const { status } = await as('admin').patch(`${NOTES}/n7`, { user: users.other, n: 1_000 })
    expect(status).toBe(200)
  })
  expect(identifiers(first)).not.toContain('n7')
})

test('an entity that ceases to match while a list is read is not in it', async () => {
  const { first } = await withList(async ({ as }) => void (await as('user').patch(`${NOTES}/n7`, { n: -1 })))
  expect(identifiers(first)).not.toContain('n7')
})

test('one of another blueprint that takes the place of a removed one is not in the list', async () => {
  const { first, second } = await withList(async ({ as }) => {
    await as('user').delete(`${NOTES}/n159`)
    await as('user').delete(`${NOTES}/n7`)
    await as('admin').post('/blueprints/wages/entities', { amount: 99_999 })
  })
  for (const entity of [...first, ...second]) expect(entity).not.toHaveProperty('amount')
})

test('those that go while a page is read push none out of the next one', async () => {
  const gone = ['n1', 'n2', 'n3']
  const { first, second } = await withList(async ({ as }) => {
    for (const identifier of gone) await as('user').delete(`${NOTES}/${identifier}`)
  })
  const all = Array.from({ length: 160 }, (_, n) => `n${n}`)
  expect(first).toHaveLength(117)
  expect([...identifiers(first), ...identifiers(second)]).toEqual(all.filter((one) => !gone.includes(one)))
})
