import { afterEach, describe, expect, test } from 'bun:test'
import { config } from '../../src/config'
import { runDueJobs } from '../../src/jobs/runner'
import { extractToken } from '../accounts/mail/mail-fixtures'
import { createSignedInClient } from '../accounts/session-fixtures'
import { nextPagePath } from '../entities/fixtures'
import { FORBIDDEN, ID, TIME, WORKSPACE_NOT_FOUND } from '../expectations'
import { startSmtpServer } from '../fakes/smtp-server'
import { createTestTenant, statusAndCode } from '../test-tenant'
import { createWorkspace, createWorkspaceFixture } from './workspace-fixtures'

const INVITE_NOT_FOUND = [404, 'INVITE_NOT_FOUND']
afterEach(() => {
  config.ATOLL_SMTP_URL = ''
})

/** Creates a workspace to which the editor is invited with these roles. */
async function createInviteFixture(roles: string[] | undefined = ['lead']) {
  const home = await createWorkspaceFixture()
  const email = `editor@${home.id}.test`
  const { status, body } = await home.as('user').post(`${home.at}/invites`, { email, name: 'Ed', roles })
  expect(status).toBe(201)
  return { ...home, invite: body, email, editor: home.as('editor') }
}
const accept = (workspace: string) => ({ workspace, kind: 'accept' })
const decline = (workspace: string) => ({ workspace, kind: 'decline' })

describe('invites to a workspace', () => {
  test('an invited user sees the invite and becomes a member with its roles by accepting it', async () => {
    const { as, editor, at, workspace, invite, email, users } = await createInviteFixture()
    expect(invite).toEqual({ _id: ID, email, name: 'Ed', roles: ['lead'], created: TIME })
    expect((await editor.get('/invites')).body).toEqual([
      {
        _id: invite._id,
        workspace: { _id: workspace, name: 'Office', logo: null },
        roles: ['lead'],
        created: invite.created,
      },
    ])
    expect((await as('other').get('/invites')).body).toEqual([])
    expect(statusAndCode(await editor.get(at))).toEqual(WORKSPACE_NOT_FOUND)

    const answer = await editor.post('/invites', accept(workspace))
    expect([answer.status, answer.body]).toEqual([200, { success: true }])
    const { body } = await as('user').get(at)
    expect([body.members.at(-1), body.invites]).toMatchObject([{ user: users.editor, roles: ['lead'] }, []])
    expect((await editor.get('/invites')).body).toEqual([])
    expect(statusAndCode(await editor.post('/invites', accept(workspace)))).toEqual(INVITE_NOT_FOUND)
  })

  test('a declined or withdrawn invite can no longer be accepted (404 INVITE_NOT_FOUND)', async () => {
    const { as, editor, at, workspace, email } = await createInviteFixture()
    expect((await editor.post('/invites', decline(workspace))).status).toBe(200)
    expect(statusAndCode(await editor.post('/invites', accept(workspace)))).toEqual(INVITE_NOT_FOUND)
    expect(statusAndCode(await editor.get(at))).toEqual(WORKSPACE_NOT_FOUND)

    const { body } = await as('user').post(`${at}/invites`, { email })
    expect(body).toMatchObject({ name: null, roles: ['member'] })
    expect((await as('user').delete(`${at}/invites/${body._id}`)).body).toEqual({ success: true })
    for (const answer of [
      await as('user').delete(`${at}/invites/${body._id}`),
      await editor.post('/invites', accept(workspace)),
    ])
      expect(statusAndCode(answer)).toEqual(INVITE_NOT_FOUND)
  })

  test('an invite matches an address in any case, and a second one for the address gets 409 INVITE_EXISTS', async () => {
    const { as, at, workspace, id } = await createWorkspaceFixture()
    await as('user').post(`${at}/invites`, { email: `EDITOR@${id.toUpperCase()}.Test` })
    expect((await as('editor').get('/invites')).body).toHaveLength(1)
    const again = await as('user').post(`${at}/invites`, { email: `editor@${id}.test` })
    expect(statusAndCode(again)).toEqual([409, 'INVITE_EXISTS'])
    expect((await as('editor').post('/invites', accept(workspace))).status).toBe(200)
  })

  test('an invite is hidden from users with another address or none, who get 404 INVITE_NOT_FOUND', async () => {
    const { as, editor, workspace, ...home } = await createInviteFixture()
    expect(statusAndCode(await as('admin').post('/invites', accept(workspace)))).toEqual(INVITE_NOT_FOUND)
    expect((await (await createSignedInClient({ ...home, as }, 'editor')).post('/me', { email: '' })).status).toBe(200)
    expect((await editor.get('/invites')).body).toEqual([])
    for (const answer of [accept, decline].map((reply) => editor.post('/invites', reply(workspace))))
      expect(statusAndCode(await answer)).toEqual(INVITE_NOT_FOUND)
  })

  test('accepting an invite gets 409 EMAIL_NOT_VERIFIED until the address is verified, where mail is configured', async () => {
    const { editor, workspace, tenant, users } = await createInviteFixture()
    config.ATOLL_SMTP_URL = 'smtp://mail.invalid'
    expect((await editor.get('/invites')).body).toEqual([])
    expect(statusAndCode(await editor.post('/invites', accept(workspace)))).toEqual([409, 'EMAIL_NOT_VERIFIED'])
    await tenant.write((tx) => tx.query('update users set email_verified = 1 where _id = ?', [users.editor]))
    expect((await editor.get('/invites')).body).toHaveLength(1)
    expect((await editor.post('/invites', accept(workspace))).status).toBe(200)
  })

  test('a user who has not verified the invited address gets 409 EMAIL_NOT_VERIFIED with the next step in the message', async () => {
    const { as, at, workspace, anonymous, tenant } = await createWorkspaceFixture()
    const box = await startSmtpServer()
    config.ATOLL_SMTP_URL = box.url
    const password = 'correct horse'
    const signUp = async (person: object) => {
      const { body } = await anonymous.post('/signup', { password, authType: 'oauth', ...person })
      return anonymous.with({ authorization: `Bearer ${body.payload.token}` })
    }
    for (const name of ['eve', 'ada', 'bob']) await as('user').post(`${at}/invites`, { email: `${name}@x.test` })
    const [eve, ada, bob] = [
      await signUp({ username: 'Eve@x.test' }),
      await signUp({ username: 'ada', email: 'ADA@x.test' }),
      await signUp({ username: 'bob' }),
    ]
    expect((await bob.post('/me', { email: 'bob@x.test' })).body.pendingEmail).toBe('bob@x.test')
    const readMessage = async (me: typeof eve) => {
      const answer = await me.post('/invites', accept(workspace))
      expect(statusAndCode(answer)).toEqual([409, 'EMAIL_NOT_VERIFIED'])
      return answer.body.message as string
    }
    expect(await readMessage(eve)).toStartWith('Add eve@x.test to your profile')
    expect(await readMessage(ada)).toStartWith('Confirm ada@x.test first: POST /api/email/verification')
    expect(await readMessage(bob)).toStartWith('Confirm bob@x.test first')
    // The steps of the messages lead to the membership.
    await eve.post('/me', { email: 'eve@x.test' })
    for (const [me, to] of [
      [eve, 'eve@x.test'],
      [bob, 'bob@x.test'],
    ] as const) {
      await runDueJobs(tenant)
      const token = box
        .to(to)
        .map(({ text }) => extractToken(text))
        .find(Boolean)
      expect((await me.post('/email/verify', { token })).status).toBe(200)
      expect((await me.post('/invites', accept(workspace))).status).toBe(200)
    }
    expect(statusAndCode(await ada.post('/invites', accept('x')))).toEqual(INVITE_NOT_FOUND)
    await box.close()
  })

  test('invites are created and withdrawn by admins of the workspace and tenant only; others get 403, 404 or 401', async () => {
    const { as, anonymous, at, invite } = await createInviteFixture()
    const tryAs = (client: typeof anonymous) =>
      Promise.all([client.post(`${at}/invites`, { email: 'a@x.test' }), client.delete(`${at}/invites/${invite._id}`)])
    for (const answer of await tryAs(as('other'))) expect(statusAndCode(answer)).toEqual(FORBIDDEN)
    for (const answer of await tryAs(as('editor'))) expect(statusAndCode(answer)).toEqual(WORKSPACE_NOT_FOUND)
    for (const answer of await tryAs(anonymous)) expect(statusAndCode(answer)).toEqual([401, 'UNAUTHENTICATED'])
    for (const { status } of await tryAs(as('admin'))) expect(status).toBeOneOf([200, 201])
    for (const answer of [await anonymous.get('/invites'), await anonymous.post('/invites', accept('x'))])
      expect(statusAndCode(answer)).toEqual([401, 'UNAUTHENTICATED'])
  })

  test('an invite cannot be withdrawn through another workspace (404 INVITE_NOT_FOUND)', async () => {
    const { as, invite } = await createInviteFixture()
    const { _id } = await createWorkspace(as('other'))
    expect(statusAndCode(await as('other').delete(`/workspaces/${_id}/invites/${invite._id}`))).toEqual(
      INVITE_NOT_FOUND,
    )
    expect((await as('editor').get('/invites')).body).toHaveLength(1)
  })

  test('an invite is deleted with its workspace and is unknown at another tenant', async () => {
    const { as, editor, at, workspace, email } = await createInviteFixture()
    const otherTenant = await createTestTenant()
    await (await createSignedInClient(otherTenant, 'user')).post('/me', { email })
    expect((await otherTenant.as('user').get('/invites')).body).toEqual([])
    expect(statusAndCode(await otherTenant.as('user').post('/invites', accept(workspace)))).toEqual(INVITE_NOT_FOUND)
    await as('user').delete(at)
    expect((await editor.get('/invites')).body).toEqual([])
    expect(statusAndCode(await editor.post('/invites', accept(workspace)))).toEqual(INVITE_NOT_FOUND)
  })

  test('an accepted invite adds its roles to those of an existing member', async () => {
    const { as, editor, at, workspace, users } = await createInviteFixture(['lead', 'member'])
    await as('user').post(`${at}/members`, { userId: users.editor, roles: ['member'] })
    expect((await editor.post('/invites', accept(workspace))).status).toBe(200)
    expect((await as('user').get(at)).body.members.at(-1).roles).toEqual(['member', 'lead'])
  })

  test('three simultaneous acceptances of one invite succeed once', async () => {
    const { as, editor, at, workspace } = await createInviteFixture()
    const answers = await Promise.all([1, 2, 3].map(() => editor.post('/invites', accept(workspace))))
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 404, 404])
    expect((await as('user').get(`${at}/members`)).body).toHaveLength(3)
  })

  test.each([
    ['without a workspace', { workspace: undefined }],
    ['without a kind', { kind: undefined }],
    ['with an unknown kind', { kind: 'perhaps' }],
    ['with a number as workspace', { workspace: 5 }],
  ])('POST /api/invites %s gets 400 INVALID_INPUT and keeps the invite', async (_, wrong) => {
    const { editor, workspace } = await createInviteFixture()
    expect(statusAndCode(await editor.post('/invites', { ...accept(workspace), ...wrong }))).toEqual([
      400,
      'INVALID_INPUT',
    ])
    expect((await editor.get('/invites')).body).toHaveLength(1)
  })

  test.each([
    { email: undefined },
    { email: 'nobody' },
    { email: '' },
    { roles: 'admin' },
    { roles: [''] },
    { name: 5 },
  ])('POST /api/workspaces/:id/invites rejects %p with 400 INVALID_INPUT', async (wrong) => {
    const { as, at } = await createWorkspaceFixture()
    const answer = await as('user').post(`${at}/invites`, { email: 'a@x.test', ...wrong })
    expect(statusAndCode(answer)).toEqual([400, 'INVALID_INPUT'])
  })

  test('an invite for a member gets 409 MEMBER_EXISTS', async () => {
    const { as, at, id } = await createWorkspaceFixture()
    const answer = await as('user').post(`${at}/invites`, { email: `Other@${id}.test` })
    expect(statusAndCode(answer)).toEqual([409, 'MEMBER_EXISTS'])
  })
})

describe('invites in PUT /api/workspaces/:id', () => {
  type Invite = { _id: string; email: string; roles: string[] }
  const byEmail = (invites: Invite[]) => Object.fromEntries(invites.map((one) => [one.email, one]))

  test('PUT /api/workspaces/:id replaces the list of invites: missing ones are withdrawn, and matching ones keep their ID', async () => {
    const { as, at } = await createWorkspaceFixture()
    const put = async (invites: object[]) => {
      const { status, body } = await as('user').put(at, { invites })
      expect(status).toBe(200)
      return byEmail(body.invites)
    }
    const before = await put([{ email: 'a@x.test' }, { email: 'b@x.test', roles: ['lead'], name: 'Bea' }])
    const after = await put([{ email: 'B@X.test' }, { email: 'c@x.test' }])
    expect(Object.keys(after)).toEqual(['B@X.test', 'c@x.test'])
    expect(after['B@X.test']).toEqual({ ...before['b@x.test']!, email: 'B@X.test' })
    const changed = await put([{ email: 'b@x.test', roles: ['admin'], name: null }])
    expect(changed['b@x.test']).toMatchObject({ _id: before['b@x.test']!._id, roles: ['admin'], name: null })
    expect((await as('user').put(at, { name: 'Other' })).body.invites).toHaveLength(1)
    expect(await put([])).toEqual({})
  })

  test('PUT /api/workspaces/:id drops invites of users who have become members, so that a read workspace can be sent back', async () => {
    const { as, editor, at, workspace } = await createInviteFixture()
    const read = (await as('user').get(at)).body
    expect(read.invites).toHaveLength(1)
    await editor.post('/invites', accept(workspace))
    expect((await as('user').put(at, read)).body).toMatchObject({ invites: [], members: [{}, {}, {}] })
  })

  test('PUT /api/workspaces/:id rejects duplicate or invalid invites and more than a thousand with 400 INVALID_INPUT', async () => {
    const { as, at } = await createWorkspaceFixture()
    const put = (invites: object[]) => as('user').put(at, { name: 'Changed', invites })
    for (const wrong of [
      [{ email: 'a@x.test' }, { email: 'A@x.test' }],
      [{ email: 'nobody' }],
      Array.from({ length: 1001 }, (_, n) => ({ email: `u${n}@x.test` })),
    ])
      expect(statusAndCode(await put(wrong))).toEqual([400, 'INVALID_INPUT'])
    expect((await as('user').get(at)).body).toMatchObject({ name: 'Office', invites: [] })
    const many = Array.from({ length: 1000 }, (_, n) => ({ email: `u${n}@x.test` }))
    expect((await put(many)).body.invites).toHaveLength(1000)
    expect(statusAndCode(await as('user').post(`${at}/invites`, { email: 'b@x.test' }))).toEqual([
      409,
      'TOO_MANY_INVITES',
    ])
    expect(statusAndCode(await as('other').put(at, { invites: [] }))).toEqual(FORBIDDEN)
  })
})

test('GET /api/invites lists the invites of the caller newest first and page by page', async () => {
  const { as, id } = await createTestTenant()
  for (const name of ['A', 'B', 'C']) {
    const { _id } = await createWorkspace(as('user'), { name })
    await as('user').post(`/workspaces/${_id}/invites`, { email: `other@${id}.test` })
  }
  const first = await as('other').get('/invites?limit=2&count=true')
  const names = (body: { workspace: { name: string } }[]) => body.map(({ workspace }) => workspace.name)
  expect([names(first.body), first.headers.get('x-total-count')]).toEqual([['C', 'B'], '3'])
  expect(names((await as('other').get(nextPagePath(first.headers)!)).body)).toEqual(['A'])
})
