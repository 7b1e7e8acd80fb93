import { expect, test } from 'bun:test'
import { createWorkspace, createWorkspaceFixture } from './workspace-fixtures'

/** What is written down of the accounts of a tenant, in the order in which it happened. */
async function listEvents({ as }: Awaited<ReturnType<typeof createWorkspaceFixture>>) {
  const { body } = await as('admin').get('/events?source=accounts&limit=1000')
  return (body as { eventName: string; kind: string; user: string; workspace: string; metadata: object }[]).reverse()
}

test('what happens to workspaces and invites is written down: by whom, and in which workspace', async () => {
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
  const happened = (kind: string, eventName: string, user: string, metadata: object = {}, where = workspace) => ({
    ...{ source: 'accounts', kind, eventName, user, workspace: where },
    metadata: expect.objectContaining(metadata),
  })
  expect(await listEvents(home)).toMatchObject([
    happened('workspace', 'workspace-created', users.user, { name: 'Office' }),
    happened('workspace', 'workspace-created', users.editor, { name: 'Elsewhere' }, elsewhere),
    happened('invite', 'invite-created', users.user, details),
    happened('invite', 'invite-declined', users.editor, details),
    happened('invite', 'invite-created', users.user, { email, roles: ['lead'] }),
    happened('invite', 'invite-created', users.user, { email: 'eve@x.test' }),
    happened('invite', 'invite-accepted', users.editor, { email, roles: ['lead'] }),
    happened('workspace', 'workspace-deleted', users.admin, { name: 'Office' }),
  ])
})

test('what was refused has not happened', async () => {
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
