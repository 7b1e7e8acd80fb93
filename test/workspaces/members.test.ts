import { describe, expect, test } from 'bun:test'
import { registerUser } from '../../src/accounts/users/users'
import { nextPagePath } from '../entities/fixtures'
import { FORBIDDEN, TIME, WORKSPACE_NOT_FOUND } from '../expectations'
import { statusAndCode } from '../test-tenant'
import { createWorkspace, createWorkspaceFixture } from './workspace-fixtures'

const LAST_WORKSPACE_ADMIN = [409, 'LAST_WORKSPACE_ADMIN']
const toRoles = (body: { user: string; roles: string[] }[]) =>
  Object.fromEntries(body.map((one) => [one.user, one.roles]))

describe('members of a workspace', () => {
  test('an admin of a workspace adds, lists, changes and removes members', async () => {
    const { as, at, id, users, workspace } = await createWorkspaceFixture()
    const user = as('user')
    const added = await user.post(`${at}/members`, { userId: users.editor, roles: ['user', 'bookkeeper'] })
    expect([added.status, added.body.message, added.body.workspace._id]).toEqual([201, expect.any(String), workspace])
    expect(toRoles(added.body.workspace.members)[users.editor]).toEqual(['user', 'bookkeeper'])
    const { body } = await user.get(`${at}/members`)
    const editorMember = { user: users.editor, created: TIME, fullName: '', email: `editor@${id}.test` }
    // Members that were added within one millisecond are in the order of their ids.
    expect(body).toContainEqual({ ...editorMember, roles: ['user', 'bookkeeper'] })
    expect((await as('editor').get('/workspaces')).body).toHaveLength(2)

    const changed = await user.put(`${at}/members/${users.editor}`, { roles: ['admin'] })
    expect([changed.status, changed.body]).toEqual([
      200,
      { message: expect.any(String), updatedMember: { user: users.editor, roles: ['admin'] }, workspaceId: workspace },
    ])
    expect((await as('editor').put(at, { name: 'Ours' })).status).toBe(200)

    const removed = await user.delete(`${at}/members/${users.editor}`)
    expect([removed.status, removed.body]).toEqual([
      200,
      { message: expect.any(String), removedMemberId: users.editor, userId: users.editor },
    ])
    expect(statusAndCode(await as('editor').get(at))).toEqual(WORKSPACE_NOT_FOUND)
    for (const answer of [
      await user.delete(`${at}/members/${users.editor}`),
      await user.put(`${at}/members/${users.editor}`, { roles: [] }),
    ])
      expect(statusAndCode(answer)).toEqual([404, 'MEMBER_NOT_FOUND'])
  })

  test('a second membership gets 409 MEMBER_EXISTS, an unknown user 404 USER_NOT_FOUND, and invalid input 400', async () => {
    const { as, at, users } = await createWorkspaceFixture()
    const add = (body: object) => as('user').post(`${at}/members`, body)
    expect(statusAndCode(await add({ userId: users.other, roles: ['admin'] }))).toEqual([409, 'MEMBER_EXISTS'])
    expect(statusAndCode(await add({ userId: 'nobody', roles: [] }))).toEqual([404, 'USER_NOT_FOUND'])
    for (const wrong of [
      { roles: [] },
      { userId: users.editor },
      { userId: 5, roles: [] },
      { userId: users.editor, roles: 'admin' },
    ])
      expect(statusAndCode(await add(wrong))).toEqual([400, 'INVALID_INPUT'])
    for (const roles of ['admin', undefined, [''], [5], ['a', 'a'], Array.from({ length: 51 }, (_, n) => `r${n}`)])
      expect(statusAndCode(await as('user').put(`${at}/members/${users.other}`, { roles }))).toEqual([
        400,
        'INVALID_INPUT',
      ])
    expect(toRoles((await as('user').get(`${at}/members`)).body)).toEqual({
      [users.user]: ['admin'],
      [users.other]: ['member'],
    })
  })

  test('members are managed by admins of the workspace and tenant only; others get 403, 404 or 401', async () => {
    const { as, anonymous, at, users } = await createWorkspaceFixture()
    const tryAs = (client: ReturnType<typeof as>) =>
      Promise.all([
        client.post(`${at}/members`, { userId: users.editor, roles: ['admin'] }),
        client.put(`${at}/members/${users.user}`, { roles: [] }),
        client.delete(`${at}/members/${users.user}`),
      ])
    for (const answer of await tryAs(as('other'))) expect(statusAndCode(answer)).toEqual(FORBIDDEN)
    for (const answer of await tryAs(as('editor'))) expect(statusAndCode(answer)).toEqual(WORKSPACE_NOT_FOUND)
    for (const answer of await tryAs(anonymous)) expect(statusAndCode(answer)).toEqual([401, 'UNAUTHENTICATED'])
    expect(statusAndCode(await as('other').put(`${at}/members/${users.other}`, { roles: ['admin'] }))).toEqual(
      FORBIDDEN,
    )
    expect((await as('admin').put(`${at}/members/${users.other}`, { roles: ['lead'] })).status).toBe(200)
  })

  test('a member can leave a workspace', async () => {
    const { as, at, users } = await createWorkspaceFixture()
    expect((await as('other').delete(`${at}/members/${users.other}`)).status).toBe(200)
    expect(statusAndCode(await as('other').delete(`${at}/members/${users.other}`))).toEqual(WORKSPACE_NOT_FOUND)
  })

  test('members are listed page by page in the order in which they joined', async () => {
    const { as, at, users } = await createWorkspaceFixture()
    const first = await as('other').get(`${at}/members?limit=1&count=1`)
    expect([first.body.map(({ user }: { user: string }) => user), first.headers.get('x-total-count')]).toEqual([
      [users.user],
      '2',
    ])
    const next = await as('other').get(nextPagePath(first.headers)!)
    expect(next.body).toEqual([{ user: users.other, roles: ['member'], created: TIME, fullName: '' }])
    expect(statusAndCode(await as('editor').get(`${at}/members`))).toEqual(WORKSPACE_NOT_FOUND)
    expect((await as('other').get(`${at}/members?sort=-created`)).body[0].user).toBe(users.other)
  })

  test('a workspace with a thousand members rejects another one with 409 TOO_MANY_MEMBERS', async () => {
    const { as, at, tenant, workspace, users } = await createWorkspaceFixture()
    const ids = Array.from({ length: 998 }, (_, n) => `filler-${n}`)
    await tenant.write(async (tx) => {
      await tx.executeMany(
        `insert into users (_id, username, username_key, email_verified, roles, metadata, internal_metadata, version, created, updated)
         values (?, ?, ?, 0, '[]', '{}', '{}', 1, 0, 0)`,
        ids.map((id) => [id, id, id]),
      )
      await tx.executeMany(
        `insert into members (workspace, "user", roles, created) values (?, ?, '[]', 0)`,
        ids.map((id) => [workspace, id]),
      )
    })
    const answer = await as('user').post(`${at}/members`, { userId: users.editor, roles: [] })
    expect(statusAndCode(answer)).toEqual([409, 'TOO_MANY_MEMBERS'])
    expect((await as('user').get(at)).body.members).toHaveLength(1000)
  })
})

describe('the last admin of a workspace', () => {
  test('demoting or removing the last admin of a workspace gets 409 LAST_WORKSPACE_ADMIN', async () => {
    const { as, at, users } = await createWorkspaceFixture()
    for (const client of [as('user'), as('admin')])
      for (const answer of [
        await client.put(`${at}/members/${users.user}`, { roles: ['member'] }),
        await client.put(`${at}/members/${users.user}`, { roles: [] }),
        await client.delete(`${at}/members/${users.user}`),
      ])
        expect(statusAndCode(answer)).toEqual(LAST_WORKSPACE_ADMIN)
    expect((await as('user').put(`${at}/members/${users.user}`, { roles: ['admin', 'lead'] })).status).toBe(200)
    await as('user').put(`${at}/members/${users.other}`, { roles: ['admin'] })
    expect((await as('user').delete(`${at}/members/${users.user}`)).status).toBe(200)
    expect(statusAndCode(await as('other').delete(`${at}/members/${users.other}`))).toEqual(LAST_WORKSPACE_ADMIN)
  })

  test('two admins who leave or demote themselves simultaneously leave one admin, who gets 409 LAST_WORKSPACE_ADMIN', async () => {
    const home = await createWorkspaceFixture()
    const { as, users } = home
    for (let round = 0; round < 10; round++) {
      const { _id } = await createWorkspace(as('user'))
      const at = `/workspaces/${_id}`
      await as('user').post(`${at}/members`, { userId: users.other, roles: ['admin'] })
      const answers = await Promise.all([
        round % 2
          ? as('user').delete(`${at}/members/${users.user}`)
          : as('user').put(`${at}/members/${users.user}`, { roles: ['member'] }),
        as('other').delete(`${at}/members/${users.other}`),
      ])
      expect(answers.map(({ status }) => status).sort()).toEqual([200, 409])
      expect(answers.filter(({ status }) => status === 409).map(statusAndCode)).toEqual([LAST_WORKSPACE_ADMIN])
      const { body } = await as('admin').get(`${at}/members`)
      expect(
        Object.values(toRoles(body))
          .flat()
          .filter((role) => role === 'admin'),
      ).toHaveLength(1)
    }
  })
})

test('fullName of a member is composed of the first and the last name', async () => {
  const { as, at, tenant } = await createWorkspaceFixture()
  const { _id } = await registerUser(tenant, { username: 'grace', firstName: 'Grace', lastName: 'Hopper' })
  await as('user').post(`${at}/members`, { userId: _id, roles: [] })
  const { body } = await as('admin').get(`${at}/members`)
  expect(body.at(-1)).toMatchObject({ user: _id, fullName: 'Grace Hopper', email: '' })
})
