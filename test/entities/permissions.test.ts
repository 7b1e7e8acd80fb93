import { describe, expect, test } from 'bun:test'
import { moveClock, now } from '../../src/core/clock'
import { type ApiClient, createTestTenant, fullAccessRules, statusAndCode, type TestUser } from '../test-tenant'
import { createThingsFixture, identifiers } from './fixtures'

const title = { key: 'title', type: 'string' }
const [UNAUTHENTICATED, FORBIDDEN, NOT_FOUND] = [
  [401, 'UNAUTHENTICATED'],
  [403, 'FORBIDDEN'],
  [404, 'ENTITY_NOT_FOUND'],
]

/** Returns a tenant with three entities: one of the user, one of the other user, and one without an owner. */
async function createTwoEntities(permissions: object[], fields: object[] = [title], more: object = {}) {
  const own = await createThingsFixture(fields, permissions, more)
  const admin = own.as('admin')
  await admin.post(own.path, { identifier: 'mine', title: 'm', user: own.users.user })
  await admin.post(own.path, { identifier: 'theirs', title: 't', user: own.users.other })
  await admin.post(own.path, { identifier: 'nobodys', title: 'n', user: null })
  const listIdentifiers = async (client: ApiClient) => {
    const { body } = await client.get(`${own.path}?$sort=identifier`)
    return Array.isArray(body) ? identifiers(body) : body.code
  }
  return { ...own, admin, listIdentifiers }
}
const rule = (operation: string, scope: string, ...roleBased: string[]) => ({ operation, scope, roleBased })
const requestAll = (client: ApiClient, path: string) =>
  Promise.all([
    client.get(path),
    client.get(`${path}/mine`),
    client.post(path, { title: 'x' }),
    client.put(`${path}/mine`, { title: 'x' }),
    client.patch(`${path}/mine`, { title: 'x' }),
    client.delete(`${path}/mine`),
    client.delete(`${path}/all?confirm=things`),
  ])

describe('blueprints without a matching rule', () => {
  test('a blueprint without rules is reachable for admins only, and answers 403 to everybody else', async () => {
    const { as, anonymous, path, admin, listIdentifiers } = await createTwoEntities([])
    for (const client of [as('user'), as('editor'), anonymous])
      for (const answer of await requestAll(client, path)) expect(statusAndCode(answer)).toEqual(FORBIDDEN)
    expect(await listIdentifiers(admin)).toEqual(['mine', 'nobodys', 'theirs'])
    expect((await admin.put(`${path}/theirs`, { title: 'x' })).status).toBe(200)
    expect((await admin.delete(`${path}/theirs`)).status).toBe(200)
  })

  test('users without a matching role get 403, and anonymous callers get 401', async () => {
    const { as, anonymous, path } = await createTwoEntities(fullAccessRules('tenant', 'boss'))
    for (const name of ['user', 'editor'] as TestUser[])
      for (const answer of await requestAll(as(name), path)) expect(statusAndCode(answer)).toEqual(FORBIDDEN)
    for (const answer of await requestAll(anonymous, path)) expect(statusAndCode(answer)).toEqual(UNAUTHENTICATED)
  })

  test('callers without a rule for the operation get 403 or 401, even if other operations are allowed', async () => {
    const { as, anonymous, path } = await createTwoEntities([
      rule('read', 'tenant', 'user'),
      { operation: 'create', guest: true },
    ])
    expect((await as('user').get(path)).status).toBe(200)
    expect(statusAndCode(await as('user').put(`${path}/mine`, { title: 'x' }))).toEqual(FORBIDDEN)
    expect(statusAndCode(await as('user').delete(`${path}/mine`))).toEqual(FORBIDDEN)
    expect(statusAndCode(await as('user').delete(`${path}/all?confirm=things`))).toEqual(FORBIDDEN)
    expect(statusAndCode(await anonymous.get(path))).toEqual(UNAUTHENTICATED)
    expect(statusAndCode(await anonymous.delete(`${path}/mine`))).toEqual(FORBIDDEN)
  })

  test('a caller without access gets 403 whether the entity exists or not', async () => {
    const { as, path } = await createTwoEntities(fullAccessRules('tenant', 'boss'))
    for (const name of ['mine', 'nothing', '%zz'])
      expect(statusAndCode(await as('user').get(`${path}/${name}`))).toEqual(FORBIDDEN)
  })
})

describe('rules by role', () => {
  test('a rule for roles allows callers with one of the roles, and rejects others with 403', async () => {
    const { as, path } = await createTwoEntities([...fullAccessRules('tenant', 'boss', 'plugin')])
    expect((await as('editor').get(path)).status).toBe(200)
    expect((await as('editor').post(path, { title: 'x' })).status).toBe(201)
    expect(statusAndCode(await as('user').get(path))).toEqual(FORBIDDEN)
  })

  test('a rule for the role * allows every signed-in user, and rejects anonymous callers with 401', async () => {
    const { as, anonymous, path } = await createTwoEntities(fullAccessRules('tenant', '*'))
    for (const name of ['user', 'other', 'editor'] as TestUser[]) expect((await as(name).get(path)).status).toBe(200)
    for (const answer of await requestAll(anonymous, path)) expect(statusAndCode(answer)).toEqual(UNAUTHENTICATED)
  })

  test('changed rules apply to the next request', async () => {
    const { as, admin, path } = await createTwoEntities(fullAccessRules('tenant', 'user'))
    expect((await as('user').get(path)).status).toBe(200)
    await admin.put('/blueprints/things', { permissions: fullAccessRules('tenant', 'boss') })
    expect(statusAndCode(await as('user').get(path))).toEqual(FORBIDDEN)
    await admin.put('/blueprints/things', { permissions: fullAccessRules('user', 'user') })
    expect(identifiers((await as('user').get(path)).body)).toEqual(['mine'])
  })
})

describe('the scope of a rule', () => {
  test('the scope user limits every operation to the entities of the caller', async () => {
    const { as, admin, path, listIdentifiers, users } = await createTwoEntities(fullAccessRules('user', 'user'))
    expect(await listIdentifiers(as('user'))).toEqual(['mine'])
    expect(await listIdentifiers(as('other'))).toEqual(['theirs'])
    for (const name of ['theirs', 'nobodys', 'nothing'])
      for (const answer of [
        await as('user').get(`${path}/${name}`),
        await as('user').put(`${path}/${name}`, { title: 'x' }),
        await as('user').delete(`${path}/${name}`),
      ])
        expect(statusAndCode(answer)).toEqual(NOT_FOUND)
    expect((await as('user').put(`${path}/mine`, { title: 'x' })).status).toBe(200)
    const made = await as('user').post(path, { identifier: 'new', user: users.other })
    expect(made.body.user).toBe(users.user)
    for (const query of [
      '$count=true',
      'title=t',
      'identifier[$ne]=x&$count=true',
      `user=${users.other}&$count=true`,
    ]) {
      const { body, headers } = await as('user').get(`${path}?${query}&$sort=title`)
      expect(JSON.stringify(body)).not.toContain('theirs')
      const total = headers.get('x-total-count')
      expect(total === null || Number(total) === body.length).toBe(true)
    }
    expect((await as('user').delete(`${path}/all?confirm=things`)).body).toEqual({ success: true, deletedCount: 2 })
    expect(await listIdentifiers(admin)).toEqual(['nobodys', 'theirs'])
  })

  test('the scope tenant reaches all entities', async () => {
    const { as, path, listIdentifiers } = await createTwoEntities(fullAccessRules('tenant', 'user'))
    expect(await listIdentifiers(as('user'))).toEqual(['mine', 'nobodys', 'theirs'])
    expect((await as('user').put(`${path}/theirs`, { title: 'x' })).status).toBe(200)
    expect((await as('user').delete(`${path}/nobodys`)).status).toBe(200)
    expect((await as('user').delete(`${path}/all?confirm=things`)).body.deletedCount).toBe(2)
  })

  test('the scope workspace reaches no entities for a caller without a workspace', async () => {
    const { as, path, listIdentifiers } = await createTwoEntities([
      { operation: 'read', scope: 'workspace', roleBased: ['user'] },
    ])
    expect(await listIdentifiers(as('user'))).toEqual([])
    expect(statusAndCode(await as('user').get(`${path}/mine`))).toEqual(NOT_FOUND)
  })

  test('a rule without a scope takes the scope of its blueprint, which is user by default', async () => {
    const scopeless = [{ operation: 'read', roleBased: ['user'] }]
    const plain = await createTwoEntities(scopeless)
    expect(await plain.listIdentifiers(plain.as('user'))).toEqual(['mine'])
    const wide = await createTwoEntities(scopeless, [title], { permissionScope: 'tenant' })
    expect(await wide.listIdentifiers(wide.as('user'))).toEqual(['mine', 'nobodys', 'theirs'])
  })

  test('several rules for one operation reach the union of their scopes', async () => {
    const { as, path, listIdentifiers } = await createTwoEntities([
      rule('read', 'user', '*'),
      rule('read', 'tenant', 'plugin'),
      rule('update', 'workspace', 'user'),
      rule('update', 'user', 'user'),
      rule('delete', 'user', 'user'),
      rule('delete', 'tenant', 'user'),
    ])
    expect(await listIdentifiers(as('user'))).toEqual(['mine'])
    expect(await listIdentifiers(as('editor'))).toEqual(['mine', 'nobodys', 'theirs'])
    expect((await as('user').put(`${path}/mine`, { title: 'x' })).status).toBe(200)
    expect((await as('user').delete(`${path}/theirs`)).status).toBe(200)
  })

  test('an entity that the caller may read but not change answers 403, and an unknown one 404', async () => {
    const permissions = [rule('read', 'tenant', 'user'), rule('update', 'user', 'user'), rule('delete', 'user', 'user')]
    const { as, path, admin } = await createTwoEntities(permissions)
    for (const answer of [
      await as('user').put(`${path}/theirs`, { title: 'x' }),
      await as('user').patch(`${path}/theirs`, { title: 'x' }),
      await as('user').delete(`${path}/theirs`),
    ])
      expect(statusAndCode(answer)).toEqual(FORBIDDEN)
    expect(statusAndCode(await as('user').put(`${path}/nothing`, { title: 'x' }))).toEqual(NOT_FOUND)
    expect((await as('user').delete(`${path}/all?confirm=things`)).body.deletedCount).toBe(1)
    expect((await admin.get(`${path}/theirs`)).body.title).toBe('t')
  })
})

describe('admins', () => {
  test('admins reach all entities, and only those that the rules allow with bypassAdmin=true', async () => {
    const { admin, users, path, listIdentifiers } = await createTwoEntities(fullAccessRules('user', 'user'))
    await admin.post(path, { identifier: 'admins' })
    expect((await admin.get(`${path}/admins`)).body.user).toBe(users.admin)
    expect(await listIdentifiers(admin)).toEqual(['admins', 'mine', 'nobodys', 'theirs'])
    expect(identifiers((await admin.get(`${path}?bypassAdmin=false`)).body)).toHaveLength(4)
    expect(identifiers((await admin.get(`${path}?bypassAdmin=true`)).body)).toEqual(['admins'])
  })
})

describe('guests', () => {
  const guest = (...operations: string[]) =>
    operations.map((operation) => ({ operation, guest: true, scope: 'tenant' }))

  test('a rule for guests allows its operations to anonymous callers and signed-in users', async () => {
    const { anonymous, as, path, listIdentifiers } = await createTwoEntities(
      guest('read', 'create', 'update', 'delete'),
    )
    for (const client of [anonymous, as('user')]) {
      expect(await listIdentifiers(client)).toEqual(['mine', 'nobodys', 'theirs'])
      const { status, body } = await client.post(path, { title: 'x', user: 'y', workspace: 'z' })
      expect(status).toBe(201)
      expect(body.workspace).toBeNull()
      expect((await client.put(`${path}/${body._id}`, { title: 'y' })).status).toBe(200)
      expect((await client.delete(`${path}/${body._id}`)).status).toBe(200)
    }
    expect((await anonymous.post(path, {})).body.user).toBeNull()
  })

  test('a guest rule of scope user reaches no entities for anonymous callers', async () => {
    const { anonymous, as, path, listIdentifiers } = await createTwoEntities([
      { operation: 'read', guest: true, scope: 'user' },
    ])
    expect(await listIdentifiers(anonymous)).toEqual([])
    expect(statusAndCode(await anonymous.get(`${path}/nobodys`))).toEqual(NOT_FOUND)
    expect(await listIdentifiers(as('user'))).toEqual(['mine'])
  })

  test('an anonymous caller with an invalid credential gets 401, even where guests may read', async () => {
    const { anonymous, path } = await createTwoEntities(guest('read'))
    expect((await anonymous.get(path)).status).toBe(200)
    for (const headers of [{ 'x-api-key': 'atl_x' }, { authorization: 'Bearer x' }] as Record<string, string>[])
      expect(statusAndCode(await anonymous.with(headers).get(path))).toEqual(UNAUTHENTICATED)
  })

  test('guests get 429 RATE_LIMITED after ten writes in five seconds, and signed-in users do not', async () => {
    const { anonymous, as, path, admin } = await createTwoEntities(guest('read', 'create', 'update', 'delete'))
    await admin.post('/blueprints', { key: 'others', name: 'O', fields: [], permissions: guest('create') })
    for (let n = 0; n < 4; n++) expect((await anonymous.post(path, { title: `${n}` })).status).toBe(201)
    for (let n = 0; n < 4; n++) expect((await anonymous.put(`${path}/mine`, { title: `${n}` })).status).toBe(200)
    expect((await anonymous.delete(`${path}/mine`)).status).toBe(200)
    expect((await anonymous.delete(`${path}/all?confirm=things&title=0`)).status).toBe(200)
    for (const answer of [
      await anonymous.post(path, {}),
      await anonymous.put(`${path}/theirs`, {}),
      await anonymous.patch(`${path}/theirs`, {}),
      await anonymous.delete(`${path}/theirs`),
      await anonymous.delete(`${path}/all?confirm=things`),
    ]) {
      expect(statusAndCode(answer)).toEqual([429, 'RATE_LIMITED'])
      expect(Number(answer.headers.get('retry-after'))).toBeWithin(1, 6)
    }
    expect((await anonymous.get(path)).status).toBe(200)
    expect((await as('user').post(path, {})).status).toBe(201)
    expect((await anonymous.post('/blueprints/others/entities', {})).status).toBe(201)

    const away = await createTwoEntities(guest('create'))
    expect((await away.anonymous.post(away.path, {})).status).toBe(201)

    const before = now()
    try {
      moveClock(before + 5_001)
      expect((await anonymous.post(path, {})).status).toBe(201)
    } finally {
      moveClock()
    }
  })
})

describe('fields with readRoles', () => {
  const fields = [
    title,
    { key: 'secret', type: 'string', readRoles: ['plugin'], writeRoles: ['plugin'] },
    { key: 'place', type: 'object', readRoles: ['plugin'] },
    { key: 'ranks', type: 'integer', multi: true, readRoles: ['plugin'] },
  ]
  const createHiddenFieldsFixture = async () => {
    const own = await createThingsFixture(fields, fullAccessRules('tenant', 'user', 'plugin'))
    const editor = own.as('editor')
    for (const [identifier, secret] of [
      ['a', 'two'],
      ['b', 'one'],
    ]) {
      const thing = { identifier, title: 'x', secret, place: { city: secret }, ranks: [7] }
      expect((await editor.post(own.path, thing)).body).toMatchObject(thing)
    }
    return { ...own, editor, user: own.as('user'), at: `${own.path}/a` }
  }

  test('a field with readRoles is left out of every answer to users without the role, in every shape', async () => {
    const { user, editor, as, path, at } = await createHiddenFieldsFixture()
    for (const client of [editor, as('admin')]) expect((await client.get(at)).body.secret).toBe('two')
    for (const query of ['', '?$flat=false', '?$select=title', '?$flat=0&$select=title'])
      for (const answer of [
        await user.get(at + query),
        await user.get(path + query),
        await user.put(at + query, { title: 'y' }),
        await user.patch(at + query, {}),
        await user.post(path + query, { title: 'z' }),
        await user.get(`${at}?$count=true`),
      ]) {
        expect(answer.status).toBeOneOf([200, 201])
        expect(JSON.stringify(answer.body)).not.toMatch(/secret|two|one|place|ranks/)
      }
    expect((await editor.get(at)).body).toMatchObject({ secret: 'two', place: { city: 'two' }, ranks: [7], title: 'y' })
  })

  test('a filter, sort or selection by a hidden field gets the same 400 INVALID_INPUT as an unknown field', async () => {
    const { user, path, at } = await createHiddenFieldsFixture()
    const queriesWith = (name: string) => [
      ...[`${name}=two`, `${name}[$ne]=two`, `${name}[$gt]=a`, `${name}[$in]=two`, `${name}[$exists]=true`],
      ...[`${name}.city=two`, `${name}.city[$exists]=true`, `$sort=${name}`, `$sort=title,-${name}`, `$select=${name}`],
    ]
    for (const name of ['secret', 'place', 'ranks'])
      for (const [index, query] of queriesWith(name).entries()) {
        const unknown = queriesWith('nowhere')[index]!
        for (const [real, fake] of [
          [await user.get(`${path}?${query}`), await user.get(`${path}?${unknown}`)],
          [await user.get(`${at}?${query}`), await user.get(`${at}?${unknown}`)],
          [
            await user.delete(`${path}/all?confirm=things&${query}`),
            await user.delete(`${path}/all?confirm=things&${unknown}`),
          ],
        ] as const) {
          expect(statusAndCode(real), query).toEqual([400, 'INVALID_INPUT'])
          expect(JSON.stringify(real.body)).toBe(JSON.stringify(fake.body).replaceAll('nowhere', name))
        }
      }
    expect((await user.get(path)).body).toHaveLength(2)
  })

  test('a hidden value cannot be guessed by sending it beside and inside metadata', async () => {
    const { user, at } = await createHiddenFieldsFixture()
    const guess = async (secret: string) => {
      const { status, body } = await user.put(at, { secret, metadata: { secret: 'else' } })
      return JSON.stringify([status, body])
    }
    expect(await guess('two')).toBe(await guess('one'))
  })

  test('a write to a hidden field gets 403 and changes nothing', async () => {
    const { user, editor, path, at } = await createHiddenFieldsFixture()
    for (const secret of ['two', 'x', null, 5]) {
      expect(statusAndCode(await user.put(at, { secret }))).toEqual(FORBIDDEN)
      expect(statusAndCode(await user.post(path, { metadata: { secret } }))).toEqual(FORBIDDEN)
    }
    expect((await user.put(at, (await user.get(at)).body)).status).toBe(200)
    expect((await editor.get(at)).body.secret).toBe('two')
  })
})

describe('fields with writeRoles', () => {
  const own = createThingsFixture(
    [title, { key: 'state', type: 'string', default: 'new', writeRoles: ['plugin'] }],
    fullAccessRules('tenant', '*'),
  )

  test('a create or update of a field with writeRoles by a user without the role gets 403', async () => {
    const { as, path } = await own
    const user = as('user')
    expect(statusAndCode(await user.post(path, { state: 'done' }))).toEqual(FORBIDDEN)
    const { body } = await user.post(path, { title: 'x' })
    expect(body.state).toBe('new')
    for (const change of [
      { state: 'done' },
      { metadata: { state: 'done' } },
      { state: null },
      { title: 'y', state: 'x' },
    ])
      expect(statusAndCode(await user.put(`${path}/${body._id}`, change)), JSON.stringify(change)).toEqual(FORBIDDEN)
    expect((await user.get(`${path}/${body._id}`)).body).toEqual(body)
  })

  test('an unchanged value of a write-protected field may be sent back with an update', async () => {
    const { as, path } = await own
    const { body } = await as('user').post(path, { title: 'x' })
    const back = await as('user').put(`${path}/${body._id}`, { ...body, title: 'y' })
    expect([back.status, back.body.title, back.body.state]).toEqual([200, 'y', 'new'])
  })

  test('callers with the write role, and admins, can write a field with writeRoles', async () => {
    const { as, path } = await own
    for (const name of ['editor', 'admin'] as TestUser[]) {
      const { status, body } = await as(name).post(path, { state: 'open' })
      expect([status, body.state]).toEqual([201, 'open'])
      expect((await as(name).put(`${path}/${body._id}`, { state: 'done' })).body.state).toBe('done')
    }
  })
})

describe('relations', () => {
  test('a relation to an entity that the caller cannot read gets the same error as one to an unknown entity', async () => {
    const own = await createThingsFixture([title], [rule('read', 'user', 'user')])
    const admin = own.as('admin')
    await admin.post(own.path, { identifier: 'mine', user: own.users.user })
    await admin.post(own.path, { identifier: 'theirs', user: own.users.other })
    const fields = [{ key: 'to', type: 'relation', target: 'things' }]
    await admin.post('/blueprints', {
      key: 'links',
      name: 'L',
      fields,
      permissions: fullAccessRules('user', 'user', 'plugin'),
    })
    const link = (client: ApiClient, to: string) => client.post('/blueprints/links/entities', { to })
    expect((await link(own.as('user'), 'mine')).status).toBe(201)
    const [theirs, nothing] = [await link(own.as('user'), 'theirs'), await link(own.as('user'), 'nothing')]
    expect(statusAndCode(theirs)).toEqual(statusAndCode(nothing))
    expect(statusAndCode(await link(own.as('editor'), 'mine'))).toEqual(
      statusAndCode(await link(own.as('editor'), 'nothing')),
    )
    expect((await link(admin, 'theirs')).status).toBe(201)
  })
})

describe('another tenant', () => {
  test('a second tenant with equal blueprint keys, identifiers and usernames sees no entity of the first', async () => {
    const [here, there] = [
      await createTwoEntities(fullAccessRules('tenant', '*')),
      await createThingsFixture([title], fullAccessRules('tenant', '*')),
    ]
    const { path } = here
    for (const name of ['admin', 'user'] as TestUser[]) {
      expect((await there.as(name).get(path)).body).toEqual([])
      expect((await there.as(name).get(`${path}?title=m&$count=true`)).headers.get('x-total-count')).toBe('0')
      for (const answer of [
        await there.as(name).get(`${path}/mine`),
        await there.as(name).put(`${path}/mine`, { title: 'x' }),
        await there.as(name).delete(`${path}/mine`),
      ])
        expect(statusAndCode(answer)).toEqual(NOT_FOUND)
    }
    expect((await there.as('admin').delete(`${path}/all?confirm=things`)).body.deletedCount).toBe(0)
    expect((await there.as('user').post(path, { identifier: 'mine', title: 'other' })).status).toBe(201)
    await there.as('admin').delete('/blueprints/things?force=true')
    expect(await here.listIdentifiers(here.as('user'))).toEqual(['mine', 'nobodys', 'theirs'])
    expect((await here.admin.get(`${path}/mine`)).body.title).toBe('m')
  })

  test('a credential of one tenant gets 401 at another tenant', async () => {
    const [here, there] = [await createTwoEntities(fullAccessRules('tenant', '*')), await createTestTenant()]
    for (const headers of [{ host: `${there.id}.test` }, { tenant: there.id }] as Record<string, string>[])
      for (const answer of await requestAll(here.as('admin').with(headers), here.path))
        expect(statusAndCode(answer)).toEqual(UNAUTHENTICATED)
  })
})
