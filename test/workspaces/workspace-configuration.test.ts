import { describe, expect, test } from 'bun:test'
import { FORBIDDEN } from '../expectations'
import { createTestTenant, statusAndCode } from '../test-tenant'
import { createWorkspace, createWorkspaceFixture, setConfiguration } from './workspace-fixtures'

const setWorkspaceConfiguration = (
  home: Awaited<ReturnType<typeof createTestTenant>>,
  metadata: Record<string, unknown>,
) => setConfiguration(home.tenant, 'workspace-configuration', metadata)
const createWorkspaceAs = (
  home: Awaited<ReturnType<typeof createTestTenant>>,
  name: 'user' | 'editor' | 'admin',
  labels?: string[],
) => home.as(name).post('/workspaces', { name: 'Office', ...(labels && { labels }) })

describe('the configuration of workspaces', () => {
  test('the setting creationPrivilegedRoles limits the creation of workspaces to these roles and admins', async () => {
    const home = await createTestTenant()
    expect((await createWorkspaceAs(home, 'user')).status).toBe(201)
    await setWorkspaceConfiguration(home, { creationPrivilegedRoles: ['plugin', 'boss'] })
    expect(statusAndCode(await createWorkspaceAs(home, 'user'))).toEqual(FORBIDDEN)
    for (const name of ['editor', 'admin'] as const) expect((await createWorkspaceAs(home, name)).status).toBe(201)
    await setWorkspaceConfiguration(home, { creationPrivilegedRoles: [] })
    expect((await createWorkspaceAs(home, 'user')).status).toBe(201)
  })

  test('the setting labels limits new labels of workspaces; a label that a workspace already has may stay', async () => {
    const home = await createTestTenant()
    const { _id } = await createWorkspace(home.as('user'), { labels: ['old'] })
    await setWorkspaceConfiguration(home, { labels: ['pro', 'free'] })
    const answer = await createWorkspaceAs(home, 'user', ['pro', 'gold'])
    expect([statusAndCode(answer), answer.body.message]).toEqual([
      [400, 'INVALID_INPUT'],
      expect.stringContaining('"gold"'),
    ])
    expect((await createWorkspaceAs(home, 'user', ['pro'])).status).toBe(201)
    const put = (labels: string[]) => home.as('user').put(`/workspaces/${_id}`, { labels })
    expect((await put(['old', 'free'])).body.labels).toEqual(['old', 'free'])
    expect((await put(['free'])).status).toBe(200)
    expect(statusAndCode(await put(['free', 'old']))).toEqual([400, 'INVALID_INPUT'])
    expect((await home.as('user').put(`/workspaces/${_id}`, { name: 'New' })).status).toBe(200)
  })

  test('the setting allowNonLabeledWorkspaces: false requires labels, except of workspaces that have none already', async () => {
    const home = await createTestTenant()
    const { _id } = await createWorkspace(home.as('user'))
    const put = (body: object) => home.as('user').put(`/workspaces/${_id}`, body)
    await setWorkspaceConfiguration(home, { allowNonLabeledWorkspaces: false })
    for (const labels of [undefined, []])
      expect(statusAndCode(await createWorkspaceAs(home, 'admin', labels))).toEqual([400, 'INVALID_INPUT'])
    expect((await createWorkspaceAs(home, 'user', ['any'])).status).toBe(201)
    // A workspace without labels can be saved unchanged.
    expect((await put({ name: 'New', labels: [] })).status).toBe(200)
    expect((await put({ labels: ['pro'] })).status).toBe(200)
    expect(statusAndCode(await put({ labels: [] }))).toEqual([400, 'INVALID_INPUT'])
  })

  test('the setting isActive: false prevents creating, joining and activating workspaces and ignores active ones', async () => {
    const home = await createWorkspaceFixture()
    const { as, at, workspace } = home
    const email = `editor@${home.id}.test`
    await as('user').post(`${at}/invites`, { email })
    await as('user').post(`${at}/activate`)
    expect((await as('user').get('/me')).body.workspace._id).toBe(workspace)
    await setWorkspaceConfiguration(home, { isActive: false })
    expect((await as('user').get('/me')).body.workspace).toBeNull()
    for (const answer of [
      await createWorkspaceAs(home, 'admin'),
      await as('other').post(`${at}/activate`),
      await as('editor').post('/invites', { workspace, kind: 'accept' }),
    ])
      expect(statusAndCode(answer)).toEqual([403, 'WORKSPACES_INACTIVE'])
    expect((await as('user').get(at)).status).toBe(200)
    await setWorkspaceConfiguration(home, { isActive: true })
    expect((await as('user').get('/me')).body.workspace._id).toBe(workspace)
  })

  test('an invalid setting of workspaces is ignored without affecting the others', async () => {
    const home = await createTestTenant()
    await setWorkspaceConfiguration(home, {
      isActive: 'no',
      creationPrivilegedRoles: 'boss',
      labels: [5],
      allowNonLabeledWorkspaces: null,
    })
    expect((await createWorkspaceAs(home, 'user', ['any'])).status).toBe(201)
    await setWorkspaceConfiguration(home, { isActive: 5, creationPrivilegedRoles: ['boss'] })
    expect(statusAndCode(await createWorkspaceAs(home, 'user'))).toEqual(FORBIDDEN)
  })

  test('the configuration of workspaces applies to its own tenant only', async () => {
    const [ownTenant, otherTenant] = [await createTestTenant(), await createTestTenant()]
    await setWorkspaceConfiguration(ownTenant, { isActive: false })
    expect((await createWorkspaceAs(ownTenant, 'user')).status).toBe(403)
    expect((await createWorkspaceAs(otherTenant, 'user')).status).toBe(201)
  })
})

test('the setting allowSignup: false rejects sign-ups with 403 SIGNUP_CLOSED and keeps sign-ins possible', async () => {
  const { anonymous, tenant } = await createTestTenant()
  const person = { username: 'ada', password: 'correct horse' }
  expect((await anonymous.post('/signup', person)).status).toBe(201)
  await setConfiguration(tenant, 'auth-configuration', { allowSignup: false })
  expect(statusAndCode(await anonymous.post('/signup', { ...person, username: 'bob' }))).toEqual([403, 'SIGNUP_CLOSED'])
  expect(statusAndCode(await anonymous.post('/signup', person))).toEqual([403, 'SIGNUP_CLOSED'])
  expect((await anonymous.post('/signin', person)).status).toBe(200)
  await setConfiguration(tenant, 'auth-configuration', { allowSignup: true })
  expect((await anonymous.post('/signup', { ...person, username: 'bob' })).status).toBe(201)
})
