import { describe, expect, test } from 'bun:test'
import { issueApiToken } from '../../src/accounts/api-tokens'
import { apiClient, createTestTenant, fullAccessRules, statusAndCode } from '../test-tenant'
import { createWorkspaceFixture, setConfiguration } from '../workspaces/workspace-fixtures'
import { bearer, signInForCookie, signInForTokens } from './session-fixtures'
import { actAs, FORBIDDEN, listEvents, USER_NOT_FOUND } from './users/user-fixtures'

const NOTES_PATH = '/blueprints/notes/entities'

/** An office with a blueprint in which everybody has their own notes, and workspaces share some. */
async function createNotesFixture(fields: object[] = [{ key: 'text', type: 'string' }]) {
  const home = await createWorkspaceFixture()
  const permissions = [
    ...fullAccessRules('user', 'user'),
    { operation: 'read', scope: 'workspace', workspaceRoleBased: ['member', 'admin'] },
  ]
  const created = await home.as('admin').post('/blueprints', { key: 'notes', name: 'Notes', fields, permissions })
  expect(created.status).toBe(201)
  return home
}

describe('an admin who acts as somebody else', () => {
  test('is them: sees what they see, and makes what is theirs', async () => {
    const home = await createNotesFixture()
    const admin = home.as('admin')
    const self = actAs(admin, home.users.other)
    await home.as('user').post(NOTES_PATH, { text: 'not for others' })
    const mine = await home.as('other').post(NOTES_PATH, { text: 'mine' })

    const me = (await self.get('/me')).body
    expect(me).toMatchObject({ _id: home.users.other, username: 'other', roles: ['user'], isPrivileged: false })
    expect(me).toEqual((await home.as('other').get('/me')).body)
    expect((await self.get(NOTES_PATH)).body).toEqual([mine.body])
    const made = await self.post(NOTES_PATH, { text: 'made', user: home.users.admin })
    expect([made.status, made.body.user]).toEqual([201, home.users.other])
    expect((await home.as('other').get(NOTES_PATH)).body).toHaveLength(2)
    // And never more than they may.
    for (const route of ['/users', '/roles', '/workspaces/all', '/events'])
      expect(statusAndCode(await self.get(route))).toEqual(FORBIDDEN)
    expect(statusAndCode(await self.post('/blueprints', { key: 'more', name: 'More', fields: [] }))).toEqual(FORBIDDEN)
    expect((await self.get(`/workspaces/${home.elsewhere}`)).status).toBe(404)
    // Without the header they are themselves again.
    expect((await admin.get('/me')).body).toMatchObject({ username: 'admin', isPrivileged: true })
  })

  test('is in no workspace but the one that they name, with the roles that the user has there', async () => {
    const home = await createNotesFixture()
    const [admin, { users, workspace }] = [home.as('admin'), home]
    await home.as('other').post(`${home.at}/activate`)
    await home.as('other').post(NOTES_PATH, { text: 'in the office' })
    expect((await actAs(admin, users.user).get('/me')).body.workspace).toBeNull()
    const inside = actAs(admin, users.user, workspace)
    expect((await inside.get('/me')).body.workspace).toEqual({
      _id: workspace,
      name: 'Office',
      roles: ['admin'],
      labels: [],
    })
    expect((await inside.get(NOTES_PATH)).body.map(({ text }: { text: string }) => text)).toEqual(['in the office'])
    expect((await inside.post(NOTES_PATH, { text: 'x' })).body.workspace).toBe(workspace)
    expect((await actAs(admin, users.user).get(NOTES_PATH)).body).toHaveLength(1)
    // The user's own session stays where it was.
    expect((await home.as('user').get('/me')).body.workspace).toBeNull()
    const member = actAs(admin, users.other, workspace)
    expect(statusAndCode(await member.put(home.at, { name: 'Mine' }))).toEqual(FORBIDDEN)

    for (const elsewhere of [home.elsewhere, 'nowhere', 'x'.repeat(5_000)])
      expect(statusAndCode(await actAs(admin, users.user, elsewhere).get('/me'))).toEqual([404, 'WORKSPACE_NOT_FOUND'])
    await setConfiguration(home.tenant, 'workspace-configuration', { isActive: false })
    expect(statusAndCode(await inside.get('/me'))).toEqual([403, 'WORKSPACES_INACTIVE'])
  })

  test('as another admin has no roles in a workspace that they are no member of', async () => {
    const home = await createNotesFixture()
    await home.as('admin').put(`/users/${home.users.editor}`, { roles: ['admin'] })
    const self = actAs(home.as('admin'), home.users.editor, home.workspace)
    expect((await self.get('/me')).body).toMatchObject({ isPrivileged: true, workspace: { roles: [] } })
  })

  test('needs somebody to act as', async () => {
    const home = await createTestTenant()
    const admin = home.as('admin')
    for (const user of ['nobody', crypto.randomUUID(), 'undefined', 'x'.repeat(5_000)])
      expect(statusAndCode(await actAs(admin, user).get('/me'))).toEqual(USER_NOT_FOUND)
    expect(statusAndCode(await admin.with({ 'x-impersonate-workspace': 'x' }).get('/me'))).toEqual([
      400,
      'INVALID_INPUT',
    ])
    // What is empty says nothing.
    const empty = { 'x-impersonate-user': '', 'x-impersonate-workspace': '' }
    for (const who of ['admin', 'user'] as const)
      expect((await home.as(who).with(empty).get('/me')).body.username).toBe(who)
  })

  test('is an admin, by whatever they come, and nobody else', async () => {
    const home = await createNotesFixture()
    const { users } = home
    const target = users.other
    const [cookie, pair] = [await signInForCookie(home, 'admin'), await signInForTokens(home, 'admin')]
    for (const headers of [cookie, bearer(pair.token)])
      expect((await actAs(home.stranger.with(headers), target).get('/me')).body.username).toBe('other')
    for (const who of ['user', 'editor', 'other'] as const)
      for (const route of ['/me', NOTES_PATH, '/users', '/blueprints'])
        for (const user of [target, users[who], 'nobody'])
          expect(statusAndCode(await actAs(home.as(who), user).get(route)), `${who} ${route}`).toEqual(FORBIDDEN)
    expect(statusAndCode(await home.as('user').with({ 'x-impersonate-workspace': home.workspace }).get('/me'))).toEqual(
      FORBIDDEN,
    )
    for (const route of ['/me', NOTES_PATH]) expect((await actAs(home.stranger, target).get(route)).status).toBe(401)
    // Somebody else's admin is a stranger, and their users are unknown.
    const other = await createTestTenant()
    expect((await actAs(apiClient(home.origin, { 'x-api-key': other.tokens.admin }), target).get('/me')).status).toBe(
      401,
    )
    expect(statusAndCode(await actAs(other.as('admin'), target).get('/me'))).toEqual(USER_NOT_FOUND)
  })

  test('stops being so at once: when demoted, when the user has other roles, leaves or is removed', async () => {
    const home = await createNotesFixture()
    const admin = home.as('admin')
    const [self, inside] = [actAs(admin, home.users.other), actAs(admin, home.users.other, home.workspace)]
    expect([(await self.get('/users')).status, (await inside.get('/me')).status]).toEqual([403, 200])
    await admin.put(`/users/${home.users.other}`, { roles: ['admin'] })
    expect((await self.get('/users')).status).toBe(200)
    await admin.put(`/users/${home.users.other}`, { roles: ['user'] })
    expect((await self.get('/users')).status).toBe(403)
    await home.as('other').delete(`${home.at}/members/${home.users.other}`)
    expect(statusAndCode(await inside.get('/me'))).toEqual([404, 'WORKSPACE_NOT_FOUND'])
    await admin.delete(`/users/${home.users.other}`)
    expect(statusAndCode(await self.get('/me'))).toEqual(USER_NOT_FOUND)
    await admin.put(`/users/${home.users.editor}`, { roles: ['admin'] })
    await home.as('editor').put(`/users/${home.users.admin}`, { roles: ['user'] })
    expect(statusAndCode(await actAs(admin, home.users.user).get('/me'))).toEqual(FORBIDDEN)
  })

  test('by an API token does no more than it is good for', async () => {
    const home = await createNotesFixture()
    const { tenant, origin, users, workspace } = home
    const token = async (more: object) =>
      apiClient(origin, { 'x-api-key': (await issueApiToken(tenant, users.admin, { nickname: 'x', ...more })).token })
    const reads = actAs(await token({ scopes: ['entities:read'] }), users.user)
    expect((await reads.get(NOTES_PATH)).status).toBe(200)
    expect(statusAndCode(await reads.post(NOTES_PATH, { text: 'x' }))).toEqual(FORBIDDEN)
    expect(statusAndCode(await reads.get('/me'))).toEqual(FORBIDDEN)
    // What it is not good for it can't find out either.
    expect(statusAndCode(await actAs(await token({ scopes: ['entities:read'] }), 'nobody').get('/me'))).toEqual(
      FORBIDDEN,
    )

    const bound = await token({ workspace })
    expect((await actAs(bound, users.user).get('/me')).body.workspace._id).toBe(workspace)
    expect((await actAs(bound, users.user).get('/workspaces')).body).toHaveLength(1)
    expect(statusAndCode(await actAs(bound, users.editor).get('/me'))).toEqual([404, 'WORKSPACE_NOT_FOUND'])
    expect(statusAndCode(await actAs(bound, users.editor, home.elsewhere).get('/me'))).toEqual([
      404,
      'WORKSPACE_NOT_FOUND',
    ])
  })

  test('gets nothing that would outlast the request', async () => {
    const home = await createNotesFixture()
    const self = actAs(home.as('admin'), home.users.user)
    for (const answer of [
      await self.get('/me/api-tokens'),
      await self.post('/me/api-tokens', { nickname: 'x' }),
      await self.get('/me/sessions'),
      await self.post('/cookie/refresh'),
      await self.post('/logout'),
      await self.post(`${home.at}/activate`),
      await self.post('/me', { password: 'battery-staple', currentPassword: 'x' }),
      await self.post('/me', { email: 'mine@x.test' }),
      await self.post('/me', { email: '' }),
      await self.post('/me', { username: 'mine' }),
    ])
      expect(statusAndCode(answer)).toEqual(FORBIDDEN)
    // Not even those who do not look at credentials are misled.
    const { body } = await self.post('/signup', { username: 'new', password: 'correct-horse' })
    expect(body.payload.user.username).toBe('new')
    expect(await listEvents(home, 'kind=impersonation')).toEqual([])
  })
})

describe('what is written by an admin who acts as somebody else', () => {
  test('is recorded with both, in the order in which it happened', async () => {
    const home = await createNotesFixture()
    const { users, workspace } = home
    const self = actAs(home.as('admin'), users.other)
    await self.get(NOTES_PATH)
    await self.post('/me', { firstName: 'Jane' }, { 'x-request-id': 'ticket-17' })
    const made = await actAs(home.as('admin'), users.other, workspace).post(NOTES_PATH, { text: 'x' })
    await self.delete(`${NOTES_PATH}/${made.body._id}`)
    const happened = (method: string, route: string, where: string | null = null) => ({
      ...{ source: 'accounts', kind: 'impersonation', eventName: 'impersonation', user: users.admin, workspace: where },
      metadata: { impersonator: users.admin, user: users.other, method, path: `/api${route}` },
    })
    const told = await listEvents(home, 'kind=impersonation')
    expect(told).toMatchObject([
      happened('POST', '/me'),
      happened('POST', NOTES_PATH, workspace),
      happened('DELETE', `${NOTES_PATH}/${made.body._id}`),
    ])
    expect(told[0]!.metadata.requestId).toBe('ticket-17')
    // What the service itself tells of it names the user.
    expect((await listEvents(home, 'eventName=user-updated'))[0]!.user).toBe(users.other)
  })

  test('is recorded in the same transaction: what was refused is not', async () => {
    const home = await createNotesFixture([{ key: 'text', type: 'string', unique: true }])
    const self = actAs(home.as('admin'), home.users.user)
    const refused = [
      await self.post(NOTES_PATH, { nothing: 'x' }),
      await self.put(`${NOTES_PATH}/nobody`, { text: 'x' }),
      await self.post('/workspaces', { name: '' }),
      await self.post('/users', { username: 'x' }),
    ]
    for (const { status } of refused) expect(status).toBeGreaterThanOrEqual(400)
    await home.as('other').post(NOTES_PATH, { text: 'taken' })
    expect((await self.post(NOTES_PATH, { text: 'taken' })).status).toBe(409)
    expect(await listEvents(home, 'kind=impersonation')).toEqual([])
  })

  test('in several transactions of one request is recorded once', async () => {
    const home = await createNotesFixture()
    const admin = home.as('admin')
    for (let n = 0; n < 3; n++) {
      const operations = Array.from({ length: 200 }, () => ({ op: 'create', data: { text: 'x' } }))
      expect((await home.as('user').post(`${NOTES_PATH}/batch`, { operations })).status).toBe(200)
    }
    const gone = await actAs(admin, home.users.user).delete(`${NOTES_PATH}/all?confirm=notes`)
    expect(gone.body.deletedCount).toBe(600)
    expect(await listEvents(home, 'kind=impersonation')).toHaveLength(1)
  })

  test('with an Idempotency-Key is nobody else’s', async () => {
    const home = await createNotesFixture()
    const admin = home.as('admin')
    const key = { 'idempotency-key': 'k' }
    const send = (client: typeof admin) => client.post(NOTES_PATH, { text: 'x' }, key)
    const answers = [
      await send(actAs(admin, home.users.user)),
      await send(actAs(admin, home.users.other)),
      await send(actAs(admin, home.users.user, home.workspace)),
      await send(admin),
    ]
    expect(answers.map(({ status, body }) => [status, body.user, body.workspace])).toEqual([
      [201, home.users.user, null],
      [201, home.users.other, null],
      [201, home.users.user, home.workspace],
      [201, home.users.admin, null],
    ])
    const again = await send(actAs(admin, home.users.other))
    expect([again.headers.get('idempotency-replayed'), again.body]).toEqual(['true', answers[1]!.body])
    expect(await listEvents(home, 'kind=impersonation')).toHaveLength(3)
    // Who is no admin any more gets no answer of that time.
    await admin.put(`/users/${home.users.editor}`, { roles: ['admin'] })
    await home.as('editor').put(`/users/${home.users.admin}`, { roles: ['user'] })
    expect(statusAndCode(await send(actAs(admin, home.users.other)))).toEqual(FORBIDDEN)
  })

  test('comes from no other site', async () => {
    const home = await createNotesFixture()
    const cookie = await signInForCookie(home, 'admin')
    const self = actAs(home.stranger.with({ ...cookie, origin: 'https://evil.test' }), home.users.user)
    expect(statusAndCode(await self.post(NOTES_PATH, { text: 'x' }))).toEqual([403, 'CROSS_SITE'])
  })
})
