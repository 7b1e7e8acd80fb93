import { describe, expect, test } from 'bun:test'
import { moveClock, now } from '../../src/core/clock'
import { type ApiClient, createTestTenant, fullAccessRules, statusAndCode, type TestUser } from '../test-tenant'
import { createThingsFixture, identifiers } from './fixtures'

const title = { key: 'title', type: 'string' }
const [SIGN_IN, FORBIDDEN, GONE] = [
  [401, 'UNAUTHENTICATED'],
  [403, 'FORBIDDEN'],
  [404, 'ENTITY_NOT_FOUND'],
]

/** A tenant where the user and the other have one entity each, and nobody another. */
async function createTwoEntities(permissions: object[], fields: object[] = [title], more: object = {}) {
  const own = await createThingsFixture(fields, permissions, more)
  const admin = own.as('admin')
  await admin.post(own.path, { identifier: 'mine', title: 'm', user: own.users.user })
  await admin.post(own.path, { identifier: 'theirs', title: 't', user: own.users.other })
  await admin.post(own.path, { identifier: 'nobodys', title: 'n', user: null })
  const seen = async (who: ApiClient) => {
    const { body } = await who.get(`${own.path}?$sort=identifier`)
    return Array.isArray(body) ? identifiers(body) : body.code
  }
  return { ...own, admin, seen }
}
const rule = (operation: string, scope: string, ...roleBased: string[]) => ({ operation, scope, roleBased })
const listAll = (who: ApiClient, path: string) =>
  Promise.all([
    who.get(path),
    who.get(`${path}/mine`),
    who.post(path, { title: 'x' }),
    who.put(`${path}/mine`, { title: 'x' }),
    who.patch(`${path}/mine`, { title: 'x' }),
    who.delete(`${path}/mine`),
    who.delete(`${path}/all?confirm=things`),
  ])

describe('without a rule', () => {
  test('a blueprint is for admins only', async () => {
    const { as, stranger, path, admin, seen } = await createTwoEntities([])
    for (const who of [as('user'), as('editor'), stranger])
      for (const answer of await listAll(who, path)) expect(statusAndCode(answer)).toEqual(FORBIDDEN)
    expect(await seen(admin)).toEqual(['mine', 'nobodys', 'theirs'])
    expect((await admin.put(`${path}/theirs`, { title: 'x' })).status).toBe(200)
    expect((await admin.delete(`${path}/theirs`)).status).toBe(200)
  })

  test('of theirs callers are refused, and guests whom signing in could help are asked to', async () => {
    const { as, stranger, path } = await createTwoEntities(fullAccessRules('tenant', 'boss'))
    for (const name of ['user', 'editor'] as TestUser[])
      for (const answer of await listAll(as(name), path)) expect(statusAndCode(answer)).toEqual(FORBIDDEN)
    for (const answer of await listAll(stranger, path)) expect(statusAndCode(answer)).toEqual(SIGN_IN)
  })

  test('for the operation callers are refused, whatever else they may', async () => {
    const { as, stranger, path } = await createTwoEntities([
      rule('read', 'tenant', 'user'),
      { operation: 'create', guest: true },
    ])
    expect((await as('user').get(path)).status).toBe(200)
    expect(statusAndCode(await as('user').put(`${path}/mine`, { title: 'x' }))).toEqual(FORBIDDEN)
    expect(statusAndCode(await as('user').delete(`${path}/mine`))).toEqual(FORBIDDEN)
    expect(statusAndCode(await as('user').delete(`${path}/all?confirm=things`))).toEqual(FORBIDDEN)
    expect(statusAndCode(await stranger.get(path))).toEqual(SIGN_IN)
    expect(statusAndCode(await stranger.delete(`${path}/mine`))).toEqual(FORBIDDEN)
  })

  test('it makes no difference whether an entity is there', async () => {
    const { as, path } = await createTwoEntities(fullAccessRules('tenant', 'boss'))
    for (const name of ['mine', 'nothing', '%zz'])
      expect(statusAndCode(await as('user').get(`${path}/${name}`))).toEqual(FORBIDDEN)
  })
})

describe('rules by role', () => {
  test('are for those who have one of the roles', async () => {
    const { as, path } = await createTwoEntities([...fullAccessRules('tenant', 'boss', 'plugin')])
    expect((await as('editor').get(path)).status).toBe(200)
    expect((await as('editor').post(path, { title: 'x' })).status).toBe(201)
    expect(statusAndCode(await as('user').get(path))).toEqual(FORBIDDEN)
  })

  test('for * are for everybody who is signed in, and for nobody else', async () => {
    const { as, stranger, path } = await createTwoEntities(fullAccessRules('tenant', '*'))
    for (const name of ['user', 'other', 'editor'] as TestUser[]) expect((await as(name).get(path)).status).toBe(200)
    for (const answer of await listAll(stranger, path)) expect(statusAndCode(answer)).toEqual(SIGN_IN)
  })

  test('apply at once when they change', async () => {
    const { as, admin, path } = await createTwoEntities(fullAccessRules('tenant', 'user'))
    expect((await as('user').get(path)).status).toBe(200)
    await admin.put('/blueprints/things', { permissions: fullAccessRules('tenant', 'boss') })
    expect(statusAndCode(await as('user').get(path))).toEqual(FORBIDDEN)
    await admin.put('/blueprints/things', { permissions: fullAccessRules('user', 'user') })
    expect(identifiers((await as('user').get(path)).body)).toEqual(['mine'])
  })
})

describe('the scope of a rule', () => {
  test('user is about the caller’s own entities', async () => {
    const { as, admin, path, seen, users } = await createTwoEntities(fullAccessRules('user', 'user'))
    expect(await seen(as('user'))).toEqual(['mine'])
    expect(await seen(as('other'))).toEqual(['theirs'])
    for (const name of ['theirs', 'nobodys', 'nothing'])
      for (const answer of [
        await as('user').get(`${path}/${name}`),
        await as('user').put(`${path}/${name}`, { title: 'x' }),
        await as('user').delete(`${path}/${name}`),
      ])
        expect(statusAndCode(answer)).toEqual(GONE)
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
    expect(await seen(admin)).toEqual(['nobodys', 'theirs'])
  })

  test('tenant is about all entities', async () => {
    const { as, path, seen } = await createTwoEntities(fullAccessRules('tenant', 'user'))
    expect(await seen(as('user'))).toEqual(['mine', 'nobodys', 'theirs'])
    expect((await as('user').put(`${path}/theirs`, { title: 'x' })).status).toBe(200)
    expect((await as('user').delete(`${path}/nobodys`)).status).toBe(200)
    expect((await as('user').delete(`${path}/all?confirm=things`)).body.deletedCount).toBe(2)
  })

  test('workspace is about none for those who are in no workspace', async () => {
    const { as, path, seen } = await createTwoEntities([{ operation: 'read', scope: 'workspace', roleBased: ['user'] }])
    expect(await seen(as('user'))).toEqual([])
    expect(statusAndCode(await as('user').get(`${path}/mine`))).toEqual(GONE)
  })

  test('is that of the blueprint when the rule names none, and that is user unless told', async () => {
    const scopeless = [{ operation: 'read', roleBased: ['user'] }]
    const plain = await createTwoEntities(scopeless)
    expect(await plain.seen(plain.as('user'))).toEqual(['mine'])
    const wide = await createTwoEntities(scopeless, [title], { permissionScope: 'tenant' })
    expect(await wide.seen(wide.as('user'))).toEqual(['mine', 'nobodys', 'theirs'])
  })

  test('of several rules is the union of them', async () => {
    const { as, path, seen } = await createTwoEntities([
      rule('read', 'user', '*'),
      rule('read', 'tenant', 'plugin'),
      rule('update', 'workspace', 'user'),
      rule('update', 'user', 'user'),
      rule('delete', 'user', 'user'),
      rule('delete', 'tenant', 'user'),
    ])
    expect(await seen(as('user'))).toEqual(['mine'])
    expect(await seen(as('editor'))).toEqual(['mine', 'nobodys', 'theirs'])
    expect((await as('user').put(`${path}/mine`, { title: 'x' })).status).toBe(200)
    expect((await as('user').delete(`${path}/theirs`)).status).toBe(200)
  })

  test('of reading decides what is in sight: who may read but not change is told so', async () => {
    const permissions = [rule('read', 'tenant', 'user'), rule('update', 'user', 'user'), rule('delete', 'user', 'user')]
    const { as, path, admin } = await createTwoEntities(permissions)
    for (const answer of [
      await as('user').put(`${path}/theirs`, { title: 'x' }),
      await as('user').patch(`${path}/theirs`, { title: 'x' }),
      await as('user').delete(`${path}/theirs`),
    ])
      expect(statusAndCode(answer)).toEqual(FORBIDDEN)
    expect(statusAndCode(await as('user').put(`${path}/nothing`, { title: 'x' }))).toEqual(GONE)
    expect((await as('user').delete(`${path}/all?confirm=things`)).body.deletedCount).toBe(1)
    expect((await admin.get(`${path}/theirs`)).body.title).toBe('t')
  })
})

describe('admins', () => {
  test('reach everything, and with bypassAdmin=true no more than the rules give them', async () => {
    const { admin, users, path, seen } = await createTwoEntities(fullAccessRules('user', 'user'))
    await admin.post(path, { identifier: 'admins' })
    expect((await admin.get(`${path}/admins`)).body.user).toBe(users.admin)
    expect(await seen(admin)).toEqual(['admins', 'mine', 'nobodys', 'theirs'])
    expect(identifiers((await admin.get(`${path}?bypassAdmin=false`)).body)).toHaveLength(4)
    expect(identifiers((await admin.get(`${path}?bypassAdmin=true`)).body)).toEqual(['admins'])
  })
})

describe('guests', () => {
  const guest = (...operations: string[]) =>
    operations.map((operation) => ({ operation, guest: true, scope: 'tenant' }))

  test('may what a rule for guests says, and so may everybody', async () => {
    const { stranger, as, path, seen } = await createTwoEntities(guest('read', 'create', 'update', 'delete'))
    for (const who of [stranger, as('user')]) {
      expect(await seen(who)).toEqual(['mine', 'nobodys', 'theirs'])
      const { status, body } = await who.post(path, { title: 'x', user: 'y', workspace: 'z' })
      expect(status).toBe(201)
      expect(body.workspace).toBeNull()
      expect((await who.put(`${path}/${body._id}`, { title: 'y' })).status).toBe(200)
      expect((await who.delete(`${path}/${body._id}`)).status).toBe(200)
    }
    expect((await stranger.post(path, {})).body.user).toBeNull()
  })

  test('own nothing, so that the scope user is about nothing', async () => {
    const { stranger, as, path, seen } = await createTwoEntities([{ operation: 'read', guest: true, scope: 'user' }])
    expect(await seen(stranger)).toEqual([])
    expect(statusAndCode(await stranger.get(`${path}/nobodys`))).toEqual(GONE)
    expect(await seen(as('user'))).toEqual(['mine'])
  })

  test('with a bad credential are not guests any more', async () => {
    const { stranger, path } = await createTwoEntities(guest('read'))
    expect((await stranger.get(path)).status).toBe(200)
    for (const headers of [{ 'x-api-key': 'atl_x' }, { authorization: 'Bearer x' }] as Record<string, string>[])
      expect(statusAndCode(await stranger.with(headers).get(path))).toEqual(SIGN_IN)
  })

  test('write ten times in five seconds, then have to wait; who signs in has not', async () => {
    const { stranger, as, path, admin } = await createTwoEntities(guest('read', 'create', 'update', 'delete'))
    await admin.post('/blueprints', { key: 'others', name: 'O', fields: [], permissions: guest('create') })
    for (let n = 0; n < 4; n++) expect((await stranger.post(path, { title: `${n}` })).status).toBe(201)
    for (let n = 0; n < 4; n++) expect((await stranger.put(`${path}/mine`, { title: `${n}` })).status).toBe(200)
    expect((await stranger.delete(`${path}/mine`)).status).toBe(200)
    expect((await stranger.delete(`${path}/all?confirm=things&title=0`)).status).toBe(200)
    for (const answer of [
      await stranger.post(path, {}),
      await stranger.put(`${path}/theirs`, {}),
      await stranger.patch(`${path}/theirs`, {}),
      await stranger.delete(`${path}/theirs`),
      await stranger.delete(`${path}/all?confirm=things`),
    ]) {
      expect(statusAndCode(answer)).toEqual([429, 'RATE_LIMITED'])
      expect(Number(answer.headers.get('retry-after'))).toBeWithin(1, 6)
    }
    expect((await stranger.get(path)).status).toBe(200)
    expect((await as('user').post(path, {})).status).toBe(201)
    expect((await stranger.post('/blueprints/others/entities', {})).status).toBe(201)

    const away = await createTwoEntities(guest('create'))
    expect((await away.stranger.post(away.path, {})).status).toBe(201)

    const before = now()
    try {
      moveClock(before + 5_001)
      expect((await stranger.post(path, {})).status).toBe(201)
    } finally {
      moveClock(Date.now())
    }
  })
})

describe('a property that only some may read', () => {
  const fields = [
    title,
    { key: 'secret', type: 'string', readRoles: ['plugin'], writeRoles: ['plugin'] },
    { key: 'place', type: 'object', readRoles: ['plugin'] },
    { key: 'ranks', type: 'integer', multi: true, readRoles: ['plugin'] },
  ]
  const hidden = async () => {
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

  test('is in no answer to the others, in no shape', async () => {
    const { user, editor, as, path, at } = await hidden()
    for (const who of [editor, as('admin')]) expect((await who.get(at)).body.secret).toBe('two')
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

  test('cannot be asked for by the others: it is as if there were none', async () => {
    const { user, path, at } = await hidden()
    const asked = (name: string) => [
      ...[`${name}=two`, `${name}[$ne]=two`, `${name}[$gt]=a`, `${name}[$in]=two`, `${name}[$exists]=true`],
      ...[`${name}.city=two`, `${name}.city[$exists]=true`, `$sort=${name}`, `$sort=title,-${name}`, `$select=${name}`],
    ]
    for (const name of ['secret', 'place', 'ranks'])
      for (const [index, query] of asked(name).entries()) {
        const unknown = asked('nowhere')[index]!
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

  test('cannot be guessed by sending it in two places', async () => {
    const { user, at } = await hidden()
    const guess = async (secret: string) => {
      const { status, body } = await user.put(at, { secret, metadata: { secret: 'else' } })
      return JSON.stringify([status, body])
    }
    expect(await guess('two')).toBe(await guess('one'))
  })

  test('is not changed by those who cannot see it', async () => {
    const { user, editor, path, at } = await hidden()
    for (const secret of ['two', 'x', null, 5]) {
      expect(statusAndCode(await user.put(at, { secret }))).toEqual(FORBIDDEN)
      expect(statusAndCode(await user.post(path, { metadata: { secret } }))).toEqual(FORBIDDEN)
    }
    expect((await user.put(at, (await user.get(at)).body)).status).toBe(200)
    expect((await editor.get(at)).body.secret).toBe('two')
  })
})

describe('a property that only some may write', () => {
  const own = createThingsFixture(
    [title, { key: 'state', type: 'string', default: 'new', writeRoles: ['plugin'] }],
    fullAccessRules('tenant', '*'),
  )

  test('is refused from the others, at creation and at a change', async () => {
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

  test('may be sent back as it was read', async () => {
    const { as, path } = await own
    const { body } = await as('user').post(path, { title: 'x' })
    const back = await as('user').put(`${path}/${body._id}`, { ...body, title: 'y' })
    expect([back.status, back.body.title, back.body.state]).toEqual([200, 'y', 'new'])
  })

  test('is written by those who may, and by admins', async () => {
    const { as, path } = await own
    for (const name of ['editor', 'admin'] as TestUser[]) {
      const { status, body } = await as(name).post(path, { state: 'open' })
      expect([status, body.state]).toEqual([201, 'open'])
      expect((await as(name).put(`${path}/${body._id}`, { state: 'done' })).body.state).toBe('done')
    }
  })
})

describe('relations', () => {
  test('lead nowhere that the caller may not look', async () => {
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
    const link = (who: ApiClient, to: string) => who.post('/blueprints/links/entities', { to })
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
  test('sees nothing of this one, though its blueprints, identifiers and users have the same names', async () => {
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
        expect(statusAndCode(answer)).toEqual(GONE)
    }
    expect((await there.as('admin').delete(`${path}/all?confirm=things`)).body.deletedCount).toBe(0)
    expect((await there.as('user').post(path, { identifier: 'mine', title: 'other' })).status).toBe(201)
    await there.as('admin').delete('/blueprints/things?force=true')
    expect(await here.seen(here.as('user'))).toEqual(['mine', 'nobodys', 'theirs'])
    expect((await here.admin.get(`${path}/mine`)).body.title).toBe('m')
  })

  test('takes no credential of this one', async () => {
    const [here, there] = [await createTwoEntities(fullAccessRules('tenant', '*')), await createTestTenant()]
    for (const headers of [{ host: `${there.id}.test` }, { tenant: there.id }] as Record<string, string>[])
      for (const answer of await listAll(here.as('admin').with(headers), here.path))
        expect(statusAndCode(answer)).toEqual(SIGN_IN)
  })
})
