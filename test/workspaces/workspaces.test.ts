import { describe, expect, test } from 'bun:test'
import { issueApiToken } from '../../src/accounts/api-tokens'
import { nextPagePath } from '../entities/fixtures'
import { createTestTenant, statusAndCode } from '../test-tenant'
import { createWorkspace, createWorkspaceFixture, FORBIDDEN, ID, TIME, WORKSPACE_NOT_FOUND } from './workspace-fixtures'

const toNames = (body: { name: string }[]) => body.map(({ name }) => name)

describe('a workspace', () => {
  test('is made by anybody, who administers it, read, changed in part and removed', async () => {
    const { as, id, users } = await createTestTenant()
    const user = as('user')
    const created = await user.post('/workspaces', { name: 'Office', logo: 'https://x.test/a.png', labels: ['pro'] })
    const { members: _, invites: __, ...listed } = created.body
    expect([created.status, created.body]).toEqual([
      201,
      {
        _id: ID,
        name: 'Office',
        logo: 'https://x.test/a.png',
        labels: ['pro'],
        isPrivilegedUser: true,
        created: TIME,
        updated: created.body.created,
        members: [{ user: users.user, roles: ['admin'], created: TIME, fullName: '', email: `user@${id}.test` }],
        invites: [],
      },
    ])
    const path = `/workspaces/${created.body._id}`
    expect((await user.get(path)).body).toEqual(created.body)
    expect((await user.get('/workspaces')).body).toEqual([listed])

    const renamed = await user.put(path, { name: 'Büro' })
    expect([renamed.status, renamed.body]).toEqual([200, { ...created.body, name: 'Büro', updated: TIME }])
    const plain = await user.put(path, { logo: '', labels: [] })
    expect(plain.body).toMatchObject({ name: 'Büro', logo: null, labels: [] })
    expect((await user.put(path, plain.body)).body).toEqual({ ...plain.body, updated: TIME })

    expect((await user.delete(path)).body).toEqual({ success: true, entities: 0 })
    for (const answer of [await user.get(path), await user.put(path, {}), await user.delete(path)])
      expect(statusAndCode(answer)).toEqual(WORKSPACE_NOT_FOUND)
    expect((await user.get('/workspaces')).body).toEqual([])
  })

  test('needs a name; logo and labels have to be such', async () => {
    const { as } = await createTestTenant()
    const user = as('user')
    const bare = await createWorkspace(user, { name: 'Bare' })
    expect(bare).toMatchObject({ logo: null, labels: [] })
    for (const wrong of [
      ...[
        { name: undefined },
        { name: '' },
        { name: ' ' },
        { name: 5 },
        { name: 'a\nb' },
        { name: 'x'.repeat(201) },
        { name: null },
      ],
      ...[
        { logo: 'javascript:alert(1)' },
        { logo: 5 },
        { labels: 'pro' },
        { labels: [''] },
        { labels: [' '] },
        { labels: [5] },
      ],
      ...[{ labels: Array(101).fill('a') }, { labels: null }],
    ]) {
      expect(statusAndCode(await user.post('/workspaces', { name: 'Office', ...wrong }))).toEqual([
        400,
        'INVALID_INPUT',
      ])
      if (!('name' in wrong && wrong.name === undefined))
        expect(statusAndCode(await user.put(`/workspaces/${bare._id}`, wrong))).toEqual([400, 'INVALID_INPUT'])
    }
    expect((await createWorkspace(user, { labels: ['a', 'b', 'a'] })).labels).toEqual(['a', 'b'])
    expect((await user.get(`/workspaces/${bare._id}`)).body).toEqual(bare)
  })

  test('is read by its members, changed and removed by those who administer it, and unknown to all others', async () => {
    const { as, stranger, at, users } = await createWorkspaceFixture()
    const [other, editor] = [as('other'), as('editor')]
    const read = await other.get(at)
    expect([read.status, read.body.isPrivilegedUser]).toEqual([200, false])
    for (const answer of [await other.put(at, { name: 'Mine' }), await other.delete(at)])
      expect(statusAndCode(answer)).toEqual(FORBIDDEN)
    for (const answer of [await editor.get(at), await editor.put(at, { name: 'Mine' }), await editor.delete(at)])
      expect(statusAndCode(answer)).toEqual(WORKSPACE_NOT_FOUND)
    for (const answer of [await stranger.get(at), await stranger.post('/workspaces', { name: 'x' })])
      expect(statusAndCode(answer)).toEqual([401, 'UNAUTHENTICATED'])
    expect((await as('user').get(at)).body).toMatchObject({ name: 'Office', members: [{ user: users.user }, {}] })
  })

  test('tells its invites only to those who administer it', async () => {
    const { as, at } = await createWorkspaceFixture()
    await as('user').post(`${at}/invites`, { email: 'eve@x.test' })
    for (const who of [as('user'), as('admin')])
      expect((await who.get(at)).body.invites).toMatchObject([{ email: 'eve@x.test' }])
    expect((await as('other').get(at)).body.invites).toEqual([])
  })

  test('tells the e-mail addresses of its members only to those who administer it', async () => {
    const { as, at, id } = await createWorkspaceFixture()
    const addresses = (members: { email: string }[]) => members.map(({ email }) => email)
    for (const who of [as('user'), as('admin')])
      for (const members of [(await who.get(at)).body.members, (await who.get(`${at}/members`)).body])
        expect(addresses(members)).toEqual([`user@${id}.test`, `other@${id}.test`])
    for (const { status, body } of [
      await as('other').get(at),
      await as('other').get(`${at}/members`),
      await as('other').post(`${at}/activate`),
    ])
      expect([status, JSON.stringify(body)]).toEqual([200, expect.not.stringContaining('@')])
  })

  test('is reached and administered by admins of the tenant, who still do not have its roles', async () => {
    const { as, at, workspace } = await createWorkspaceFixture()
    const admin = as('admin')
    expect((await admin.get(at)).body.isPrivilegedUser).toBe(false)
    expect((await admin.put(at, { name: 'Theirs' })).body.name).toBe('Theirs')
    expect((await admin.get('/workspaces')).body).toEqual([])
    expect((await admin.post(`${at}/activate`)).body).toMatchObject({ _id: workspace, roles: [] })
    expect((await admin.delete(at)).status).toBe(200)
  })

  test('is another tenant’s business nowhere', async () => {
    const [here, abroad] = [await createWorkspaceFixture(), await createTestTenant()]
    for (const name of ['user', 'admin'] as const) {
      const who = abroad.as(name)
      expect((await who.get('/workspaces')).body).toEqual([])
      for (const answer of [
        await who.get(here.at),
        await who.put(here.at, { name: 'x' }),
        await who.delete(here.at),
        await who.post(`${here.at}/activate`),
        await who.get(`${here.at}/members`),
        await who.post(`${here.at}/members`, { userId: abroad.users.user, roles: [] }),
        await who.post(`${here.at}/invites`, { email: 'a@x.test' }),
      ])
        expect(statusAndCode(answer)).toEqual(WORKSPACE_NOT_FOUND)
    }
    expect((await abroad.as('admin').get('/workspaces/all')).body).toEqual([])
    // Nor do users come from there.
    const foreign = await here.as('user').post(`${here.at}/members`, { userId: abroad.users.user, roles: [] })
    expect(statusAndCode(foreign)).toEqual([404, 'USER_NOT_FOUND'])
  })
})

test('the list has the caller’s own, page by page, as they are sorted', async () => {
  const { as, elsewhere } = await createWorkspaceFixture()
  const user = as('user')
  for (const name of ['C', 'A', 'B']) await createWorkspace(user, { name })
  expect(toNames((await user.get('/workspaces')).body)).toEqual(['B', 'A', 'C', 'Office'])
  expect(toNames((await as('other').get('/workspaces')).body)).toEqual(['Office'])
  const first = await user.get('/workspaces?sort=name&limit=3&count=true')
  expect([toNames(first.body), first.headers.get('x-total-count')]).toEqual([['A', 'B', 'C'], '4'])
  expect(toNames((await user.get(nextPagePath(first.headers)!)).body)).toEqual(['Office'])
  expect(statusAndCode(await user.get('/workspaces?sort=logo'))).toEqual([400, 'INVALID_INPUT'])
  expect(statusAndCode(await user.get('/workspaces?limit=-1'))).toEqual([400, 'INVALID_INPUT'])
  expect((await user.get(`/workspaces/${elsewhere}`)).status).toBe(404)
})

test.each(['%00', '%zz', 'x', "'", 'x'.repeat(300), '../all', 'undefined'])('an id %s is not found', async (id) => {
  const { as } = await createTestTenant()
  const path = `/workspaces/${encodeURIComponent(id)}`
  for (const who of [as('user'), as('admin')])
    for (const answer of [await who.get(path), await who.put(path, {}), await who.delete(path)])
      expect(statusAndCode(answer)).toEqual(WORKSPACE_NOT_FOUND)
})

test('scopes of API tokens are about workspaces, too', async () => {
  const home = await createWorkspaceFixture()
  const { token } = await issueApiToken(home.tenant, home.users.user, {
    nickname: 'reader',
    scopes: ['workspaces:read'],
  })
  const reader = home.stranger.with({ 'x-api-key': token })
  expect((await reader.get(home.at)).status).toBe(200)
  for (const answer of [await reader.post(`${home.at}/activate`), await reader.put(home.at, { name: 'x' })])
    expect(statusAndCode(answer)).toEqual(FORBIDDEN)
  expect(statusAndCode(await reader.get('/me'))).toEqual(FORBIDDEN)
})
