import { describe, expect, test } from 'bun:test'
import { issueApiToken } from '../../src/accounts/api-tokens'
import { registerUser } from '../../src/accounts/users/users'
import { type ApiClient, callApi, createTestTenant, statusAndCode, type TestUser } from '../test-tenant'
import { createWorkspace } from '../workspaces/workspace-fixtures'
import { startTestServer } from './changes/stream-client'
import { identifiers } from './fixtures'

const NOT_FOUND = [404, 'ENTITY_NOT_FOUND']
const FORBIDDEN = [403, 'FORBIDDEN']
const title = { key: 'title', type: 'string' }
const OPERATIONS = ['create', 'read', 'update', 'delete']
const inWorkspace = (rule: object) => OPERATIONS.map((operation) => ({ operation, scope: 'workspace', ...rule }))

const { listener } = startTestServer()

/**
 * Creates two workspaces: "north" with the user as admin and the other user as member, and "south" of the editor.
 * Each of the three owns an entity of their active workspace. A fourth entity belongs to no workspace.
 */
async function createTwoWorkspaces(permissions: object[], more: object = {}) {
  const own = await createTestTenant()
  const { fields = [title], ...definition } = more as { fields?: object[] }
  const blueprint = { key: 'things', name: 'Things', fields, permissions, ...definition }
  const created = await own.as('admin').post('/blueprints', blueprint)
  expect([created.status, created.body.message]).toEqual([201, undefined])
  const north = await createWorkspace(own.as('user'), { name: 'North', labels: ['pro'] })
  const south = await createWorkspace(own.as('editor'), { name: 'South', labels: ['free'] })
  await own.as('user').post(`/workspaces/${north._id}/members`, { userId: own.users.other, roles: ['member'] })
  for (const [name, { _id }] of [
    ['user', north],
    ['other', north],
    ['editor', south],
  ] as const)
    expect((await own.as(name).post(`/workspaces/${_id}/activate`)).status).toBe(200)
  const path = '/blueprints/things/entities'
  const place = { user: own.users.user, workspace: north._id }
  const rows = [
    { identifier: 'n1', title: 'one', ...place },
    { identifier: 'n2', title: 'two', ...place, user: own.users.other },
    { identifier: 's1', title: 'one', user: own.users.editor, workspace: south._id },
    { identifier: 'old', title: 'own', user: own.users.other, workspace: null },
  ]
  for (const row of rows) expect((await own.as('admin').post(path, row)).status).toBe(201)
  const seen = async (client: ApiClient | TestUser, query = '') => {
    const { body } = await (typeof client === 'string' ? own.as(client) : client).get(
      `${path}?$sort=identifier&${query}`,
    )
    return Array.isArray(body) ? identifiers(body) : body.code
  }
  return { ...own, north: north._id as string, south: south._id as string, path, seen }
}

describe('the scope workspace', () => {
  test('the scope workspace reaches all entities of the active workspace, independent of their owner', async () => {
    const { as, path, seen, users, north } = await createTwoWorkspaces(inWorkspace({ roleBased: ['*'] }))
    for (const name of ['user', 'other'] as const) expect(await seen(name)).toEqual(['n1', 'n2'])
    expect(await seen('editor')).toEqual(['s1'])
    expect(await seen('admin')).toEqual(['n1', 'n2', 'old', 's1'])
    const otherUser = as('other')
    for (const name of ['s1', 'old', 'nothing'])
      for (const answer of [
        await otherUser.get(`${path}/${name}`),
        await otherUser.put(`${path}/${name}`, { title: 'x' }),
        await otherUser.patch(`${path}/${name}`, { title: 'x' }),
        await otherUser.delete(`${path}/${name}`),
      ])
        expect(statusAndCode(answer)).toEqual(NOT_FOUND)
    expect((await otherUser.get(`${path}/n1`)).body.title).toBe('one')
    expect((await otherUser.put(`${path}/n1`, { title: 'new' })).body).toMatchObject({
      title: 'new',
      user: users.user,
      workspace: north,
    })
    expect((await otherUser.delete(`${path}/n1`)).status).toBe(200)
  })

  test('a new entity belongs to the active workspace of its creator, and only admins can choose another', async () => {
    const { as, path, north, south, users, seen } = await createTwoWorkspaces(inWorkspace({ roleBased: ['*'] }))
    const create = async (name: TestUser, body: object) => (await as(name).post(path, body)).body
    expect(await create('other', { identifier: 'n3', workspace: south, user: users.editor })).toMatchObject({
      workspace: north,
      user: users.other,
    })
    expect((await as('other').put(`${path}/n3`, { workspace: south })).body.workspace).toBe(north)
    expect((await create('admin', { identifier: 'a1', workspace: south })).workspace).toBe(south)
    expect((await create('admin', { identifier: 'a2' })).workspace).toBeNull()
    await as('admin').post(`/workspaces/${north}/activate`)
    expect((await create('admin', { identifier: 'a3' })).workspace).toBe(north)
    expect((await as('admin').put(`${path}/a3`, { workspace: south })).body.workspace).toBe(south)
    expect(await seen('editor')).toEqual(['a1', 'a3', 's1'])
  })

  test('the scope workspace limits lists, searches, counts, charts, exports and DELETE /all', async () => {
    const { as, path, seen, south, anonymous } = await createTwoWorkspaces(inWorkspace({ roleBased: ['*'] }))
    const user = as('user')
    for (const query of ['title=one', 'title[$ne]=x&title=one', '$q=one', 'identifier[$in]=n1,s1'])
      expect([query, await seen('user', query)]).toEqual([query, ['n1']])
    expect(await seen('user', `workspace=${south}`)).toEqual([])
    const counted = await user.get(`${path}?$count=true`)
    expect(counted.headers.get('x-total-count')).toBe('2')
    expect((await user.get('/blueprints/things/charts/count')).body).toEqual({ count: 2 })
    const pie = await user.get('/blueprints/things/charts/pie?x=title')
    expect(pie.body.series[0].data).toEqual([
      { name: 'one', value: 1 },
      { name: 'two', value: 1 },
    ])
    expect((await user.get(`${path}/export?format=ndjson`)).body.trim().split('\n')).toHaveLength(2)
    expect(statusAndCode(await anonymous.get(path))).toEqual([401, 'UNAUTHENTICATED'])
    const removed = await user.delete(`${path}/all?confirm=things`)
    expect([removed.body, await seen('admin')]).toEqual([{ success: true, deletedCount: 2 }, ['old', 's1']])
  })

  test('the scope workspace limits batches and imports', async () => {
    const { as, path, origin, tokens, seen, north } = await createTwoWorkspaces(inWorkspace({ roleBased: ['*'] }))
    const otherUser = as('other')
    const batch = (...operations: object[]) => otherUser.post(`${path}/batch`, { operations })
    const made = { op: 'create', data: { identifier: 'b1' } }
    const change = (identifier: string) => ({ op: 'update', identifier, data: { title: 'x' } })
    expect(statusAndCode(await batch(made, change('s1')))).toEqual(NOT_FOUND)
    expect((await batch(made, change('n1'))).status).toBe(200)

    const lines = ['i1', 'n2', 's1'].map((identifier) => JSON.stringify({ identifier, title: 'imported' }))
    const url = `${origin}/api${path}/import?format=ndjson&mode=upsert`
    const { body } = await callApi('POST', url, { raw: lines.join('\n'), headers: { 'x-api-key': tokens.other } })
    expect(body).toMatchObject({ imported: 2, failed: 1, errors: [{ line: 3 }] })
    expect(await seen('other')).toEqual(['b1', 'i1', 'n1', 'n2'])
    for (const name of ['b1', 'i1']) expect((await otherUser.get(`${path}/${name}`)).body.workspace).toBe(north)
    expect((await as('editor').get(`${path}/s1`)).body.title).toBe('one')
  })

  test('rules of scope workspace and scope user together reach the union of their entities', async () => {
    const { as, path, seen } = await createTwoWorkspaces([
      { operation: 'read', scope: 'workspace', roleBased: ['*'] },
      { operation: 'read', scope: 'user', roleBased: ['*'] },
      { operation: 'update', scope: 'user', roleBased: ['*'] },
    ])
    expect(await seen('other')).toEqual(['n1', 'n2', 'old'])
    expect(await seen('user')).toEqual(['n1', 'n2'])
    expect((await as('other').put(`${path}/old`, { title: 'x' })).status).toBe(200)
    expect(statusAndCode(await as('other').put(`${path}/n1`, { title: 'x' }))).toEqual(FORBIDDEN)
    expect(statusAndCode(await as('other').put(`${path}/s1`, { title: 'x' }))).toEqual(NOT_FOUND)
  })

  test('a user without a workspace reaches no entities by the scope workspace, and cannot create any', async () => {
    const fixture = await createTwoWorkspaces(inWorkspace({ roleBased: ['*'] }))
    const { _id } = await registerUser(fixture.tenant, { username: 'lonely' })
    const { token } = await issueApiToken(fixture.tenant, _id, { nickname: 'x' })
    const lonely = fixture.anonymous.with({ 'x-api-key': token })
    expect(await fixture.seen(lonely)).toEqual([])
    expect(statusAndCode(await lonely.get(`${fixture.path}/n1`))).toEqual(NOT_FOUND)
    expect(statusAndCode(await lonely.post(fixture.path, {}))).toEqual(FORBIDDEN)
    expect((await lonely.delete(`${fixture.path}/all?confirm=things`)).body.deletedCount).toBe(0)
  })

  test('an admin with bypassAdmin=true reaches only the entities of their active workspace', async () => {
    const { as, seen, south } = await createTwoWorkspaces(inWorkspace({ roleBased: ['*'] }))
    expect(await seen('admin', 'bypassAdmin=true')).toEqual([])
    await as('admin').post(`/workspaces/${south}/activate`)
    expect(await seen('admin', 'bypassAdmin=true')).toEqual(['s1'])
    expect(await seen('admin')).toHaveLength(4)
  })
})

describe('rules with workspaceRoleBased', () => {
  test('a rule for a workspace role allows callers who have the role in their active workspace', async () => {
    const { as, seen, path, users, north } = await createTwoWorkspaces(inWorkspace({ workspaceRoleBased: ['admin'] }))
    expect(await seen('user')).toEqual(['n1', 'n2'])
    expect(await seen('other')).toBe('FORBIDDEN')
    expect(statusAndCode(await as('other').post(path, {}))).toEqual(FORBIDDEN)
    await as('user').put(`/workspaces/${north}/members/${users.other}`, { roles: ['admin'] })
    expect(await seen('other')).toEqual(['n1', 'n2'])
    expect((await as('other').post(path, {})).status).toBe(201)
  })

  test('a rule for the workspace role * allows every member, and no former member', async () => {
    const { as, seen, users, north, south } = await createTwoWorkspaces(inWorkspace({ workspaceRoleBased: ['*'] }))
    expect([await seen('user'), await seen('other'), await seen('editor')]).toEqual([
      ['n1', 'n2'],
      ['n1', 'n2'],
      ['s1'],
    ])
    await as('user').delete(`/workspaces/${north}/members/${users.other}`)
    expect(await seen('other')).toBe('FORBIDDEN')
    await as('editor').post(`/workspaces/${south}/members`, { userId: users.other, roles: [] })
    await as('other').post(`/workspaces/${south}/activate`)
    expect(await seen('other')).toEqual(['s1'])
  })

  test('a rule for a workspace role follows the caller when they activate another workspace', async () => {
    const { as, seen, north, south, users } = await createTwoWorkspaces(inWorkspace({ workspaceRoleBased: ['admin'] }))
    await as('editor').post(`/workspaces/${south}/members`, { userId: users.user, roles: ['member'] })
    expect(await seen('user')).toEqual(['n1', 'n2'])
    await as('user').post(`/workspaces/${south}/activate`)
    expect(await seen('user')).toBe('FORBIDDEN')
    await as('user').post(`/workspaces/${north}/activate`)
    expect(await seen('user')).toEqual(['n1', 'n2'])
  })

  test('a rule for a workspace role with the scope tenant reaches all entities of the tenant', async () => {
    const { seen } = await createTwoWorkspaces([{ operation: 'read', scope: 'tenant', workspaceRoleBased: ['admin'] }])
    expect([await seen('user'), await seen('other')]).toEqual([['n1', 'n2', 'old', 's1'], 'FORBIDDEN'])
  })
})

describe('rules with workspaceLabelsBased', () => {
  test('a rule for workspace labels allows members of workspaces with one of them, as soon as labels change', async () => {
    const rule = { roleBased: ['*'], workspaceLabelsBased: ['pro', 'max'] }
    const { as, seen, path, north, south } = await createTwoWorkspaces(inWorkspace(rule))
    expect([await seen('user'), await seen('other'), await seen('editor')]).toEqual([
      ['n1', 'n2'],
      ['n1', 'n2'],
      'FORBIDDEN',
    ])
    expect(statusAndCode(await as('editor').post(path, {}))).toEqual(FORBIDDEN)
    await as('editor').put(`/workspaces/${south}`, { labels: ['max'] })
    await as('user').put(`/workspaces/${north}`, { labels: [] })
    expect([await seen('user'), await seen('other'), await seen('editor')]).toEqual(['FORBIDDEN', 'FORBIDDEN', ['s1']])
  })

  test('a rule for the workspace label * allows members of any workspace, with or without labels', async () => {
    const { as, seen, users, north } = await createTwoWorkspaces(
      inWorkspace({ roleBased: ['*'], workspaceLabelsBased: ['*'] }),
    )
    await as('user').put(`/workspaces/${north}`, { labels: [] })
    expect(await seen('other')).toEqual(['n1', 'n2'])
    await as('user').delete(`/workspaces/${north}/members/${users.other}`)
    expect(await seen('other')).toBe('FORBIDDEN')
  })
})

describe('workspace limitations', () => {
  test('a limitation of scope workspace counts the entities of the workspace, independent of their owner', async () => {
    const limitations = [{ scope: 'workspace', value: 3 }]
    const { as, path } = await createTwoWorkspaces(inWorkspace({ roleBased: ['*'] }), { limitations })
    expect((await as('user').post(path, {})).status).toBe(201)
    for (const name of ['user', 'other'] as const)
      expect(statusAndCode(await as(name).post(path, {}))).toEqual([403, 'LIMIT_REACHED'])
    expect((await as('editor').post(path, {})).status).toBe(201)
    expect((await as('admin').post(path, {})).status).toBe(201)
  })

  test('a limitation by workspace label applies to labelled workspaces only, also under concurrency', async () => {
    const limitations = [{ scope: 'workspace', workspaceLabels: ['free'], value: 4 }]
    const { as, path, seen } = await createTwoWorkspaces(inWorkspace({ roleBased: ['*'] }), { limitations })
    const many = (name: TestUser) => Promise.all(Array.from({ length: 6 }, () => as(name).post(path, {})))
    const statuses = (answers: { status: number }[]) => answers.map(({ status }) => status).sort()
    expect(statuses(await many('editor'))).toEqual([201, 201, 201, 403, 403, 403])
    expect(await seen('editor')).toHaveLength(4)
    expect(statuses(await many('user'))).toEqual(Array(6).fill(201))
  })
})

describe('entity change streams', () => {
  test('a change stream sends changes in the active workspace, and moves into and out of it as create and delete', async () => {
    const fixture = await createTwoWorkspaces(inWorkspace({ workspaceRoleBased: ['*'] }))
    const { as, path, north, south } = fixture
    await using follower = await listener(fixture, 'other')
    for (const [name, body] of [
      ['s1', { title: 'unseen' }],
      ['n1', { title: 'seen' }],
      ['s1', { workspace: north }],
      ['n1', { workspace: south }],
    ] as const)
      expect((await as('admin').put(`${path}/${name}`, body)).status).toBe(200)
    expect(await follower.take(3)).toEqual(['update n1', 'create s1', 'delete n1'])
  })

  test('a change stream ends when its listener is removed from the workspace', async () => {
    const fixture = await createTwoWorkspaces(inWorkspace({ workspaceRoleBased: ['*'] }))
    const { as, path, north, users } = fixture
    await using follower = await listener(fixture, 'other')
    await as('user').delete(`/workspaces/${north}/members/${users.other}`)
    await as('admin').put(`${path}/n1`, { title: 'secret' })
    expect(await follower.take(1)).toEqual(['end'])
  })
})

describe('populate and relations across workspaces', () => {
  test('$populate=workspace returns _id, name and logo, and the bare id once the workspace is removed', async () => {
    const { as, path, north } = await createTwoWorkspaces(inWorkspace({ roleBased: ['*'] }))
    const one = async (query: string, name: TestUser = 'other') => (await as(name).get(`${path}/n1?${query}`)).body
    expect((await one('$populate=workspace')).workspace).toEqual({ _id: north, name: 'North', logo: null })
    expect((await one('$populate=true')).workspace.name).toBe('North')
    const list = (await as('admin').get(`${path}?$populate=workspace,user&$sort=identifier`)).body
    expect(list.map(({ workspace }: { workspace: { name: string } | null }) => workspace?.name ?? null)).toEqual([
      'North',
      'North',
      null,
      'South',
    ])
    await as('user').delete(`/workspaces/${north}`)
    expect((await one('$populate=workspace', 'admin')).workspace).toBe(north)
  })

  test('a relation to an entity of another workspace is rejected with 400, and $populate leaves its identifier', async () => {
    const rule = inWorkspace({ roleBased: ['*'] })
    const { as, path, seen } = await createTwoWorkspaces(rule, {
      fields: [title, { key: 'next', type: 'relation', target: 'things' }],
    })
    expect((await as('user').put(`${path}/n1`, { next: 's1' })).status).toBe(400)
    expect((await as('user').put(`${path}/n1`, { next: 'n2' })).status).toBe(200)
    expect((await as('admin').put(`${path}/n2`, { next: 's1' })).status).toBe(200)
    expect((await as('user').get(`${path}/n1?$populate=next`)).body.next.title).toBe('two')
    expect((await as('user').get(`${path}/n2?$populate=next`)).body.next).toBe('s1')
    expect(await seen('user', 'next=s1')).toEqual(['n2'])
    const set = (name: TestUser, at: string) => as(name).get(`${path}/${at}?$outerPopulate=from:things:workspace`)
    expect((await set('editor', 's1')).body.from).toEqual([])
    expect(identifiers((await set('user', 'n2')).body.from)).toEqual(['n1'])
  })
})

describe('the removal of a workspace', () => {
  test('DELETE of a workspace keeps its entities, counts them, and only admins reach them afterwards', async () => {
    const { as, seen, north, path } = await createTwoWorkspaces(inWorkspace({ roleBased: ['*'] }))
    await as('admin').post('/blueprints', { key: 'others', name: 'Others', fields: [] })
    await as('admin').post('/blueprints/others/entities', { workspace: north })
    expect((await as('user').delete(`/workspaces/${north}`)).body).toEqual({ success: true, entities: 3 })
    expect([await seen('user'), await seen('other'), await seen('editor')]).toEqual([[], [], ['s1']])
    expect(statusAndCode(await as('user').get(`${path}/n1`))).toEqual(NOT_FOUND)
    expect(await seen('admin', `workspace=${north}`)).toEqual(['n1', 'n2'])
  })
})

describe('GET permissions/explain', () => {
  const at = '/blueprints/things/permissions/explain'

  test('GET permissions/explain returns what a user may do in a workspace, and why', async () => {
    const fixture = await createTwoWorkspaces([
      { operation: 'read', scope: 'workspace', workspaceRoleBased: ['admin'] },
      { operation: 'read', scope: 'user', roleBased: ['user'], workspaceLabelsBased: ['pro'] },
    ])
    const { users, north, south } = fixture
    const read = async (user: string, workspace: string) => {
      const { status, body } = await fixture.as('admin').get(`${at}?operation=read&user=${user}&workspace=${workspace}`)
      return status === 200 ? { workspace: body.workspace, ...body.operations[0] } : body.code
    }
    const user = await read(users.user, north)
    expect(user).toMatchObject({
      workspace: { _id: north, name: 'North', roles: ['admin'], labels: ['pro'] },
      allowed: true,
      reach: { all: false, user: users.user, workspace: north },
      because: 'Rules 0, 1 allow it: this user may read their own entities and those of their active workspace.',
      rules: [{ because: 'It is for admin in the active workspace. Its scope is workspace.' }, { applies: true }],
    })
    const other = await read(users.other, north)
    expect([other.allowed, other.reach]).toEqual([true, { all: false, user: users.other, workspace: null }])
    expect(other.rules[0].because).toBe('It asks for one of the roles admin in the active workspace.')
    const editor = await read(users.editor, south)
    expect([editor.allowed, editor.reach.workspace]).toEqual([true, south])
    expect((await read(users.user, '')).allowed).toBe(false)
    expect((await read(users.user, '')).workspace).toBeNull()
    expect(await read(users.user, south)).toBe('WORKSPACE_NOT_FOUND')
    expect(await read(users.user, 'x')).toBe('WORKSPACE_NOT_FOUND')
    expect((await read(users.admin, south)).workspace.roles).toEqual([])
  })

  test('GET permissions/explain agrees with the answers that the users get', async () => {
    const fixture = await createTwoWorkspaces(
      inWorkspace({ workspaceRoleBased: ['admin'], workspaceLabelsBased: ['pro'] }),
    )
    for (const [name, workspace] of [
      ['user', fixture.north],
      ['other', fixture.north],
      ['editor', fixture.south],
    ] as const) {
      const { body } = await fixture
        .as('admin')
        .get(`${at}?operation=read&user=${fixture.users[name]}&workspace=${workspace}`)
      const visible = await fixture.seen(name)
      expect([name, body.operations[0].allowed]).toEqual([name, visible !== 'FORBIDDEN'])
    }
  })
})
