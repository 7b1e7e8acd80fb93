import { expect, test } from 'bun:test'
import { createWorkspace, createWorkspaceFixture } from './workspace-fixtures'

/** Lists the events of accounts and workspaces of a tenant, oldest first. */
async function listEvents({ as }: Awaited<ReturnType<typeof createWorkspaceFixture>>) {
  const { body } = await as('admin').get('/events?source=accounts&limit=1000')
  return (body as { eventName: string; kind: string; user: string; workspace: string; metadata: object }[]).reverse()
}

test('changes of workspaces and invites emit events with the acting user and the workspace', async () => {
  const home = await createWorkspaceFixture()
  const { as, at, users, workspace, elsewhere } = home
  const email = `editor@${home.id}.test`
  const invite = await as('user').post(`${at}/invites`, { email })
  await as('editor').post('/invites', { workspace, kind: 'decline' })
  await as('user').put(at, { invites: [{ email, roles: ['lead'] }, { email: 'eve@x.test' }] })
  await as('user').put(at, { invites: [{ email }] })
  await as('editor').post('/invites', { workspace, kind: 'accept' })
  await as('admin').delete(at)

  const details = { invite: invite.body._id, email, name: null, roles: ['member'] }
  const expectedEvent = (kind: string, eventName: string, user: string, metadata: object = {}, where = workspace) => ({
    ...{ source: 'accounts', kind, eventName, user, workspace: where },
    metadata: expect.objectContaining(metadata),
  })
  expect(await listEvents(home)).toMatchObject([
    expectedEvent('workspace', 'workspace-created', users.user, { name: 'Office' }),
    expectedEvent('workspace', 'workspace-created', users.editor, { name: 'Elsewhere' }, elsewhere),
    expectedEvent('invite', 'invite-created', users.user, details),
    expectedEvent('invite', 'invite-declined', users.editor, details),
    expectedEvent('invite', 'invite-created', users.user, { email, roles: ['lead'] }),
    expectedEvent('invite', 'invite-created', users.user, { email: 'eve@x.test' }),
    expectedEvent('invite', 'invite-accepted', users.editor, { email, roles: ['lead'] }),
    expectedEvent('workspace', 'workspace-deleted', users.admin, { name: 'Office' }),
  ])
})

test('rejected changes of workspaces and invites emit no events', async () => {
  const home = await createWorkspaceFixture()
  const before = await listEvents(home)
  const { as, at, workspace, id } = home
  await as('other').delete(at)
  await as('editor').post(`${at}/invites`, { email: 'eve@x.test' })
  await as('user').post(`${at}/invites`, { email: `other@${id}.test` })
  await as('editor').post('/invites', { workspace, kind: 'accept' })
  expect(await listEvents(home)).toEqual(before)
  await createWorkspace(as('other'))
  expect(await listEvents(home)).toHaveLength(before.length + 1)
})
