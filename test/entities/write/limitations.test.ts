import { describe, expect, test } from 'bun:test'
import { getModel } from '../../../src/blueprints/blueprints'
import type { Model } from '../../../src/blueprints/model'
import type { Caller } from '../../../src/blueprints/permissions'
import { assertWithinLimits } from '../../../src/entities/write/limitations'
import { type ApiClient, fullAccessRules, statusAndCode } from '../../test-tenant'
import { createThingsFixture } from '../fixtures'

const LIMIT_REACHED = [403, 'LIMIT_REACHED']
const status = { key: 'status', type: 'string' }
const rank = { key: 'rank', type: 'integer', indexed: false }
const openRules = [...fullAccessRules('tenant', 'user', 'plugin'), { operation: 'create', guest: true, scope: 'user' }]

const createLimitedFixture = (limitations: object[], fields: object[] = [status, rank]) =>
  createThingsFixture(fields, openRules, { limitations })

/** Returns how many creates succeeded; all others must be rejected by a limitation. */
async function createMany(client: ApiClient, path: string, times: number, body: object = {}) {
  let made = 0
  for (let n = 0; n < times; n++) {
    const answer = await client.post(path, body)
    if (answer.status === 201) made++
    else expect(statusAndCode(answer)).toEqual(LIMIT_REACHED)
  }
  return made
}

describe('limitations by scope', () => {
  test('a limitation of scope tenant counts the entities of all users together', async () => {
    const { as, path } = await createLimitedFixture([{ scope: 'tenant', value: 3 }])
    expect(await createMany(as('user'), path, 2)).toBe(2)
    expect(await createMany(as('other'), path, 3)).toBe(1)
    const { body } = await as('user').post(path, {})
    expect(body.message).toBe('Limit reached: at most 3 entities of "things" for all together. Delete one first.')
    expect(body.details).toEqual({ scope: 'tenant', properties: [], value: 3 })
  })

  test('a limitation of scope user counts the entities of each user, and those of all guests together', async () => {
    const { as, path, anonymous } = await createLimitedFixture([{ scope: 'user', value: 2 }])
    expect(await createMany(as('user'), path, 3)).toBe(2)
    expect(await createMany(as('other'), path, 3)).toBe(2)
    expect(await createMany(anonymous, path, 4)).toBe(2)
    expect((await as('user').post(path, {})).body.message).toContain('for each user.')
    expect((await anonymous.post(path, {})).body.message).toContain('for all guests together.')
  })

  test('a limitation of scope workspace counts the own entities of a user without a workspace', async () => {
    const { as, path } = await createLimitedFixture([{ scope: 'workspace', value: 2 }])
    expect(await createMany(as('user'), path, 3)).toBe(2)
    expect(await createMany(as('other'), path, 3)).toBe(2)
  })

  test('a deleted entity frees its place under a limitation', async () => {
    const { as, path } = await createLimitedFixture([{ scope: 'user', value: 1 }])
    const { body } = await as('user').post(path, {})
    expect(await createMany(as('user'), path, 1)).toBe(0)
    await as('user').delete(`${path}/${body._id}`)
    expect(await createMany(as('user'), path, 2)).toBe(1)
  })

  test('a limitation of 0 rejects every create with 403 LIMIT_REACHED', async () => {
    const { as, path } = await createLimitedFixture([{ scope: 'tenant', value: 0 }])
    expect(await createMany(as('user'), path, 2)).toBe(0)
  })

  test('a limitation does not reject admins, but counts what they create for a user', async () => {
    const { as, path, users } = await createLimitedFixture([{ scope: 'user', value: 1 }])
    const admin = as('admin')
    for (const _ of [1, 2]) expect((await admin.post(path, { user: users.user })).status).toBe(201)
    expect(await createMany(as('user'), path, 1)).toBe(0)
    expect(await createMany(as('other'), path, 1)).toBe(1)
  })

  test('a limitation with roles applies to callers with one of them, and one with empty lists to every user', async () => {
    const { as, path } = await createLimitedFixture([{ scope: 'user', roles: ['plugin', 'x'], value: 1 }])
    expect(await createMany(as('editor'), path, 2)).toBe(1)
    expect(await createMany(as('user'), path, 3)).toBe(3)
    const all = await createLimitedFixture([
      { scope: 'user', roles: [], workspaceLabels: [], properties: [], value: 1 },
    ])
    expect(await createMany(all.as('user'), all.path, 3)).toBe(1)
    const signedIn = await createLimitedFixture([{ scope: 'tenant', roles: ['*'], value: 1 }])
    expect(await createMany(signedIn.as('user'), signedIn.path, 3)).toBe(1)
    expect(await createMany(signedIn.anonymous, signedIn.path, 2)).toBe(2)
  })

  test('a limitation with workspace labels does not apply to users without a workspace', async () => {
    const { as, path } = await createLimitedFixture([{ scope: 'user', workspaceLabels: ['free'], value: 1 }])
    expect(await createMany(as('user'), path, 3)).toBe(3)
  })

  test('a create must fit every one of several limitations', async () => {
    const { as, path } = await createLimitedFixture([
      { scope: 'tenant', value: 3 },
      { scope: 'user', value: 2 },
    ])
    expect(await createMany(as('user'), path, 5)).toBe(2)
    expect(await createMany(as('other'), path, 5)).toBe(1)
  })
})

describe('limitations by properties', () => {
  const own = { scope: 'user', properties: ['status'], value: 2 }

  test('a limitation by a property counts entities with equal values, including those without a value', async () => {
    const { as, path } = await createLimitedFixture([own])
    for (const body of [{ status: 'open' }, { status: 'done' }, {}])
      expect(await createMany(as('user'), path, 3, body)).toBe(2)
    expect(await createMany(as('other'), path, 3, { status: 'open' })).toBe(2)
  })

  test('a limitation by several properties counts entities that agree in all of them, indexed or not', async () => {
    const { as, path } = await createLimitedFixture([{ scope: 'tenant', properties: ['status', 'rank'], value: 1 }])
    const user = as('user')
    for (const body of [{ status: 'a', rank: 1 }, { status: 'a', rank: 2 }, { status: 'a' }, { rank: 1 }, {}])
      expect([await createMany(user, path, 1, body), await createMany(user, path, 1, body)]).toEqual([1, 0])
  })

  test('a limitation by a property compares long texts as a whole', async () => {
    const { as, path } = await createLimitedFixture([{ ...own, value: 1 }])
    const text = 'x'.repeat(400)
    expect(await createMany(as('user'), path, 2, { status: `${text}a` })).toBe(1)
    expect(await createMany(as('user'), path, 2, { status: `${text}b` })).toBe(1)
  })

  test('an update into a full group gets 403 LIMIT_REACHED, and every other update succeeds', async () => {
    const { as, path } = await createLimitedFixture([own])
    const user = as('user')
    await createMany(user, path, 2, { status: 'full' })
    const { body } = await user.post(path, { status: 'free' })
    const at = `${path}/${body._id}`
    expect(statusAndCode(await user.put(at, { status: 'full' }))).toEqual(LIMIT_REACHED)
    expect((await user.get(at)).body.status).toBe('free')
    expect((await user.put(at, { rank: 3 })).status).toBe(200)
    expect((await user.put(at, { status: null })).status).toBe(200)
    expect((await as('admin').put(at, { status: 'full' })).status).toBe(200)
    expect((await user.put(at, { status: 'full', rank: 4 })).status).toBe(200)
  })

  test('an update into a group counts for the owner of the entity, not for the caller', async () => {
    const { as, path } = await createLimitedFixture([{ ...own, value: 1 }])
    await as('user').post(path, { status: 'full' })
    const { body } = await as('user').post(path, { status: 'free' })
    expect(statusAndCode(await as('other').put(`${path}/${body._id}`, { status: 'full' }))).toEqual(LIMIT_REACHED)
    expect(await createMany(as('other'), path, 1, { status: 'full' })).toBe(1)
  })

  test('a limitation by a property of each user is exact for common and for rare values', async () => {
    const { as, path } = await createLimitedFixture([own])
    const admin = as('admin')
    for (let n = 0; n < 230; n++) await admin.post(path, { status: 'common' })
    expect(await createMany(as('user'), path, 3, { status: 'common' })).toBe(2)
    expect(await createMany(as('user'), path, 3, { status: 'rare' })).toBe(2)
  })

  test('a LIMIT_REACHED error does not reveal a hidden property', async () => {
    const hidden = { key: 'tier', type: 'string', default: 'basic', readRoles: ['boss'], writeRoles: ['boss'] }
    const { as, path } = await createLimitedFixture([{ scope: 'tenant', properties: ['tier'], value: 1 }], [hidden])
    await as('user').post(path, {})
    const answer = await as('user').post(path, {})
    expect(statusAndCode(answer)).toEqual(LIMIT_REACHED)
    expect(JSON.stringify(answer.body)).not.toMatch(/tier|basic/)
  })
})

test('50 concurrent creates leave exactly the 10 entities that a limitation allows', async () => {
  for (const limitation of [
    { scope: 'user', value: 10, properties: undefined },
    { scope: 'tenant', properties: ['status'], value: 10 },
  ]) {
    const { as, path, rows } = await createLimitedFixture([limitation])
    const answers = await Promise.all(Array.from({ length: 50 }, () => as('user').post(path, { status: 'x' })))
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(10)
    for (const answer of answers) if (answer.status !== 201) expect(statusAndCode(answer)).toEqual(LIMIT_REACHED)
    expect([await rows('entities'), await rows('entity_index')]).toEqual([10, limitation.properties ? 10 : 0])
  }
})

test('20 concurrent updates into a group leave no more entities in it than its limitation allows', async () => {
  const { as, path } = await createLimitedFixture([{ scope: 'tenant', properties: ['status'], value: 5 }])
  const made = await Promise.all(Array.from({ length: 20 }, (_, n) => as('user').post(path, { status: `${n}` })))
  await Promise.all(made.map(({ body }) => as('user').put(`${path}/${body._id}`, { status: 'one' })))
  expect((await as('user').get(`${path}?status=one`)).body).toHaveLength(5)
})

test('a new limitation applies at once, and counts existing entities', async () => {
  const { as, path } = await createLimitedFixture([])
  expect(await createMany(as('user'), path, 4)).toBe(4)
  await as('admin').put('/blueprints/things', { limitations: [{ scope: 'user', value: 4 }] })
  expect(await createMany(as('user'), path, 2)).toBe(0)
  await as('admin').put('/blueprints/things', { limitations: [] })
  expect(await createMany(as('user'), path, 2)).toBe(2)
})

test('a limitation by an unknown, multi or object field, or with an invalid value, gets 400 INVALID_INPUT', async () => {
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

test('a limitation of scope workspace counts all entities of a workspace, and labels select the workspaces', async () => {
  const { tenant, as, path } = await createLimitedFixture([])
  for (const workspace of ['w', 'w', 'v', null]) await as('admin').post(path, { workspace })
  const things = await getModel(tenant, 'things')
  const member = (labels: string[]): Caller => ({
    user: 'u',
    roles: ['user'],
    privileged: false,
    workspace: { _id: 'w', name: 'W', roles: [], labels },
  })
  const tries = (value: number, workspaceLabels: string[], workspace: string | null, by = member(['pro'])) => {
    const limitations = [{ scope: 'workspace', workspaceLabels, value }]
    const model = { ...things, limitations, field: new Map() } as unknown as Model
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
