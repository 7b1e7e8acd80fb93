import { describe, expect, test } from 'bun:test'
import { issueApiToken } from '../../src/accounts/api-tokens'
import { nextPagePath } from '../entities/fixtures'
import { FORBIDDEN, ID, TIME, WORKSPACE_NOT_FOUND } from '../expectations'
import { createTestTenant, statusAndCode } from '../test-tenant'
import { createWorkspace, createWorkspaceFixture } from './workspace-fixtures'

const toNames = (body: { name: string }[]) => body.map(({ name }) => name)

describe('/api/workspaces', () => {
  test('a user creates a workspace, becomes its admin, and reads, changes and deletes it', async () => {
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

  test('a workspace with an invalid name, logo or label gets 400 INVALID_INPUT', async () => {
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

  test('a workspace is readable for its members, writable for its admins, and unknown to others (404)', async () => {
    const { as, anonymous, at, users } = await createWorkspaceFixture()
    const [member, editor] = [as('other'), as('editor')]
    const read = await member.get(at)
    expect([read.status, read.body.isPrivilegedUser]).toEqual([200, false])
    for (const answer of [await member.put(at, { name: 'Mine' }), await member.delete(at)])
      expect(statusAndCode(answer)).toEqual(FORBIDDEN)
    for (const answer of [await editor.get(at), await editor.put(at, { name: 'Mine' }), await editor.delete(at)])
      expect(statusAndCode(answer)).toEqual(WORKSPACE_NOT_FOUND)
    for (const answer of [await anonymous.get(at), await anonymous.post('/workspaces', { name: 'x' })])
      expect(statusAndCode(answer)).toEqual([401, 'UNAUTHENTICATED'])
    expect((await as('user').get(at)).body).toMatchObject({ name: 'Office', members: [{ user: users.user }, {}] })
  })

  test('invites of a workspace are shown to admins of the workspace and tenant only', async () => {
    const { as, at } = await createWorkspaceFixture()
    await as('user').post(`${at}/invites`, { email: 'eve@x.test' })
    for (const client of [as('user'), as('admin')])
      expect((await client.get(at)).body.invites).toMatchObject([{ email: 'eve@x.test' }])
    expect((await as('other').get(at)).body.invites).toEqual([])
  })

  test('e-mail addresses of members are shown to admins of the workspace and tenant only', async () => {
    const { as, at, id } = await createWorkspaceFixture()
    const addresses = (members: { email: string }[]) => members.map(({ email }) => email)
    for (const client of [as('user'), as('admin')])
      for (const members of [(await client.get(at)).body.members, (await client.get(`${at}/members`)).body])
        expect(addresses(members)).toEqual([`user@${id}.test`, `other@${id}.test`])
    for (const { status, body } of [
      await as('other').get(at),
      await as('other').get(`${at}/members`),
      await as('other').post(`${at}/activate`),
    ])
      expect([status, JSON.stringify(body)]).toEqual([200, expect.not.stringContaining('@')])
  })

  test('an admin of the tenant can read, change, activate and delete a workspace without having roles in it', async () => {
    const { as, at, workspace } = await createWorkspaceFixture()
    const admin = as('admin')
    expect((await admin.get(at)).body.isPrivilegedUser).toBe(false)
    expect((await admin.put(at, { name: 'Theirs' })).body.name).toBe('Theirs')
    expect((await admin.get('/workspaces')).body).toEqual([])
    expect((await admin.post(`${at}/activate`)).body).toMatchObject({ _id: workspace, roles: [] })
    expect((await admin.delete(at)).status).toBe(200)
  })

  test('a workspace gets 404 at another tenant, and users of another tenant cannot become members', async () => {
    const [fixture, otherTenant] = [await createWorkspaceFixture(), await createTestTenant()]
    for (const name of ['user', 'admin'] as const) {
      const client = otherTenant.as(name)
      expect((await client.get('/workspaces')).body).toEqual([])
      for (const answer of [
        await client.get(fixture.at),
        await client.put(fixture.at, { name: 'x' }),
        await client.delete(fixture.at),
        await client.post(`${fixture.at}/activate`),
        await client.get(`${fixture.at}/members`),
        await client.post(`${fixture.at}/members`, { userId: otherTenant.users.user, roles: [] }),
        await client.post(`${fixture.at}/invites`, { email: 'a@x.test' }),
      ])
        expect(statusAndCode(answer)).toEqual(WORKSPACE_NOT_FOUND)
    }
    expect((await otherTenant.as('admin').get('/workspaces/all')).body).toEqual([])
    // Users of another tenant cannot become members.
    const foreign = await fixture
      .as('user')
      .post(`${fixture.at}/members`, { userId: otherTenant.users.user, roles: [] })
    expect(statusAndCode(foreign)).toEqual([404, 'USER_NOT_FOUND'])
  })
})

test('GET /api/workspaces lists the workspaces of the caller, sorted and page by page', async () => {
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

test.each(['%00', '%zz', 'x', "'", 'x'.repeat(300), '../all', 'undefined'])(
  'a workspace ID %s gets 404 WORKSPACE_NOT_FOUND',
  async (id) => {
    const { as } = await createTestTenant()
    const path = `/workspaces/${encodeURIComponent(id)}`
    for (const client of [as('user'), as('admin')])
      for (const answer of [await client.get(path), await client.put(path, {}), await client.delete(path)])
        expect(statusAndCode(answer)).toEqual(WORKSPACE_NOT_FOUND)
  },
)

test('an API token with the scope workspaces:read can read workspaces and gets 403 for other requests', async () => {
  const home = await createWorkspaceFixture()
  const { token } = await issueApiToken(home.tenant, home.users.user, {
    nickname: 'reader',
    scopes: ['workspaces:read'],
  })
  const reader = home.anonymous.with({ 'x-api-key': token })
  expect((await reader.get(home.at)).status).toBe(200)
  for (const answer of [await reader.post(`${home.at}/activate`), await reader.put(home.at, { name: 'x' })])
    expect(statusAndCode(answer)).toEqual(FORBIDDEN)
  expect(statusAndCode(await reader.get('/me'))).toEqual(FORBIDDEN)
})
