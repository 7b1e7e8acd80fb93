import { expect, test } from 'bun:test'
import { createThingsFixture, type Entity, identifiers } from '../entities/fixtures'
import { fullAccessRules, statusAndCode } from '../test-tenant'

const rule = (operation: string, more: object = {}) => ({ operation, scope: 'tenant', roleBased: ['user'], ...more })

test('an update with the right value of a hidden property is answered like one with a wrong value', async () => {
  const { as, path } = await createThingsFixture([
    { key: 'name', type: 'string' },
    { key: 'hidden', type: 'string', readRoles: ['boss'], writeRoles: ['boss'] },
    { key: 'dropped', type: 'string', readRoles: ['boss'] },
  ])
  const { body } = await as('admin').post(path, { name: 'A', hidden: 'secret', dropped: 'secret' })
  const at = `${path}/${body._id}`
  const outcomeOf = async (change: object) => {
    const answer = await as('user').put(at, change)
    return [answer.status, answer.body.code, answer.body.details, answer.body.metadata]
  }
  const shapes = [
    (key: string, guess: string) => ({ [key]: guess }),
    (key: string, guess: string) => ({ metadata: { [key]: guess } }),
    (key: string, guess: string) => ({ [key]: guess, metadata: { [key]: guess } }),
    (key: string, guess: string) => ({ [key]: guess, metadata: { [key]: 'another' } }),
    (key: string, guess: string) => ({ [key]: 'another', metadata: { [key]: guess } }),
  ]
  for (const key of ['hidden', 'dropped'])
    for (const shape of shapes) {
      await as('admin').put(at, { [key]: 'secret' })
      const right = await outcomeOf(shape(key, 'secret'))
      await as('admin').put(at, { [key]: 'secret' })
      expect(await outcomeOf(shape(key, 'wrong')), `${key} ${shape('k', 'guess')}`).toEqual(right)
    }
  expect((await as('admin').get(at)).body.hidden).toBe('secret')
  for (const search of ['hidden=secret', 'hidden[$gt]=a', '$sort=hidden', '$select=hidden'])
    expect((await as('user').get(`${path}?${search}`)).status).toBe(400)
})

test('an update by a user without read permission answers only ids and the values that were sent', async () => {
  const fields = [
    { key: 'name', type: 'string' },
    { key: 'note', type: 'string' },
    { key: 'added', type: 'string', default: 'secret default' },
  ]
  const { as, path } = await createThingsFixture(fields, [rule('update')])
  await as('admin').post(path, { identifier: 'one', name: 'secret', note: 'secret', added: 'secret' })
  for (const search of ['', '?$select=name', '?$flat=false', '?$select=metadata']) {
    const { status, body } = await as('user').put(`${path}/one${search}`, { note: 'mine' })
    expect([status, JSON.stringify(body)], search).toEqual([200, expect.not.stringContaining('secret')])
    expect([body.identifier, body.metadata]).toEqual(['one', { note: 'mine' }])
  }
  const { body } = await as('user').put(`${path}/one`, { metadata: { note: 'ours' } })
  expect(
    Object.keys(body)
      .filter((key) => !['_id', 'identifier'].includes(key))
      .sort(),
  ).toEqual(['metadata', 'note'])
  expect((await as('user').get(`${path}/one`)).status).toBe(403)
  expect((await as('admin').get(`${path}/one`)).body).toMatchObject({ name: 'secret', note: 'ours', added: 'secret' })
})

test('an update of an entity that the user may not read answers only the values that were sent', async () => {
  const { as, path } = await createThingsFixture(
    [
      { key: 'name', type: 'string' },
      { key: 'note', type: 'string' },
    ],
    [rule('update'), rule('read', { scope: 'user' }), rule('create')],
  )
  await as('other').post(path, { identifier: 'theirs', name: 'secret' })
  await as('user').post(path, { identifier: 'mine', name: 'known' })
  const change = async (name: string) => (await as('user').put(`${path}/${name}`, { note: 'x' })).body.metadata
  expect(await change('theirs')).toEqual({ note: 'x' })
  expect(await change('mine')).toEqual({ name: 'known', note: 'x' })
})

test('DELETE /api/blueprints/:key/entities/all with a filter needs read permission and spares unreadable entities', async () => {
  const fields = [{ key: 'name', type: 'string' }]
  const removing = `/blueprints/things/entities/all?confirm=things`
  const withoutRead = await createThingsFixture(fields, [rule('delete')])
  await withoutRead.as('admin').post(withoutRead.path, { name: 'secret' })
  for (const filter of ['name=secret', 'name=wrong', 'name[$exists]=true', `user=${withoutRead.users.admin}`])
    expect(statusAndCode(await withoutRead.as('user').delete(`${removing}&${filter}`)), filter).toEqual([
      403,
      'FORBIDDEN',
    ])
  expect(await withoutRead.rows('entities')).toBe(1)
  expect((await withoutRead.as('user').delete(removing)).body.deletedCount).toBe(1)

  const own = await createThingsFixture(fields, [rule('delete'), rule('read', { scope: 'user' }), rule('create')])
  for (const name of ['user', 'other'] as const) await own.as(name).post(own.path, { identifier: name, name: 'secret' })
  expect((await own.as('user').delete(`${removing}&name=secret`)).body.deletedCount).toBe(1)
  expect(identifiers((await own.as('admin').get(own.path)).body)).toEqual(['other'])
})

test('an identifier that equals the _id of another entity is refused with 409 IDENTIFIER_EXISTS', async () => {
  const { as, path, rows } = await createThingsFixture([{ key: 'name', type: 'string' }])
  const { body } = await as('other').post(path, { name: 'first' })
  const named = await as('other').post(path, { identifier: 'named', name: 'second' })
  for (const identifier of [body._id, named.body._id])
    expect(statusAndCode(await as('user').post(path, { identifier, name: 'usurper' }))).toEqual([
      409,
      'IDENTIFIER_EXISTS',
    ])
  expect(await rows('entities')).toBe(2)
  expect((await as('user').get(`${path}/${named.body._id}`)).body.name).toBe('second')
})

test('an identifier that is a path segment or a reserved word is refused with 400 INVALID_INPUT', async () => {
  const { as, path, rows } = await createThingsFixture([{ key: 'name', type: 'string' }])
  for (const identifier of ['.', '..', 'all', 'export', 'changes', 'a/b', 'a b', '/', 7, {}, 'x'.repeat(129)])
    expect(statusAndCode(await as('user').post(path, { identifier })), `${identifier}`).toEqual([400, 'INVALID_INPUT'])
  expect(await rows('entities')).toBe(0)
  for (const identifier of ['...', '.a', 'a..']) {
    expect((await as('user').post(path, { identifier })).status).toBe(201)
    expect((await as('user').get(`${path}/${identifier}`)).body.identifier).toBe(identifier)
  }
})

test('a relation to an unreadable entity is refused like one to a missing entity', async () => {
  const own = await createThingsFixture([])
  const admin = own.as('admin')
  for (const [key, permissions] of [
    ['notes', fullAccessRules('user', 'user')],
    ['vaults', []],
  ] as const)
    expect((await admin.post('/blueprints', { key, name: key, fields: [], permissions })).status).toBe(201)
  const fields = [
    { key: 'to', type: 'relation', target: 'notes' },
    { key: 'many', type: 'relation', target: 'notes', multi: true },
    { key: 'vault', type: 'relation', target: 'vaults' },
  ]
  expect((await admin.put('/blueprints/things', { fields })).status).toBe(200)
  await own.as('user').post('/blueprints/notes/entities', { identifier: 'mine' })
  await own.as('other').post('/blueprints/notes/entities', { identifier: 'theirs' })
  await admin.post('/blueprints/vaults/entities', { identifier: 'gold' })

  const write = async (body: object) => {
    const answer = await own.as('user').post(own.path, body)
    return [answer.status, answer.body.details]
  }
  expect((await write({ to: 'mine', many: ['mine'] }))[0]).toBe(201)
  const refused = (key: string, name: string, target: string) => [
    400,
    [{ path: `/${key}`, message: `There is no entity "${name}" of "${target}".` }],
  ]
  for (const name of ['theirs', 'none']) {
    expect(await write({ to: name })).toEqual(refused('to', name, 'notes'))
    expect(await write({ many: ['mine', name] })).toEqual(refused('many', name, 'notes'))
  }
  for (const name of ['gold', 'none']) expect(await write({ vault: name })).toEqual(refused('vault', name, 'vaults'))
  const { body } = (await own.as('user').get(own.path)) as { body: Entity[] }
  const change = await own.as('user').put(`${own.path}/${body[0]!._id}`, { to: 'theirs' })
  expect(statusAndCode(change)).toEqual([400, 'INVALID_INPUT'])
  expect((await admin.post(own.path, { to: 'theirs', vault: 'gold' })).status).toBe(201)
})

test('a file or profile image URL that browsers would resolve to another host is refused with 400 INVALID_INPUT', async () => {
  const { as, path } = await createThingsFixture([{ key: 'file', type: 'file' }])
  const user = as('user')
  for (const address of [
    '/\\evil.test',
    '//evil.test',
    '/\\/evil.test',
    '/\t/evil.test',
    'javascript:alert(1)',
    '\\\\evil',
  ]) {
    expect(statusAndCode(await user.post(path, { file: address })), address).toEqual([400, 'INVALID_INPUT'])
    expect(statusAndCode(await user.post('/me', { profileImage: address })), address).toEqual([400, 'INVALID_INPUT'])
  }
  for (const address of ['/files/a.png', '/', 'https://pictures.test/a.png']) {
    expect((await user.post(path, { file: address })).status).toBe(201)
    expect((await user.post('/me', { profileImage: address })).body.profileImage).toBe(address)
  }
})
