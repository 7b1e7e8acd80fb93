// engine: sqlite
import { describe, expect, setDefaultTimeout, test } from 'bun:test'
import { hasBrowser } from '../fakes/browser'
import { apiCaller, PASSWORD } from '../fakes/cli'
import { closeNotices, inspectScreen, openDemo, openPage, waitUntilSettled } from './admin-browser'

setDefaultTimeout(240_000)

/** Opens the demo, and returns a client with the API token that it printed. */
async function openPeople() {
  const demo = await openDemo()
  const [, token = ''] = await demo.server.until(/x-api-key: (\w+)/)
  const call = apiCaller(demo.server.url, { tenant: 'demo', 'x-api-key': token })
  const createUser = async (body: object) => (await call('POST', '/api/users', body)).body._id as string
  demo.page.on('response', (answer) => {
    if (answer.status() === 403) demo.errors.push(`403 ${answer.url()}`)
  })
  return { ...demo, call, createUser }
}

describe.skipIf(!hasBrowser)('people on the admin page', () => {
  test('an admin finds, creates and changes users', async () => {
    await using demo = await openPeople()
    const { page, errors, call, createUser } = demo
    await createUser({ username: 'grace', email: 'grace@example.com', firstName: 'Grace', lastName: 'Hopper' })
    await createUser({ username: 'اَلْعَرَبِيَّةُ', fullName: 'محمد بن موسى', roles: ['user', 'editor'] })
    await createUser({
      username: 'long',
      fullName: `${'Wolfeschlegelsteinhausenbergerdorff '.repeat(4)}🏝️`.slice(0, 200),
    })
    // The home screen may have counted the users before.
    await page.reload()
    await page.getByRole('link', { name: 'People' }).click()
    await page.waitForURL('**/admin/people/users')
    await page.getByRole('cell', { name: 'grace@example.com' }).waitFor()
    await page.getByText('4 users · 4 registered this week').waitFor()
    await inspectScreen(page, 'users')

    await page.getByRole('searchbox', { name: 'Search users' }).fill('hopper')
    await page.getByText('1', { exact: true }).waitFor()
    expect(page.url()).toContain('q=hopper')
    await page.getByRole('searchbox', { name: 'Search users' }).fill('')
    await page.getByRole('combobox', { name: 'Filter by role' }).click()
    await page.getByRole('option', { name: 'editor' }).click()
    await page.waitForURL('**/admin/people/users?roles=editor')
    await page.keyboard.press('Escape')
    await page.goto(`${demo.server.url}/admin/people/users?sort=username`)
    await page.getByRole('cell', { name: 'grace@example.com' }).waitFor()

    await page.getByRole('button', { name: 'New' }).click()
    await page.getByRole('button', { name: 'Create user' }).click()
    await page.getByText('username is required.').waitFor()
    await page.getByLabel('Username').fill('grace')
    await page.getByRole('textbox', { name: 'Password' }).fill('short')
    await page.getByRole('button', { name: 'Create user' }).click()
    await page.getByText('at least 8').nth(1).waitFor()
    await inspectScreen(page, 'user-new')
    expect(await page.evaluate(() => JSON.stringify(localStorage))).not.toContain('short')
    await page.getByRole('textbox', { name: 'Password' }).fill(PASSWORD)
    await page.getByLabel('Username').fill('katherine')
    await page.getByLabel('First name').fill('Katherine')
    await page.getByLabel('E-mail address').fill('katherine@example.com')
    await page.getByRole('button', { name: 'Create user' }).click()
    await page.getByRole('heading', { name: 'Katherine' }).waitFor()
    await page.getByLabel('Last name').fill('Johnson')
    await page.getByRole('combobox', { name: 'Roles', exact: true }).fill('mathematician')
    await page.keyboard.press('Enter')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('Saved.').waitFor()
    await page.getByRole('heading', { name: 'Katherine Johnson' }).waitFor()
    expect(await page.getByText('Changed by someone else').count()).toBe(0)
    await inspectScreen(page, 'user')
    const [katherine] = (await call('GET', '/api/users?username=katherine')).body
    expect(katherine).toMatchObject({ roles: ['user', 'mathematician'], fullName: 'Katherine Johnson' })
    expect(errors.filter((each) => !each.includes('status of 400'))).toEqual([])

    await page.getByRole('tab', { name: 'Encrypted' }).click()
    await page.getByRole('button', { name: 'Show or change' }).click()
    await page.getByLabel('Value').fill('{"taxNumber": "12"}')
    await page.getByRole('button', { name: 'Store encrypted' }).click()
    await page.getByText('The data was encrypted and stored.').waitFor()
    expect((await call('GET', `/api/users/${katherine._id}/encrypted`)).body).toEqual({ taxNumber: '12' })
  })

  test('an admin marks users, changes their roles at once, and deletes them', async () => {
    await using demo = await openPeople()
    const { page, call, createUser, server } = demo
    for (const [username, firstName, lastName] of [
      ['grace', 'Grace', 'Hopper'],
      ['katherine', 'Katherine', 'Johnson'],
    ])
      await createUser({ username, firstName, lastName, email: `${username}@example.com` })
    await page.goto(`${server.url}/admin/people/users`)

    for (const name of ['grace', 'katherine'])
      await page
        .getByRole('row', { name: `${name}@` })
        .getByRole('checkbox')
        .check()
    await page.getByRole('button', { name: 'Change roles' }).click()
    await page.getByRole('dialog').getByRole('combobox', { name: 'Roles' }).fill('crew')
    await page.keyboard.press('Enter')
    await inspectScreen(page, 'users-marked')
    await page.getByRole('button', { name: 'Add roles' }).click()
    await page.getByText('The roles of 2 users were changed.').waitFor()
    expect((await call('GET', '/api/users?roles=crew')).body).toHaveLength(2)
    await page.getByRole('button', { name: 'Undo' }).click()
    await page.getByRole('row', { name: 'crew' }).first().waitFor({ state: 'hidden' })
    expect((await call('GET', '/api/users?roles=crew')).body).toHaveLength(0)

    await page.getByRole('row', { name: 'grace@' }).getByRole('checkbox').check()
    await page.getByRole('button', { name: 'Delete' }).click()
    await page.getByRole('button', { name: 'Delete 1 user' }).waitFor()
    await page.getByLabel('Type 1 user to confirm').fill('1 user')
    await page.getByRole('button', { name: 'Delete 1 user' }).click()
    await page.getByText('1 user deleted.').waitFor()
    await page.getByRole('cell', { name: 'katherine@example.com' }).click()
    await page.getByRole('button', { name: 'More about Katherine Johnson' }).click()
    await page.getByRole('menuitem', { name: 'Delete user' }).click()
    await page.getByLabel('Type katherine to confirm').fill('katherine')
    await page.getByRole('button', { name: 'Delete user' }).click()
    await page.getByText('Katherine Johnson was deleted.').waitFor()
    expect((await call('GET', '/api/users')).body).toHaveLength(1)
  })

  test('an admin sees how a user signs in, ends their sessions, and acts as them in this tab', async () => {
    await using demo = await openPeople()
    const { page, errors, call, createUser, server } = demo
    const grace = await createUser({
      username: 'grace',
      firstName: 'Grace',
      password: PASSWORD,
      email: 'g@example.com',
    })
    const graceSession = await apiCaller(server.url, { tenant: 'demo' })('POST', '/api/signin', {
      username: 'grace',
      password: PASSWORD,
      authType: 'oauth',
    })
    const asGrace = apiCaller(server.url, {
      tenant: 'demo',
      authorization: `Bearer ${graceSession.body.payload.token}`,
    })
    const { body: office } = await asGrace('POST', '/api/workspaces', { name: 'Office' })
    await page.goto(`${server.url}/admin/people/users/${grace}?show=sign-in`)
    await page.getByText('1 session', { exact: true }).waitFor()
    await page.getByText('confirmed', { exact: true }).waitFor()
    await inspectScreen(page, 'user-sign-in')
    await page.getByRole('button', { name: 'End sessions' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'End sessions' }).click()
    await page.getByText('1 session', { exact: true }).waitFor({ state: 'detached' })
    expect((await asGrace('GET', '/api/me')).status).toBe(401)
    await page.getByRole('tab', { name: 'Workspaces' }).click()
    await page.getByRole('link', { name: 'Office' }).waitFor()

    await page.getByRole('button', { name: 'Act as Grace' }).click()
    await page.getByRole('combobox', { name: 'Workspace' }).click()
    await page.getByRole('option', { name: 'Office' }).click()
    await inspectScreen(page, 'impersonation-dialog')
    await page.getByRole('dialog').getByRole('button', { name: 'Act as Grace' }).click()
    await page.getByText('You act as Grace.').waitFor()
    await page.getByRole('button', { name: 'Account of grace' }).waitFor()
    await inspectScreen(page, 'impersonation')
    await page.goto(`${server.url}/admin/account`)
    await page.getByText('You act as Grace. Only they can change their account.').waitFor()
    await page.goto(`${server.url}/admin/people/users`)
    await page.getByText('Only users with the role admin see this page.').waitFor()
    await page.goto(`${server.url}/admin/data/contacts/all/new`)
    await page.getByRole('textbox', { name: 'name' }).fill('Made by Grace')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByRole('heading', { name: 'Made by Grace' }).waitFor()
    const [made] = (await call('GET', '/api/blueprints/contacts/entities?name=Made by Grace')).body
    expect(made).toMatchObject({ user: grace, workspace: office._id })
    await closeNotices(page)
    await page.getByRole('button', { name: 'Stop' }).click()
    await page.getByRole('button', { name: 'Account of admin' }).waitFor()
    expect(errors).toEqual([])
  })

  test('an admin creates a workspace, adds, invites and removes people, and reads what roles may', async () => {
    await using demo = await openPeople()
    const { page, errors, call, createUser, server } = demo
    const grace = await createUser({
      username: 'grace',
      firstName: 'Grace',
      lastName: 'Hopper',
      roles: ['user', 'captain'],
    })
    await call('POST', '/api/blueprints', {
      key: 'logs',
      name: 'Logs',
      fields: [{ key: 'text', type: 'text', readRoles: ['captain'] }],
      permissions: [
        { operation: 'read', scope: 'tenant', roleBased: ['captain'] },
        { operation: 'update', scope: 'user', roleBased: ['captain'] },
      ],
      limitations: [{ scope: 'workspace', value: 10 }],
    })
    await page.goto(`${server.url}/admin/people/workspaces`)
    await page.getByText('No workspaces yet.').waitFor()
    await inspectScreen(page, 'workspaces-empty')
    await page.getByRole('button', { name: 'Create a workspace' }).click()
    await page.getByLabel('Name').fill('Office')
    await page.getByRole('combobox', { name: 'Labels' }).fill('pro')
    await page.keyboard.press('Enter')
    await page.getByRole('button', { name: 'Create workspace' }).click()
    await page.getByRole('heading', { name: '1 member' }).waitFor()
    await page.getByRole('button', { name: 'Add a member' }).click()
    await page.getByRole('combobox', { name: 'User' }).fill('hopper')
    await page.getByRole('option', { name: 'Grace Hopper' }).click()
    await page.getByRole('button', { name: 'Add member' }).click()
    await page.getByRole('heading', { name: '2 members' }).waitFor()
    await inspectScreen(page, 'workspace')
    const id = page.url().split('/').at(-1)!.split('?')[0]
    await page.getByRole('listitem').filter({ hasText: 'Grace' }).getByRole('button', { name: 'Change roles' }).click()
    await page.getByRole('combobox', { name: 'Roles of Grace Hopper' }).fill('accountant')
    await page.keyboard.press('Enter')
    await page.getByRole('button', { name: 'Save roles' }).click()
    await page.getByText('member, accountant').waitFor()
    expect((await call('GET', `/api/workspaces/${id}`)).body.members).toMatchObject([
      { roles: ['admin'] },
      { user: grace, roles: ['member', 'accountant'] },
    ])
    await page.getByRole('button', { name: 'Remove Grace Hopper' }).click()
    await page.getByRole('button', { name: 'Remove member' }).click()
    await page.getByRole('heading', { name: '1 member' }).waitFor()

    await page.getByRole('tab', { name: 'Invitations' }).click()
    await page.getByLabel('E-mail address').fill('bob@example.com')
    await page.getByRole('button', { name: 'Invite', exact: true }).click()
    await page.getByText('bob@example.com was invited by mail.').waitFor()
    await inspectScreen(page, 'workspace-invitations')
    expect((await call('GET', `/api/workspaces/${id}`)).body.invites).toMatchObject([{ email: 'bob@example.com' }])
    await page.getByRole('button', { name: 'Withdraw the invitation of bob@example.com' }).click()
    await page.getByRole('button', { name: 'Withdraw invitation', exact: true }).click()
    await page.getByText('No pending invitations.').waitFor()

    await page.getByRole('tab', { name: 'Details' }).click()
    await page.getByText('at most 10').waitFor()
    await page.getByLabel('Name').fill('Head office')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByRole('heading', { name: 'Head office' }).waitFor()
    await page.getByRole('tab', { name: 'Subscription' }).click()
    await page.getByText('This workspace has no subscription.').waitFor()
    await page.getByRole('button', { name: 'More about Head office' }).click()
    await page.getByRole('menuitem', { name: 'Delete workspace' }).click()
    await page.getByLabel('Type Head office to confirm').fill('Head office')
    await page.getByRole('button', { name: 'Delete workspace' }).click()
    await page.getByText('No workspaces yet.').waitFor()

    await closeNotices(page)
    await page.getByRole('link', { name: 'Roles' }).click()
    await page.getByText('Logs: reads all, changes their own, sees text.').waitFor()
    await inspectScreen(page, 'roles')
    await page.getByRole('listitem').filter({ hasText: 'captain' }).getByRole('link', { name: '1 user' }).click()
    await page.waitForURL('**/admin/people/users?roles=captain')
    await page.getByRole('cell', { name: 'Grace Hopper' }).waitFor()
    expect(errors).toEqual([])
  })

  test('a user without roles sees small pages without an error at each place', async () => {
    await using demo = await openPeople()
    const { server, createUser } = demo
    await createUser({ username: 'bob', password: PASSWORD })
    const { page, errors } = await openPage()
    await page.goto(`${server.url}/admin?tenant=demo`)
    await page.getByLabel('Username or e-mail address').fill('bob')
    await page.getByRole('textbox', { name: /^Password/ }).fill(PASSWORD)
    await page.getByRole('button', { name: 'Sign in', exact: true }).click()
    await page.getByRole('heading', { name: 'Home' }).waitFor()
    await inspectScreen(page, 'home-user')
    const listPlaces = async (navigation: string) => {
      const links = page.getByRole('navigation', { name: navigation }).getByRole('link')
      return Promise.all((await links.all()).map(async (link) => (await link.getAttribute('href')) ?? ''))
    }
    await waitUntilSettled(page)
    const places = new Set(await listPlaces('Main'))
    // The set grows while the sections name their pages.
    for (const place of places) {
      await page.goto(`${server.url}${place}`)
      await page.getByRole('heading', { level: 1 }).waitFor()
      await waitUntilSettled(page)
      expect([place, ...errors]).toEqual([place])
      for (const tab of await listPlaces('Section')) places.add(tab)
    }
    expect([...places]).toContain('/admin/people/workspaces')
    await page.goto(`${server.url}/admin/people/workspaces`)
    await page.getByText('You are a member of no workspace.').waitFor()
    await inspectScreen(page, 'workspaces-user')
    for (const place of ['people/users', 'people/roles']) {
      await page.goto(`${server.url}/admin/${place}`)
      await page.getByText('Only users with the role admin see this page.').waitFor()
    }
    await inspectScreen(page, 'closed-page')
    await page.goto(`${server.url}/admin/account`)
    await page.getByRole('heading', { name: 'Your account' }).waitFor()
    for (const name of ['Sign-in', 'Sessions', 'API tokens', 'Workspaces'])
      await page.getByRole('tab', { name }).click()
    await waitUntilSettled(page)
    expect(errors).toEqual([])
    await page.close()
  })
})
