import { describe, expect, test } from 'bun:test'
import { upgradeIndexKeys } from '../../../src/blueprints/key-upgrade'
import { withLease } from '../../../src/jobs/with-lease'
import { writeInvalidating } from '../../../src/tenancy/cache'
import { createTestTenant, statusAndCode } from '../../test-tenant'
import { waitUntil } from '../../wait-until'

const TAKEN = [409, 'UNIQUE_VIOLATION']
const PATH = '/blueprints/people/entities'
const fields = [
  { key: 'name', type: 'string' },
  { key: 'email', type: 'email', unique: true },
]

/** Creates a blueprint of people with a unique e-mail address, as this release makes it or as an earlier one did. */
async function createPeople({ isOld = false, emails = [] as string[] } = {}) {
  const home = await createTestTenant()
  const admin = home.as('admin')
  const permissions = ['create', 'read', 'update', 'delete'].map((operation) => ({ operation, roleBased: ['*'] }))
  const created = await admin.post('/blueprints', { key: 'people', name: 'People', fields, permissions })
  expect(created.status).toBe(201)
  if (isOld)
    await writeInvalidating(home.tenant, 'blueprints', async (tx) => {
      await tx.query('update fields set index_keys = 0')
      await tx.query('update blueprints set indexing = indexing + 1')
    })
  for (const email of emails) expect((await admin.post(PATH, { identifier: email, email })).status).toBe(201)
  const find = async (query: string) =>
    (await admin.get(`${PATH}?${query}`)).body.map(({ metadata }: { metadata: { email: string } }) => metadata.email)
  return { ...home, admin, find, readBlueprint: async () => (await admin.get('/blueprints/people')).body }
}

describe('a unique e-mail address', () => {
  test.each([
    ['A@x.org', 'a@X.ORG'],
    ['user@bücher.example', 'User@xn--bcher-kva.example'],
    ['user@xn--mnchen-3ya.example', 'user@MÜNCHEN.example'],
  ])('%s is refused where %s is, is found by either, and is returned as it was written', async (first, second) => {
    const { admin, find } = await createPeople({ emails: [first] })
    expect(statusAndCode(await admin.post(PATH, { email: second }))).toEqual(TAKEN)
    for (const written of [first, second]) expect(await find(`email=${encodeURIComponent(written)}`)).toEqual([first])
    expect((await admin.put(`${PATH}/${first}`, { email: second })).status).toBe(200)
    expect(await find('')).toEqual([second])
    expect((await admin.post(PATH, { email: `other.${first}` })).status).toBe(201)
  })

  test('a batch with two addresses of one mailbox is refused', async () => {
    const { admin, find } = await createPeople()
    const operations = ['a@x.org', 'A@x.org'].map((email) => ({ op: 'create', data: { email } }))
    expect(statusAndCode(await admin.post(`${PATH}/batch`, { operations }))).toEqual(TAKEN)
    expect(await find('')).toEqual([])
  })

  test('a field that becomes unique tells which entities have the same address, and changes nothing', async () => {
    const { admin, readBlueprint, find } = await createPeople()
    const setUnique = (unique: boolean) =>
      admin.put('/blueprints/people', { fields: [fields[0], { ...fields[1], unique }] })
    expect((await setUnique(false)).status).toBe(200)
    for (const email of ['a@x.org', 'A@X.org']) await admin.post(PATH, { identifier: email, email })
    expect(await find('email=a@x.org')).toEqual(['a@x.org'])
    const refused = await setUnique(true)
    expect(statusAndCode(refused)).toEqual([409, 'DUPLICATE_VALUES'])
    expect(refused.body.details[0].duplicates[0].identifiers.sort()).toEqual(['A@X.org', 'a@x.org'])
    expect((await readBlueprint()).fields[1].unique).not.toBe(true)
  })
})

describe('the upgrade of unique e-mail addresses', () => {
  test('old addresses are compared as texts until their index is built again, and as addresses from then on', async () => {
    const { admin, tenant, find, readBlueprint } = await createPeople({
      isOld: true,
      emails: ['Ada@x.org', 'bob@x.org'],
    })
    expect(await find('email=ada@X.org')).toEqual([])
    await withLease(tenant, 'test', upgradeIndexKeys)
    await waitUntil(async () => (await readBlueprint()).alteration === undefined)
    expect(await find('email=ada@X.org')).toEqual(['Ada@x.org'])
    expect(await find('$sort=email')).toEqual(['Ada@x.org', 'bob@x.org'])
    expect(statusAndCode(await admin.post(PATH, { email: 'BOB@x.org' }))).toEqual(TAKEN)
    const { version } = await readBlueprint()
    await withLease(tenant, 'test', upgradeIndexKeys)
    expect((await readBlueprint()).version).toBe(version)
  })

  test('an index stays as it is while several entities have the same address, which the blueprint tells', async () => {
    const emails = ['a@x.org', 'A@x.org']
    const { admin, tenant, find, readBlueprint } = await createPeople({ isOld: true, emails })
    await withLease(tenant, 'test', upgradeIndexKeys)
    await waitUntil(async () => (await readBlueprint()).alteration?.state === 'failed')
    expect((await readBlueprint()).alteration.problem.code).toBe('DUPLICATE_VALUES')
    expect(await find('email=a@x.org')).toEqual(['a@x.org'])
    expect(statusAndCode(await admin.post(PATH, { email: 'A@x.org' }))).toEqual(TAKEN)
    expect((await admin.delete(`${PATH}/A@x.org`)).status).toBe(200)
    for (const unique of [false, true])
      expect((await admin.put('/blueprints/people', { fields: [fields[0], { ...fields[1], unique }] })).status).toBe(
        200,
      )
    expect(statusAndCode(await admin.post(PATH, { email: 'A@X.org' }))).toEqual(TAKEN)
  })

  test('a blueprint without entities needs no alteration', async () => {
    const { admin, tenant } = await createPeople({ isOld: true })
    await withLease(tenant, 'test', upgradeIndexKeys)
    expect((await admin.post(PATH, { email: 'a@x.org' })).status).toBe(201)
    expect(statusAndCode(await admin.post(PATH, { email: 'A@x.org' }))).toEqual(TAKEN)
  })
})
