import { describe, expect, test } from 'bun:test'
import type { Model } from '../../../src/blueprints/model'
import type { Caller } from '../../../src/blueprints/permissions'
import { assertWithinLimits } from '../../../src/entities/write/limitations'
import { type ApiClient, fullAccessRules, statusAndCode } from '../../test-tenant'
import { createThingsFixture } from '../fixtures'

const LIMIT = [403, 'LIMIT_REACHED']
const status = { key: 'status', type: 'string' }
const rank = { key: 'rank', type: 'integer', indexed: false }
const openRules = [...fullAccessRules('tenant', 'user', 'plugin'), { operation: 'create', guest: true, scope: 'user' }]

const createLimitedFixture = (limitations: object[], fields: object[] = [status, rank]) =>
  createThingsFixture(fields, openRules, { limitations })

/** How many of so many creations went through; the others have to be refused by a limit. */
async function createMany(who: ApiClient, path: string, times: number, body: object = {}) {
  let made = 0
  for (let n = 0; n < times; n++) {
    const answer = await who.post(path, body)
    if (answer.status === 201) made++
    else expect(statusAndCode(answer)).toEqual(LIMIT)
  }
  return made
}

describe('a limit', () => {
  test('of the tenant is about all entities together', async () => {
    const { as, path } = await createLimitedFixture([{ scope: 'tenant', value: 3 }])
    expect(await createMany(as('user'), path, 2)).toBe(2)
    expect(await createMany(as('other'), path, 3)).toBe(1)
    const { body } = await as('user').post(path, {})
    expect(body.message).toBe('Limit reached: at most 3 entities of "things" for all together. Delete one first.')
    expect(body.details).toEqual({ scope: 'tenant', properties: [], value: 3 })
  })

  test('of a user is about the entities of each, and those of guests are nobody’s', async () => {
    const { as, path, stranger } = await createLimitedFixture([{ scope: 'user', value: 2 }])
    expect(await createMany(as('user'), path, 3)).toBe(2)
    expect(await createMany(as('other'), path, 3)).toBe(2)
    expect(await createMany(stranger, path, 4)).toBe(2)
  })

  test('of a workspace is, for those who are in none, about their own', async () => {
    const { as, path } = await createLimitedFixture([{ scope: 'workspace', value: 2 }])
    expect(await createMany(as('user'), path, 3)).toBe(2)
    expect(await createMany(as('other'), path, 3)).toBe(2)
  })

  test('frees a place when an entity is removed', async () => {
    const { as, path } = await createLimitedFixture([{ scope: 'user', value: 1 }])
    const { body } = await as('user').post(path, {})
    expect(await createMany(as('user'), path, 1)).toBe(0)
    await as('user').delete(`${path}/${body._id}`)
    expect(await createMany(as('user'), path, 2)).toBe(1)
  })

  test('of none lets nobody create', async () => {
    const { as, path } = await createLimitedFixture([{ scope: 'tenant', value: 0 }])
    expect(await createMany(as('user'), path, 2)).toBe(0)
  })

  test('does not bind admins, but their entities count', async () => {
    const { as, path, users } = await createLimitedFixture([{ scope: 'user', value: 1 }])
    const admin = as('admin')
    for (const _ of [1, 2]) expect((await admin.post(path, { user: users.user })).status).toBe(201)
    expect(await createMany(as('user'), path, 1)).toBe(0)
    expect(await createMany(as('other'), path, 1)).toBe(1)
  })

  test('with roles binds those who have one of them; with empty lists everybody', async () => {
    const { as, path } = await createLimitedFixture([{ scope: 'user', roles: ['plugin', 'x'], value: 1 }])
    expect(await createMany(as('editor'), path, 2)).toBe(1)
    expect(await createMany(as('user'), path, 3)).toBe(3)
    const all = await createLimitedFixture([
      { scope: 'user', roles: [], workspaceLabels: [], properties: [], value: 1 },
    ])
    expect(await createMany(all.as('user'), all.path, 3)).toBe(1)
    const signedIn = await createLimitedFixture([{ scope: 'tenant', roles: ['*'], value: 1 }])
    expect(await createMany(signedIn.as('user'), signedIn.path, 3)).toBe(1)
    expect(await createMany(signedIn.stranger, signedIn.path, 2)).toBe(2)
  })

  test('with labels does not bind those who are in no workspace', async () => {
    const { as, path } = await createLimitedFixture([{ scope: 'user', workspaceLabels: ['free'], value: 1 }])
    expect(await createMany(as('user'), path, 3)).toBe(3)
  })

  test('is as strict as the strictest of several', async () => {
    const { as, path } = await createLimitedFixture([
      { scope: 'tenant', value: 3 },
      { scope: 'user', value: 2 },
    ])
    expect(await createMany(as('user'), path, 5)).toBe(2)
    expect(await createMany(as('other'), path, 5)).toBe(1)
  })
})

describe('a limit of equal values', () => {
  const own = { scope: 'user', properties: ['status'], value: 2 }

  test('counts those that agree in them, also those that lack them', async () => {
    const { as, path } = await createLimitedFixture([own])
    for (const body of [{ status: 'open' }, { status: 'done' }, {}])
      expect(await createMany(as('user'), path, 3, body)).toBe(2)
    expect(await createMany(as('other'), path, 3, { status: 'open' })).toBe(2)
  })

  test('counts those that agree in all of several, indexed or not', async () => {
    const { as, path } = await createLimitedFixture([{ scope: 'tenant', properties: ['status', 'rank'], value: 1 }])
    const user = as('user')
    for (const body of [{ status: 'a', rank: 1 }, { status: 'a', rank: 2 }, { status: 'a' }, { rank: 1 }, {}])
      expect([await createMany(user, path, 1, body), await createMany(user, path, 1, body)]).toEqual([1, 0])
  })

  test('compares long texts whole', async () => {
    const { as, path } = await createLimitedFixture([{ ...own, value: 1 }])
    const text = 'x'.repeat(400)
    expect(await createMany(as('user'), path, 2, { status: `${text}a` })).toBe(1)
    expect(await createMany(as('user'), path, 2, { status: `${text}b` })).toBe(1)
  })

  test('also refuses a change that would move one into a full group, and no other', async () => {
    const { as, path } = await createLimitedFixture([own])
    const user = as('user')
    await createMany(user, path, 2, { status: 'full' })
    const { body } = await user.post(path, { status: 'free' })
    const at = `${path}/${body._id}`
    expect(statusAndCode(await user.put(at, { status: 'full' }))).toEqual(LIMIT)
    expect((await user.get(at)).body.status).toBe('free')
    expect((await user.put(at, { rank: 3 })).status).toBe(200)
    expect((await user.put(at, { status: null })).status).toBe(200)
    expect((await as('admin').put(at, { status: 'full' })).status).toBe(200)
    expect((await user.put(at, { status: 'full', rank: 4 })).status).toBe(200)
  })

  test('counts a moved entity among those of its owner, whoever moves it', async () => {
    const { as, path } = await createLimitedFixture([{ ...own, value: 1 }])
    await as('user').post(path, { status: 'full' })
    const { body } = await as('user').post(path, { status: 'free' })
    expect(statusAndCode(await as('other').put(`${path}/${body._id}`, { status: 'full' }))).toEqual(LIMIT)
    expect(await createMany(as('other'), path, 1, { status: 'full' })).toBe(1)
  })

  test('holds where many have the value but few of them the owner, and the other way round', async () => {
    const { as, path } = await createLimitedFixture([own])
    const admin = as('admin')
    for (let n = 0; n < 230; n++) await admin.post(path, { status: 'common' })
    expect(await createMany(as('user'), path, 3, { status: 'common' })).toBe(2)
    expect(await createMany(as('user'), path, 3, { status: 'rare' })).toBe(2)
  })

  test('does not tell of a property that the caller may not read', async () => {
    const hidden = { key: 'tier', type: 'string', default: 'basic', readRoles: ['boss'], writeRoles: ['boss'] }
    const { as, path } = await createLimitedFixture([{ scope: 'tenant', properties: ['tier'], value: 1 }], [hidden])
    await as('user').post(path, {})
    const answer = await as('user').post(path, {})
    expect(statusAndCode(answer)).toEqual(LIMIT)
    expect(JSON.stringify(answer.body)).not.toMatch(/tier|basic/)
  })
})

test('fifty who create at once leave exactly ten', async () => {
  for (const limitation of [
    { scope: 'user', value: 10 },
    { scope: 'tenant', properties: ['status'], value: 10 },
  ]) {
    const { as, path, rows } = await createLimitedFixture([limitation])
    const answers = await Promise.all(Array.from({ length: 50 }, () => as('user').post(path, { status: 'x' })))
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(10)
    for (const answer of answers) if (answer.status !== 201) expect(statusAndCode(answer)).toEqual(LIMIT)
    expect([await rows('entities'), await rows('entity_index')]).toEqual([10, 10])
  }
})

test('twenty who move theirs into a group at once leave no more than it holds', async () => {
  const { as, path } = await createLimitedFixture([{ scope: 'tenant', properties: ['status'], value: 5 }])
  const made = await Promise.all(Array.from({ length: 20 }, (_, n) => as('user').post(path, { status: `${n}` })))
  await Promise.all(made.map(({ body }) => as('user').put(`${path}/${body._id}`, { status: 'one' })))
  expect((await as('user').get(`${path}?status=one`)).body).toHaveLength(5)
})

test('a limit applies at once when it is set, to what there is already', async () => {
  const { as, path } = await createLimitedFixture([])
  expect(await createMany(as('user'), path, 4)).toBe(4)
  await as('admin').put('/blueprints/things', { limitations: [{ scope: 'user', value: 4 }] })
  expect(await createMany(as('user'), path, 2)).toBe(0)
  await as('admin').put('/blueprints/things', { limitations: [] })
  expect(await createMany(as('user'), path, 2)).toBe(2)
})

test('a limit is about single values of fields that there are', async () => {
  const { as } = await createLimitedFixture(
    [],
    [status, { key: 'tags', type: 'string', multi: true }, { key: 'place', type: 'object' }],
  )
  for (const properties of [['tags'], ['place'], ['nothing'], ['status', 'tags']])
    expect(
      statusAndCode(
        await as('admin').put('/blueprints/things', { limitations: [{ scope: 'user', properties, value: 1 }] }),
      ),
    ).toEqual([400, 'INVALID_INPUT'])
  for (const value of [-1, 1.5, 1e300, '1', null])
    expect(
      statusAndCode(await as('admin').put('/blueprints/things', { limitations: [{ scope: 'user', value }] })),
    ).toEqual([400, 'INVALID_INPUT'])
})

test('in a workspace a limit is about all of its entities, and labels say of which workspaces', async () => {
  const { tenant, as, path } = await createLimitedFixture([])
  for (const workspace of ['w', 'w', 'v', null]) await as('admin').post(path, { workspace })
  const member = (labels: string[]): Caller => ({
    user: 'u',
    roles: ['user'],
    privileged: false,
    workspace: { _id: 'w', name: 'W', roles: [], labels },
  })
  const tries = (value: number, workspaceLabels: string[], workspace: string | null, by = member(['pro'])) => {
    const limitations = [{ scope: 'workspace', workspaceLabels, value }]
    const model = { key: 'things', limitations, field: new Map() } as unknown as Model
    return tenant
      .write((tx) => assertWithinLimits(tx, model, { user: 'u', workspace }, {}, by))
      .then(
        () => 'fits',
        (error) => error.code,
      )
  }
  expect(await tries(2, [], 'w')).toBe('LIMIT_REACHED')
  expect(await tries(3, [], 'w')).toBe('fits')
  expect(await tries(2, [], 'v')).toBe('fits')
  expect(await tries(1, [], 'v')).toBe('LIMIT_REACHED')
  expect(await tries(2, ['pro'], 'w')).toBe('LIMIT_REACHED')
  expect(await tries(2, ['*'], 'w', member([]))).toBe('LIMIT_REACHED')
  expect(await tries(2, ['max'], 'w')).toBe('fits')
})
