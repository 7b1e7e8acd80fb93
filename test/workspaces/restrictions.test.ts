import { describe, expect, test } from 'bun:test'
import { apiCaller, createTempFolder, createTenantByCli, runAtoll, signIn, startAtoll } from '../fakes/cli'
import { createTestTenant, statusAndCode } from '../test-tenant'
import { createWorkspace, createWorkspaceFixture } from './workspace-fixtures'

const RESTRICTED_LABEL = [403, 'RESTRICTED_LABEL']
const RESTRICTED_ROLE = [403, 'RESTRICTED_ROLE']

type TestTenant = Awaited<ReturnType<typeof createTestTenant>>

async function setRestrictions(own: TestTenant, metadata: object) {
  const answer = await own.as('admin').put('/configurations/workspace-configuration', { metadata })
  expect([answer.status, answer.body.message]).toEqual([200, undefined])
}

const toAddress = (own: TestTenant, name: string) => `${name}@${own.id}.test`

/** Creates a blueprint with these permissions and limitations, and one entity of the admin. */
async function createNotesBlueprint(own: TestTenant, permissions: object[], limitations: object[] = []) {
  const blueprint = { key: 'notes', name: 'Notes', fields: [{ key: 'text', type: 'string' }], permissions, limitations }
  const answer = await own.as('admin').post('/blueprints', blueprint)
  expect([answer.status, answer.body.message]).toEqual([201, undefined])
  expect((await own.as('admin').post('/blueprints/notes/entities', { text: 'ours' })).status).toBe(201)
  return answer.body
}

describe('restricted labels', () => {
  test('a restricted label can be set by admins of the tenant only; others get 403 RESTRICTED_LABEL', async () => {
    const own = await createWorkspaceFixture()
    await setRestrictions(own, { restrictedLabels: ['premium'] })
    const user = own.as('user')
    expect(statusAndCode(await user.post('/workspaces', { name: 'Mine', labels: ['premium'] }))).toEqual(
      RESTRICTED_LABEL,
    )
    expect(statusAndCode(await user.put(own.at, { labels: ['premium'] }))).toEqual(RESTRICTED_LABEL)
    expect((await user.put(own.at, { labels: ['basic'] })).body.labels).toEqual(['basic'])
    expect((await own.as('admin').put(own.at, { labels: ['premium'] })).body.labels).toEqual(['premium'])
    expect((await createWorkspace(own.as('admin'), { labels: ['premium'] })).labels).toEqual(['premium'])
  })

  test('a restricted label can be sent back but not removed by an admin of the workspace', async () => {
    const own = await createWorkspaceFixture()
    await own.as('admin').put(own.at, { labels: ['trial', 'blue'] })
    await setRestrictions(own, { restrictedLabels: ['trial'] })
    const user = own.as('user')
    expect((await user.put(own.at, { name: 'New', labels: ['trial'] })).status).toBe(200)
    expect(statusAndCode(await user.put(own.at, { labels: [] }))).toEqual(RESTRICTED_LABEL)
    expect((await user.get(own.at)).body.labels).toEqual(['trial'])
  })

  test('a restricted label in a permission protects entities from users who create workspaces of their own', async () => {
    const own = await createTestTenant()
    const rule = { operation: 'read', scope: 'tenant', roleBased: ['user'], workspaceLabelsBased: ['premium'] }
    await createNotesBlueprint(own, [rule])
    await setRestrictions(own, { restrictedLabels: ['premium'] })
    const user = own.as('user')
    expect((await user.post('/workspaces', { name: 'Mine', labels: ['premium'] })).status).toBe(403)
    const { _id } = await createWorkspace(user)
    await user.post(`/workspaces/${_id}/activate`)
    expect((await user.get('/blueprints/notes/entities')).status).toBe(403)
    await own.as('admin').put(`/workspaces/${_id}`, { labels: ['premium'] })
    expect((await user.get('/blueprints/notes/entities')).body).toHaveLength(1)
  })
})

describe('restricted roles', () => {
  test('a restricted role can be given to members by admins of the tenant only; others get 403 RESTRICTED_ROLE', async () => {
    const own = await createWorkspaceFixture()
    await setRestrictions(own, { restrictedRoles: ['auditor'] })
    const [user, admin, { users }] = [own.as('user'), own.as('admin'), own]
    expect(statusAndCode(await user.post(`${own.at}/members`, { userId: users.editor, roles: ['auditor'] }))).toEqual(
      RESTRICTED_ROLE,
    )
    for (const name of ['user', 'other'] as const)
      expect(
        statusAndCode(await user.put(`${own.at}/members/${users[name]}`, { roles: ['admin', 'auditor'] })),
      ).toEqual(RESTRICTED_ROLE)
    expect((await admin.put(`${own.at}/members/${users.other}`, { roles: ['auditor'] })).status).toBe(200)
    expect((await user.put(`${own.at}/members/${users.other}`, { roles: ['auditor', 'lead'] })).status).toBe(200)
    expect((await user.put(`${own.at}/members/${users.other}`, { roles: ['lead'] })).status).toBe(200)
    expect(statusAndCode(await user.put(`${own.at}/members/${users.other}`, { roles: ['auditor'] }))).toEqual(
      RESTRICTED_ROLE,
    )
    expect((await admin.post(`${own.at}/members`, { userId: users.editor, roles: ['auditor'] })).status).toBe(201)
  })

  test('a restricted role in an invite of an admin of the workspace gets 403 RESTRICTED_ROLE', async () => {
    const own = await createWorkspaceFixture()
    await setRestrictions(own, { restrictedRoles: ['auditor'] })
    const invite = { email: toAddress(own, 'editor'), roles: ['auditor'] }
    const user = own.as('user')
    expect(statusAndCode(await user.post(`${own.at}/invites`, invite))).toEqual(RESTRICTED_ROLE)
    expect(statusAndCode(await user.put(own.at, { invites: [invite] }))).toEqual(RESTRICTED_ROLE)
    expect((await user.put(own.at, { invites: [{ ...invite, roles: ['lead'] }] })).status).toBe(200)
    expect(statusAndCode(await user.put(own.at, { invites: [invite] }))).toEqual(RESTRICTED_ROLE)
    expect((await user.get(own.at)).body.invites).toMatchObject([{ roles: ['lead'] }])
  })

  test('a restricted role in an invite of an admin of the tenant is given, even after others have saved the workspace', async () => {
    const own = await createWorkspaceFixture()
    await setRestrictions(own, { restrictedRoles: ['auditor'] })
    const invite = { email: toAddress(own, 'editor'), roles: ['auditor'] }
    expect((await own.as('admin').post(`${own.at}/invites`, invite)).status).toBe(201)
    expect((await own.as('user').put(own.at, { name: 'New', invites: [invite] })).status).toBe(200)
    const reply = { workspace: own.workspace, kind: 'accept' }
    expect((await own.as('editor').post('/invites', reply)).status).toBe(200)
    expect((await own.as('editor').post(`${own.at}/activate`)).body.roles).toEqual(['auditor'])
  })

  test('an older invite with a role that has become restricted gets 403 RESTRICTED_ROLE and can be declined', async () => {
    const own = await createWorkspaceFixture()
    const invite = { email: toAddress(own, 'editor'), roles: ['auditor'] }
    await own.as('user').post(`${own.at}/invites`, invite)
    await setRestrictions(own, { restrictedRoles: ['auditor'] })
    const reply = (kind: string) => own.as('editor').post('/invites', { workspace: own.workspace, kind })
    expect(statusAndCode(await reply('accept'))).toEqual(RESTRICTED_ROLE)
    expect((await own.as('editor').get('/invites')).body).toHaveLength(1)
    expect((await reply('decline')).status).toBe(200)
  })

  test('an invite of an admin of the tenant does not cover a restricted role that others add to it', async () => {
    const own = await createWorkspaceFixture()
    const invite = { email: toAddress(own, 'editor'), roles: ['lead'] }
    await own.as('admin').post(`${own.at}/invites`, invite)
    await own.as('user').put(own.at, { invites: [{ ...invite, roles: ['lead', 'auditor'] }] })
    await setRestrictions(own, { restrictedRoles: ['auditor', 'lead'] })
    const reply = { workspace: own.workspace, kind: 'accept' }
    expect(statusAndCode(await own.as('editor').post('/invites', reply))).toEqual(RESTRICTED_ROLE)
    await own.as('user').put(own.at, { invites: [invite] })
    expect((await own.as('editor').post('/invites', reply)).status).toBe(200)
  })

  test('the restricted role admin limits the creation of workspaces to admins of the tenant', async () => {
    const own = await createTestTenant()
    await setRestrictions(own, { restrictedRoles: ['admin'] })
    expect(statusAndCode(await own.as('user').post('/workspaces', { name: 'Mine' }))).toEqual(RESTRICTED_ROLE)
    await createWorkspace(own.as('admin'))
  })
})

describe('the setting restricted: "named"', () => {
  const rule = { operation: 'update', scope: 'tenant', workspaceRoleBased: ['auditor', 'admin', '*'] }
  const limitation = { scope: 'workspace', workspaceLabels: ['trial'], value: 1 }

  test('the setting restricted: "named" restricts labels and roles in permissions, limitations and integrations', async () => {
    const own = await createWorkspaceFixture()
    await setRestrictions(own, { restricted: 'named' })
    const user = own.as('user')
    expect((await user.put(own.at, { labels: ['trial', 'premium'] })).status).toBe(200)
    await user.put(own.at, { labels: [] })
    const labelled = { operation: 'read', scope: 'tenant', roleBased: ['user'], workspaceLabelsBased: ['premium'] }
    await createNotesBlueprint(own, [rule, labelled], [limitation])
    for (const label of ['trial', 'premium'])
      expect(statusAndCode(await user.put(own.at, { labels: [label] }))).toEqual(RESTRICTED_LABEL)
    const setRole = (role: string) => user.put(`${own.at}/members/${own.users.other}`, { roles: [role] })
    expect(statusAndCode(await setRole('auditor'))).toEqual(RESTRICTED_ROLE)
    expect((await setRole('runner')).status).toBe(200)
    await setRole('member')
    const integration = {
      ...{ workspaceRoles: ['runner'], trigger: { kind: 'webhook' } },
      target: { kind: 'email', to: 'a@b.test', subject: 'x', text: 'x' },
    }
    const created = await own.as('admin').post('/integrations', integration)
    expect([created.status, created.body.message]).toEqual([201, undefined])
    expect(statusAndCode(await setRole('runner'))).toEqual(RESTRICTED_ROLE)
    expect((await setRole('admin')).status).toBe(200)
    expect((await user.put(own.at, { labels: ['other'] })).status).toBe(200)
    await createWorkspace(user)
  })

  test('the setting restricted: "named" of one tenant does not affect another tenant with the same rules', async () => {
    const [restricted, unrestricted] = [await createWorkspaceFixture(), await createWorkspaceFixture()]
    await setRestrictions(restricted, { restricted: 'named' })
    for (const own of [restricted, unrestricted]) await createNotesBlueprint(own, [], [limitation])
    const statusOf = async (own: typeof restricted) => (await own.as('user').put(own.at, { labels: ['trial'] })).status
    expect([await statusOf(restricted), await statusOf(unrestricted)]).toEqual([403, 200])
  })
})

describe('warnings of a blueprint', () => {
  const permissions = [
    { operation: 'read', scope: 'workspace', workspaceRoleBased: ['admin', 'member'] },
    { operation: 'read', scope: 'tenant', workspaceRoleBased: ['auditor', '*'] },
    { operation: 'read', scope: 'workspace', workspaceRoleBased: ['lead'] },
    { operation: 'read', scope: 'user', roleBased: ['user'], workspaceLabelsBased: ['premium'] },
  ]
  const limitations = [{ scope: 'workspace', workspaceLabels: ['trial'], value: 1 }]
  const WARNINGS = [
    ['/permissions/1/workspaceRoleBased', 'WORKSPACE_ROLE_REACHES_TENANT'],
    ['/permissions/1/workspaceRoleBased', 'WORKSPACE_ROLE_REACHES_TENANT'],
    ['/permissions/2/workspaceRoleBased', 'UNRESTRICTED_ROLE'],
    ['/permissions/3/workspaceLabelsBased', 'UNRESTRICTED_LABEL'],
    ['/limitations/0/workspaceLabels', 'UNRESTRICTED_LABEL'],
  ]
  type Warned = { path: string; code: string }
  const placesOf = ({ warnings }: { warnings: Warned[] }) => warnings.map(({ path, code }) => [path, code])

  test('a blueprint warns its editors of labels and roles that admins of workspaces can give', async () => {
    const own = await createTestTenant()
    expect(placesOf(await createNotesBlueprint(own, permissions, limitations))).toEqual(WARNINGS)
    for (const caller of ['admin', 'editor'] as const) {
      expect(placesOf((await own.as(caller).get('/blueprints/notes')).body)).toEqual(WARNINGS)
      expect(placesOf((await own.as(caller).get('/blueprints')).body[0])).toEqual(WARNINGS)
    }
    expect(placesOf((await own.as('admin').put('/blueprints/notes', { name: 'N' })).body)).toEqual(WARNINGS)
    const { _id } = await createWorkspace(own.as('user'))
    await own.as('user').post(`/workspaces/${_id}/activate`)
    expect((await own.as('user').get('/blueprints/notes')).body.warnings).toBeUndefined()
  })

  test('a blueprint no longer warns of labels and roles once they are restricted', async () => {
    const own = await createTestTenant()
    await createNotesBlueprint(own, permissions, limitations)
    const readWarnings = async () => placesOf((await own.as('editor').get('/blueprints/notes')).body)
    await setRestrictions(own, { restrictedLabels: ['premium'], restrictedRoles: ['auditor', 'lead'] })
    expect(await readWarnings()).toEqual([WARNINGS[0]!, WARNINGS[4]!])
    await setRestrictions(own, { restricted: 'named' })
    expect(await readWarnings()).toEqual([WARNINGS[0]!])
  })

  test('a blueprint with permissionScope tenant warns of workspace roles in permissions without a scope', async () => {
    const own = await createTestTenant()
    const rule = { operation: 'read', workspaceRoleBased: ['member'] }
    const fields = [{ key: 'text', type: 'string' }]
    const blueprint = { key: 'notes', name: 'Notes', fields, permissions: [rule], permissionScope: 'tenant' }
    expect(placesOf((await own.as('admin').post('/blueprints', blueprint)).body)).toEqual([
      ['/permissions/0/workspaceRoleBased', 'WORKSPACE_ROLE_REACHES_TENANT'],
    ])
  })
})

test('the command doctor warns of unrestricted roles and exits with 0', async () => {
  const at = { at: createTempFolder() }
  await createTenantByCli(at, 'acme')
  {
    await using server = await startAtoll(at)
    const call = apiCaller(server.url, await signIn(server.url, 'acme'))
    const rule = { operation: 'read', scope: 'tenant', workspaceRoleBased: ['auditor'] }
    const blueprint = { key: 'notes', name: 'Notes', fields: [{ key: 'text', type: 'string' }], permissions: [rule] }
    expect((await call('POST', '/api/blueprints', blueprint)).status).toBe(201)
    const target = { kind: 'email', to: 'a@b.test', subject: 'x', text: 'x' }
    const integration = { trigger: { kind: 'webhook' }, target, workspaceRoles: ['runner'] }
    expect((await call('POST', '/api/integrations', integration)).status).toBe(201)
  }
  const { code, json } = await runAtoll('doctor --json', at)
  expect([code, json.warnings]).toMatchObject([
    0,
    [
      { tenant: 'acme', path: '/blueprints/notes/permissions/0/workspaceRoleBased' },
      {
        tenant: 'acme',
        path: expect.stringMatching(/^\/integrations\/.+\/workspaceRoles$/),
        code: 'UNRESTRICTED_ROLE',
      },
    ],
  ])
  expect((await runAtoll('doctor', at)).out).toContain('WARNING tenant acme /blueprints/notes/permissions/0')
}, 60_000)
