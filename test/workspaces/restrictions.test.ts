import { describe, expect, test } from 'bun:test'
import { apiCaller, createTempFolder, createTenantByCli, runAtoll, signIn, startAtoll } from '../fakes/cli'
import { createTestTenant, statusAndCode } from '../test-tenant'
import { createWorkspace, createWorkspaceFixture } from './workspace-fixtures'

const RESTRICTED_LABEL = [403, 'RESTRICTED_LABEL']
const RESTRICTED_ROLE = [403, 'RESTRICTED_ROLE']

type House = Awaited<ReturnType<typeof createTestTenant>>

async function setRestrictions(own: House, metadata: object) {
  const answer = await own.as('admin').put('/configurations/workspace-configuration', { metadata })
  expect([answer.status, answer.body.message]).toEqual([200, undefined])
}

const toAddress = (own: House, name: string) => `${name}@${own.id}.test`

/** A blueprint with these rules and limitations, and an entity of the admin's in it. */
async function createNotesBlueprint(own: House, permissions: object[], limitations: object[] = []) {
  const blueprint = { key: 'notes', name: 'Notes', fields: [{ key: 'text', type: 'string' }], permissions, limitations }
  const answer = await own.as('admin').post('/blueprints', blueprint)
  expect([answer.status, answer.body.message]).toEqual([201, undefined])
  expect((await own.as('admin').post('/blueprints/notes/entities', { text: 'ours' })).status).toBe(201)
  return answer.body
}

describe('a restricted label', () => {
  test('is given only by admins of the tenant, at creation and later', async () => {
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

  test('stays when an admin of the workspace sends it back, who cannot take it away', async () => {
    const own = await createWorkspaceFixture()
    await own.as('admin').put(own.at, { labels: ['trial', 'blue'] })
    await setRestrictions(own, { restrictedLabels: ['trial'] })
    const user = own.as('user')
    expect((await user.put(own.at, { name: 'New', labels: ['trial'] })).status).toBe(200)
    expect(statusAndCode(await user.put(own.at, { labels: [] }))).toEqual(RESTRICTED_LABEL)
    expect((await user.get(own.at)).body.labels).toEqual(['trial'])
  })

  test('keeps the rows of a rule from users who make a workspace of their own', async () => {
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

describe('a restricted role', () => {
  test('is given to members only by admins of the tenant', async () => {
    const own = await createWorkspaceFixture()
    await setRestrictions(own, { restrictedRoles: ['auditor'] })
    const [user, admin, { users }] = [own.as('user'), own.as('admin'), own]
    expect(statusAndCode(await user.post(`${own.at}/members`, { userId: users.editor, roles: ['auditor'] }))).toEqual(
      RESTRICTED_ROLE,
    )
    for (const who of ['user', 'other'] as const)
      expect(statusAndCode(await user.put(`${own.at}/members/${users[who]}`, { roles: ['admin', 'auditor'] }))).toEqual(
        RESTRICTED_ROLE,
      )
    expect((await admin.put(`${own.at}/members/${users.other}`, { roles: ['auditor'] })).status).toBe(200)
    expect((await user.put(`${own.at}/members/${users.other}`, { roles: ['auditor', 'lead'] })).status).toBe(200)
    expect((await user.put(`${own.at}/members/${users.other}`, { roles: ['lead'] })).status).toBe(200)
    expect(statusAndCode(await user.put(`${own.at}/members/${users.other}`, { roles: ['auditor'] }))).toEqual(
      RESTRICTED_ROLE,
    )
    expect((await admin.post(`${own.at}/members`, { userId: users.editor, roles: ['auditor'] })).status).toBe(201)
  })

  test('is not given by an invite of others, made alone or with the workspace', async () => {
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

  test('comes by an invite of an admin of the tenant, also after the workspace was saved by others', async () => {
    const own = await createWorkspaceFixture()
    await setRestrictions(own, { restrictedRoles: ['auditor'] })
    const invite = { email: toAddress(own, 'editor'), roles: ['auditor'] }
    expect((await own.as('admin').post(`${own.at}/invites`, invite)).status).toBe(201)
    expect((await own.as('user').put(own.at, { name: 'New', invites: [invite] })).status).toBe(200)
    const reply = { workspace: own.workspace, kind: 'accept' }
    expect((await own.as('editor').post('/invites', reply)).status).toBe(200)
    expect((await own.as('editor').post(`${own.at}/activate`)).body.roles).toEqual(['auditor'])
  })

  test('does not come by an older invite of others, which can still be declined', async () => {
    const own = await createWorkspaceFixture()
    const invite = { email: toAddress(own, 'editor'), roles: ['auditor'] }
    await own.as('user').post(`${own.at}/invites`, invite)
    await setRestrictions(own, { restrictedRoles: ['auditor'] })
    const reply = (kind: string) => own.as('editor').post('/invites', { workspace: own.workspace, kind })
    expect(statusAndCode(await reply('accept'))).toEqual(RESTRICTED_ROLE)
    expect((await own.as('editor').get('/invites')).body).toHaveLength(1)
    expect((await reply('decline')).status).toBe(200)
  })

  test('that an admin of the tenant gave in an invite does not vouch for another one that is added to it', async () => {
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

  test('of the name admin leaves making workspaces to admins of the tenant', async () => {
    const own = await createTestTenant()
    await setRestrictions(own, { restrictedRoles: ['admin'] })
    expect(statusAndCode(await own.as('user').post('/workspaces', { name: 'Mine' }))).toEqual(RESTRICTED_ROLE)
    await createWorkspace(own.as('admin'))
  })
})

describe('with restricted: "named"', () => {
  const rule = { operation: 'update', scope: 'tenant', workspaceRoleBased: ['auditor', 'admin', '*'] }
  const limitation = { scope: 'workspace', workspaceLabels: ['trial'], value: 1 }

  test('labels and roles that rules, limitations and integrations name are restricted, too', async () => {
    const own = await createWorkspaceFixture()
    await setRestrictions(own, { restricted: 'named' })
    const user = own.as('user')
    expect((await user.put(own.at, { labels: ['trial', 'premium'] })).status).toBe(200)
    await user.put(own.at, { labels: [] })
    const labelled = { operation: 'read', scope: 'tenant', roleBased: ['user'], workspaceLabelsBased: ['premium'] }
    await createNotesBlueprint(own, [rule, labelled], [limitation])
    for (const label of ['trial', 'premium'])
      expect(statusAndCode(await user.put(own.at, { labels: [label] }))).toEqual(RESTRICTED_LABEL)
    const give = (role: string) => user.put(`${own.at}/members/${own.users.other}`, { roles: [role] })
    expect(statusAndCode(await give('auditor'))).toEqual(RESTRICTED_ROLE)
    expect((await give('runner')).status).toBe(200)
    await give('member')
    const integration = {
      ...{ workspaceRoles: ['runner'], trigger: { kind: 'webhook' } },
      target: { kind: 'email', to: 'a@b.test', subject: 'x', text: 'x' },
    }
    const done = await own.as('admin').post('/integrations', integration)
    expect([done.status, done.body.message]).toEqual([201, undefined])
    expect(statusAndCode(await give('runner'))).toEqual(RESTRICTED_ROLE)
    expect((await give('admin')).status).toBe(200)
    expect((await user.put(own.at, { labels: ['other'] })).status).toBe(200)
    await createWorkspace(user)
  })

  test('is the tenant’s own choice: another tenant with the same rules is as open as before', async () => {
    const [here, there] = [await createWorkspaceFixture(), await createWorkspaceFixture()]
    await setRestrictions(here, { restricted: 'named' })
    for (const own of [here, there]) await createNotesBlueprint(own, [], [limitation])
    const statusOf = async (own: typeof here) => (await own.as('user').put(own.at, { labels: ['trial'] })).status
    expect([await statusOf(here), await statusOf(there)]).toEqual([403, 200])
  })
})

describe('a blueprint', () => {
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

  test('warns its editors of labels and roles that others than admins can give', async () => {
    const own = await createTestTenant()
    expect(placesOf(await createNotesBlueprint(own, permissions, limitations))).toEqual(WARNINGS)
    for (const who of ['admin', 'editor'] as const) {
      expect(placesOf((await own.as(who).get('/blueprints/notes')).body)).toEqual(WARNINGS)
      expect(placesOf((await own.as(who).get('/blueprints')).body[0])).toEqual(WARNINGS)
    }
    expect(placesOf((await own.as('admin').put('/blueprints/notes', { name: 'N' })).body)).toEqual(WARNINGS)
    const { _id } = await createWorkspace(own.as('user'))
    await own.as('user').post(`/workspaces/${_id}/activate`)
    expect((await own.as('user').get('/blueprints/notes')).body.warnings).toBeUndefined()
  })

  test('warns of the others only, once they are restricted', async () => {
    const own = await createTestTenant()
    await createNotesBlueprint(own, permissions, limitations)
    const warned = async () => placesOf((await own.as('editor').get('/blueprints/notes')).body)
    await setRestrictions(own, { restrictedLabels: ['premium'], restrictedRoles: ['auditor', 'lead'] })
    expect(await warned()).toEqual([WARNINGS[0]!, WARNINGS[4]!])
    await setRestrictions(own, { restricted: 'named' })
    expect(await warned()).toEqual([WARNINGS[0]!])
  })

  test('whose scope is the tenant by default warns of roles in rules without a scope', async () => {
    const own = await createTestTenant()
    const rule = { operation: 'read', workspaceRoleBased: ['member'] }
    const fields = [{ key: 'text', type: 'string' }]
    const blueprint = { key: 'notes', name: 'Notes', fields, permissions: [rule], permissionScope: 'tenant' }
    expect(placesOf((await own.as('admin').post('/blueprints', blueprint)).body)).toEqual([
      ['/permissions/0/workspaceRoleBased', 'WORKSPACE_ROLE_REACHES_TENANT'],
    ])
  })
})

test('doctor warns of labels and roles that are open, and is not failed by them', async () => {
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
