import { expect, test } from 'bun:test'
import { fullAccessRules } from '../../test-tenant'
import { createThingsFixture } from '../fixtures'

const identifiersOf = ({ body }: { body: { identifier: string }[] }) => body.map(({ identifier }) => identifier).sort()

async function createActiveThings(indexed: boolean) {
  const fields = [
    { key: 'title', type: 'string' },
    { key: 'active', type: 'boolean', indexed },
  ]
  const own = await createThingsFixture(fields, fullAccessRules('tenant', 'user'))
  const admin = own.as('admin')
  for (const thing of [
    { identifier: 'yes', title: 'true', active: true },
    { identifier: 'no', title: '1', active: false },
    { identifier: 'unknown', title: 'false' },
  ])
    expect((await admin.post(own.path, thing)).status).toBe(201)
  return { ...own, admin }
}

test.each([true, false])(
  'a boolean (indexed: %p) is stored once, in the document, and its entity is found by it',
  async (indexed) => {
    const own = await createActiveThings(indexed)
    expect(await own.tenant.db.query('select distinct keys from entities')).toEqual([['{}']])
    const find = async (query: string) => identifiersOf(await own.admin.get(`${own.path}?${query}`))
    expect(await find('active=true')).toEqual(['yes'])
    expect(await find('active=false')).toEqual(['no'])
    expect(await find('active[$ne]=true')).toEqual(['no', 'unknown'])
    expect(await find('active[$exists]=false')).toEqual(['unknown'])
    const sorted = await own.admin.get(`${own.path}?$sort=active&active[$exists]=true`)
    expect(sorted.body.map(({ identifier }: { identifier: string }) => identifier)).toEqual(['no', 'yes'])
  },
)

test('a changed or removed boolean leaves no row in the index', async () => {
  const own = await createActiveThings(true)
  const countIndexRows = () => own.rows('entity_index')
  expect(await countIndexRows()).toBe(2)
  expect((await own.admin.put(`${own.path}/yes`, { active: false })).status).toBe(200)
  expect(identifiersOf(await own.admin.get(`${own.path}?active=false`))).toEqual(['no', 'yes'])
  expect(await countIndexRows()).toBe(2)
  for (const name of ['yes', 'no']) expect((await own.admin.delete(`${own.path}/${name}`)).status).toBe(200)
  expect(await countIndexRows()).toBe(0)
})
