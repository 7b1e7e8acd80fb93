import { describe, expect, test } from 'bun:test'
import { issueApiToken } from '../../src/accounts/api-tokens'
import { FORBIDDEN, USER_NOT_FOUND } from '../expectations'
import { apiClient, createTestTenant, fullAccessRules, statusAndCode } from '../test-tenant'
import { createWorkspaceFixture, setConfiguration } from '../workspaces/workspace-fixtures'
import { bearer, signInForCookie, signInForTokens } from './session-fixtures'
import { actAs, listEvents } from './users/user-fixtures'

const NOTES_PATH = '/blueprints/notes/entities'

/** Creates a workspace and a blueprint of notes that users own and members of a workspace can read. */
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

describe('impersonation by an admin', () => {
  test('an impersonating admin sees and may do exactly what the user may, and creates resources of the user', async () => {
    const home = await createNotesFixture()
    const admin = home.as('admin')
    const impersonating = actAs(admin, home.users.other)
    await home.as('user').post(NOTES_PATH, { text: 'not for others' })
    const mine = await home.as('other').post(NOTES_PATH, { text: 'mine' })

    const me = (await impersonating.get('/me')).body
    expect(me).toMatchObject({ _id: home.users.other, username: 'other', roles: ['user'], isPrivileged: false })
    expect(me).toEqual((await home.as('other').get('/me')).body)
    expect((await impersonating.get(NOTES_PATH)).body).toEqual([mine.body])
    const created = await impersonating.post(NOTES_PATH, { text: 'made', user: home.users.admin })
    expect([created.status, created.body.user]).toEqual([201, home.users.other])
    expect((await home.as('other').get(NOTES_PATH)).body).toHaveLength(2)
    // The admin may do no more than the user.
    for (const route of ['/users', '/roles', '/workspaces/all', '/events'])
      expect(statusAndCode(await impersonating.get(route))).toEqual(FORBIDDEN)
    expect(statusAndCode(await impersonating.post('/blueprints', { key: 'more', name: 'More', fields: [] }))).toEqual(
      FORBIDDEN,
    )
    expect((await impersonating.get(`/workspaces/${home.elsewhere}`)).status).toBe(404)
    // Without the header the admin acts as themselves.
    expect((await admin.get('/me')).body).toMatchObject({ username: 'admin', isPrivileged: true })
  })

  test('an impersonating admin acts in a workspace only if it is named, with the roles of the user there', async () => {
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
    // The session of the user is not affected.
    expect((await home.as('user').get('/me')).body.workspace).toBeNull()
    const member = actAs(admin, users.other, workspace)
    expect(statusAndCode(await member.put(home.at, { name: 'Mine' }))).toEqual(FORBIDDEN)

    for (const elsewhere of [home.elsewhere, 'nowhere', 'x'.repeat(5_000)])
      expect(statusAndCode(await actAs(admin, users.user, elsewhere).get('/me'))).toEqual([404, 'WORKSPACE_NOT_FOUND'])
    await setConfiguration(home.tenant, 'workspace-configuration', { isActive: false })
    expect(statusAndCode(await inside.get('/me'))).toEqual([403, 'WORKSPACES_INACTIVE'])
  })

  test('an admin who impersonates another admin has no roles in a workspace where that admin is not a member', async () => {
    const home = await createNotesFixture()
    await home.as('admin').put(`/users/${home.users.editor}`, { roles: ['admin'] })
    const impersonating = actAs(home.as('admin'), home.users.editor, home.workspace)
    expect((await impersonating.get('/me')).body).toMatchObject({ isPrivileged: true, workspace: { roles: [] } })
  })

  test('impersonation of an unknown user gets 404 USER_NOT_FOUND, and empty headers are ignored', async () => {
    const home = await createTestTenant()
    const admin = home.as('admin')
    for (const user of ['nobody', crypto.randomUUID(), 'undefined', 'x'.repeat(5_000)])
      expect(statusAndCode(await actAs(admin, user).get('/me'))).toEqual(USER_NOT_FOUND)
    expect(statusAndCode(await admin.with({ 'x-impersonate-workspace': 'x' }).get('/me'))).toEqual([
      400,
      'INVALID_INPUT',
    ])
    // Empty headers are ignored.
    const empty = { 'x-impersonate-user': '', 'x-impersonate-workspace': '' }
    for (const caller of ['admin', 'user'] as const)
      expect((await home.as(caller).with(empty).get('/me')).body.username).toBe(caller)
  })

  test('impersonation works for admins with any credential; other users get 403 and anonymous requests 401', async () => {
    const home = await createNotesFixture()
    const { users } = home
    const target = users.other
    const [cookie, pair] = [await signInForCookie(home, 'admin'), await signInForTokens(home, 'admin')]
    for (const headers of [cookie, bearer(pair.token)])
      expect((await actAs(home.anonymous.with(headers), target).get('/me')).body.username).toBe('other')
    for (const caller of ['user', 'editor', 'other'] as const)
      for (const route of ['/me', NOTES_PATH, '/users', '/blueprints'])
        for (const user of [target, users[caller], 'nobody'])
          expect(statusAndCode(await actAs(home.as(caller), user).get(route)), `${caller} ${route}`).toEqual(FORBIDDEN)
    expect(statusAndCode(await home.as('user').with({ 'x-impersonate-workspace': home.workspace }).get('/me'))).toEqual(
      FORBIDDEN,
    )
    for (const route of ['/me', NOTES_PATH]) expect((await actAs(home.anonymous, target).get(route)).status).toBe(401)
    // An admin of another tenant is not authenticated here, and users of this tenant are unknown there.
    const otherTenant = await createTestTenant()
    expect(
      (await actAs(apiClient(home.origin, { 'x-api-key': otherTenant.tokens.admin }), target).get('/me')).status,
    ).toBe(401)
    expect(statusAndCode(await actAs(otherTenant.as('admin'), target).get('/me'))).toEqual(USER_NOT_FOUND)
  })

  test('impersonation follows changes of roles, memberships and users at once', async () => {
    const home = await createNotesFixture()
    const admin = home.as('admin')
    const [impersonating, inside] = [actAs(admin, home.users.other), actAs(admin, home.users.other, home.workspace)]
    expect([(await impersonating.get('/users')).status, (await inside.get('/me')).status]).toEqual([403, 200])
    await admin.put(`/users/${home.users.other}`, { roles: ['admin'] })
    expect((await impersonating.get('/users')).status).toBe(200)
    await admin.put(`/users/${home.users.other}`, { roles: ['user'] })
    expect((await impersonating.get('/users')).status).toBe(403)
    await home.as('other').delete(`${home.at}/members/${home.users.other}`)
    expect(statusAndCode(await inside.get('/me'))).toEqual([404, 'WORKSPACE_NOT_FOUND'])
    await admin.delete(`/users/${home.users.other}`)
    expect(statusAndCode(await impersonating.get('/me'))).toEqual(USER_NOT_FOUND)
    await admin.put(`/users/${home.users.editor}`, { roles: ['admin'] })
    await home.as('editor').put(`/users/${home.users.admin}`, { roles: ['user'] })
    expect(statusAndCode(await actAs(admin, home.users.user).get('/me'))).toEqual(FORBIDDEN)
  })

  test('impersonation by an API token is limited to the scopes and the workspace of the token', async () => {
    const home = await createNotesFixture()
    const { tenant, origin, users, workspace } = home
    const createTokenClient = async (more: object) =>
      apiClient(origin, { 'x-api-key': (await issueApiToken(tenant, users.admin, { nickname: 'x', ...more })).token })
    const readOnly = actAs(await createTokenClient({ scopes: ['entities:read'] }), users.user)
    expect((await readOnly.get(NOTES_PATH)).status).toBe(200)
    expect(statusAndCode(await readOnly.post(NOTES_PATH, { text: 'x' }))).toEqual(FORBIDDEN)
    expect(statusAndCode(await readOnly.get('/me'))).toEqual(FORBIDDEN)
    // A token without the scope cannot find out whether a user exists.
    expect(
      statusAndCode(await actAs(await createTokenClient({ scopes: ['entities:read'] }), 'nobody').get('/me')),
    ).toEqual(FORBIDDEN)

    const bound = await createTokenClient({ workspace })
    expect((await actAs(bound, users.user).get('/me')).body.workspace._id).toBe(workspace)
    expect((await actAs(bound, users.user).get('/workspaces')).body).toHaveLength(1)
    expect(statusAndCode(await actAs(bound, users.editor).get('/me'))).toEqual([404, 'WORKSPACE_NOT_FOUND'])
    expect(statusAndCode(await actAs(bound, users.editor, home.elsewhere).get('/me'))).toEqual([
      404,
      'WORKSPACE_NOT_FOUND',
    ])
  })

  test('an impersonating admin gets 403 FORBIDDEN for sessions, API tokens and sign-in credentials of the user', async () => {
    const home = await createNotesFixture()
    const impersonating = actAs(home.as('admin'), home.users.user)
    for (const answer of [
      await impersonating.get('/me/api-tokens'),
      await impersonating.post('/me/api-tokens', { nickname: 'x' }),
      await impersonating.get('/me/sessions'),
      await impersonating.post('/cookie/refresh'),
      await impersonating.post('/logout'),
      await impersonating.post(`${home.at}/activate`),
      await impersonating.post('/me', { password: 'battery-staple', currentPassword: 'x' }),
      await impersonating.post('/me', { email: 'mine@x.test' }),
      await impersonating.post('/me', { email: '' }),
      await impersonating.post('/me', { username: 'mine' }),
    ])
      expect(statusAndCode(answer)).toEqual(FORBIDDEN)
    // Routes that ignore credentials ignore impersonation, too.
    const { body } = await impersonating.post('/signup', { username: 'new', password: 'correct-horse' })
    expect(body.payload.user.username).toBe('new')
    expect(await listEvents(home, 'kind=impersonation')).toEqual([])
  })
})

describe('records of impersonation', () => {
  test('each write of an impersonating admin is recorded in an event with the admin and the user, in order', async () => {
    const home = await createNotesFixture()
    const { users, workspace } = home
    const impersonating = actAs(home.as('admin'), users.other)
    await impersonating.get(NOTES_PATH)
    await impersonating.post('/me', { firstName: 'Jane' }, { 'x-request-id': 'ticket-17' })
    const created = await actAs(home.as('admin'), users.other, workspace).post(NOTES_PATH, { text: 'x' })
    await impersonating.delete(`${NOTES_PATH}/${created.body._id}`)
    const impersonationEvent = (method: string, route: string, where: string | null = null) => ({
      ...{ source: 'accounts', kind: 'impersonation', eventName: 'impersonation', user: users.admin, workspace: where },
      metadata: { impersonator: users.admin, user: users.other, method, path: `/api${route}` },
    })
    const events = await listEvents(home, 'kind=impersonation')
    expect(events).toMatchObject([
      impersonationEvent('POST', '/me'),
      impersonationEvent('POST', NOTES_PATH, workspace),
      impersonationEvent('DELETE', `${NOTES_PATH}/${created.body._id}`),
    ])
    expect(events[0]!.metadata.requestId).toBe('ticket-17')
    // Other events of the request name the user.
    expect((await listEvents(home, 'eventName=user-updated'))[0]!.user).toBe(users.other)
  })

  test('rejected writes of an impersonating admin are not recorded', async () => {
    const home = await createNotesFixture([{ key: 'text', type: 'string', unique: true }])
    const impersonating = actAs(home.as('admin'), home.users.user)
    const refused = [
      await impersonating.post(NOTES_PATH, { nothing: 'x' }),
      await impersonating.put(`${NOTES_PATH}/nobody`, { text: 'x' }),
      await impersonating.post('/workspaces', { name: '' }),
      await impersonating.post('/users', { username: 'x' }),
    ]
    for (const { status } of refused) expect(status).toBeGreaterThanOrEqual(400)
    await home.as('other').post(NOTES_PATH, { text: 'taken' })
    expect((await impersonating.post(NOTES_PATH, { text: 'taken' })).status).toBe(409)
    expect(await listEvents(home, 'kind=impersonation')).toEqual([])
  })

  test('a request that needs several transactions is recorded once', async () => {
    const home = await createNotesFixture()
    const admin = home.as('admin')
    for (let n = 0; n < 3; n++) {
      const operations = Array.from({ length: 200 }, () => ({ op: 'create', data: { text: 'x' } }))
      expect((await home.as('user').post(`${NOTES_PATH}/batch`, { operations })).status).toBe(200)
    }
    const deletion = await actAs(admin, home.users.user).delete(`${NOTES_PATH}/all?confirm=notes`)
    expect(deletion.body.deletedCount).toBe(600)
    expect(await listEvents(home, 'kind=impersonation')).toHaveLength(1)
  })

  test('an Idempotency-Key of an impersonating admin is scoped to user and workspace and is replayed only to an admin', async () => {
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
    // A former admin gets no stored response.
    await admin.put(`/users/${home.users.editor}`, { roles: ['admin'] })
    await home.as('editor').put(`/users/${home.users.admin}`, { roles: ['user'] })
    expect(statusAndCode(await send(actAs(admin, home.users.other)))).toEqual(FORBIDDEN)
  })

  test('an impersonating admin gets 403 CROSS_SITE for a write from another site', async () => {
    const home = await createNotesFixture()
    const cookie = await signInForCookie(home, 'admin')
    const impersonating = actAs(home.anonymous.with({ ...cookie, origin: 'https://evil.test' }), home.users.user)
    expect(statusAndCode(await impersonating.post(NOTES_PATH, { text: 'x' }))).toEqual([403, 'CROSS_SITE'])
  })
})
