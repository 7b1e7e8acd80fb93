// engine: sqlite
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { hasBrowser } from '../fakes/browser'
import { apiCaller, PASSWORD } from '../fakes/cli'
import { inspectScreen, openDemo } from './admin-browser'

setDefaultTimeout(240_000)

describe.skipIf(!hasBrowser)('the rules of blueprints', () => {
  let demo: Awaited<ReturnType<typeof openDemo>>
  let call: ReturnType<typeof apiCaller>
  beforeAll(async () => {
    demo = await openDemo()
    const [, key = ''] = await demo.server.until(/x-api-key: (\w+)'/)
    call = apiCaller(demo.server.url, { 'x-api-key': key, tenant: 'demo' })
    await call('POST', '/api/users', { username: 'bob', password: PASSWORD, roles: ['user'] })
    await call('POST', '/api/users', { username: 'eve', password: PASSWORD, roles: ['user', 'editor'] })
  })
  afterAll(() => demo?.[Symbol.asyncDispose]())

  const open = (path: string) => demo.page.goto(`${demo.server.url}/admin${path}`)
  const readMatrix = async (name = 'Access rules') => {
    const rows = await demo.page.getByRole('table', { name }).getByRole('row').all()
    const cells = await Promise.all(rows.slice(1).map((row) => row.locator('th, td').allInnerTexts()))
    return Object.fromEntries(cells.map(([who = '', ...rest]) => [who, rest.join(' ')]))
  }

  test('rules read as sentences whose parts are menus, and the matrix follows them before they are saved', async () => {
    const { page, errors } = demo
    await open('/data/contacts/all/design/rules?tenant=demo')
    await page.getByRole('button', { name: 'Whom rule 1 is for: Everybody who is signed in' }).waitFor()
    expect(await readMatrix()).toEqual({
      Guests: '– – – –',
      'Signed in': 'yes all own own',
      'Role admin': 'yes all all all',
    })
    await page.getByRole('button', { name: 'Scope of rule 4' }).click()
    await page.getByRole('menuitem', { name: 'everything' }).click()
    await page.getByText('Everybody who is signed in can delete everything.').waitFor()
    await page.getByRole('button', { name: 'Whom rule 4 is for' }).click()
    const callers = page.getByRole('group', { name: 'Whom it is for' })
    await callers.getByLabel('Everybody who is signed in').uncheck()
    await callers.getByLabel('Users with a role').first().fill('editor')
    await page.keyboard.press('Enter')
    await page.getByRole('button', { name: 'Whom rule 4 is for: Users with the role editor' }).waitFor()
    await inspectScreen(page, 'rules-callers')
    await page.keyboard.press('Escape')
    await page.keyboard.press('Escape')
    await page.getByText('can delete everything').waitFor({ state: 'detached' })

    await page.getByRole('button', { name: 'Add rule' }).click()
    await page.getByText('This rule adds nothing: rule 2 already allows it.').waitFor()
    await page.getByRole('button', { name: 'Operations of rule 5' }).click()
    await page.getByRole('menuitem', { name: 'update' }).click()
    await page.getByRole('button', { name: 'Scope of rule 5' }).click()
    await page.getByRole('menuitem', { name: 'what belongs to their workspace' }).click()
    await page.getByRole('button', { name: 'Whom rule 5 is for' }).click()
    await callers.getByLabel('Everybody who is signed in').uncheck()
    await callers.getByLabel('Members of their active workspace').check()
    await page.keyboard.press('Escape')
    await page.getByRole('button', { name: 'Whom rule 5 is for: Members of a workspace' }).waitFor()
    expect(await readMatrix()).toEqual({
      Guests: '– – – –',
      'Signed in': 'yes all own –',
      'Role editor': 'yes all own all',
      'In a workspace': 'yes all own, workspace –',
      'Role admin': 'yes all all all',
    })
    await page.getByRole('button', { name: 'Add limit' }).click()
    await page.getByRole('button', { name: 'How many limit 1 allows: 100' }).click()
    await page.getByLabel('A number').fill('7')
    await page.keyboard.press('Escape')
    await inspectScreen(page, 'rules')
    await page.getByRole('button', { name: 'Save', exact: true }).click()
    await page.getByText('The design is saved.').waitFor()
    const { body } = await call('GET', '/api/blueprints/contacts')
    expect(body.permissions.slice(3)).toEqual([
      { operation: 'delete', scope: 'tenant', roleBased: ['editor'] },
      { operation: 'update', scope: 'workspace', workspaceRoleBased: ['*'] },
    ])
    expect(body.limitations).toEqual([{ scope: 'user', value: 7 }])
    expect(errors).toEqual([])
  })

  test('an administrator sees as a guest, a role or a user what they may do, and which rule says so', async () => {
    const { page, errors } = demo
    const { body: own } = await call('GET', '/api/users?username=bob')
    const { body: mine } = await call('POST', '/api/blueprints/contacts/entities', {
      ...{ identifier: 'mine', name: 'Mine', user: own[0]._id },
    })
    expect(mine.identifier).toBe('mine')
    await page.getByRole('link', { name: 'See as' }).click()
    const verdicts = page.getByRole('table', { name: 'What they may do' })
    const row = (operation: string) => verdicts.getByRole('row', { name: new RegExp(`^${operation}`) })
    await row('read').getByText('Refused').waitFor()
    await page
      .getByRole('combobox', { name: 'See as' })
      .or(page.getByLabel('See as', { exact: true }))
      .first()
      .click()
    await page.getByRole('option', { name: 'Role editor' }).click()
    await row('delete').getByText('Rule 4: Users with the role editor may delete everything.').waitFor()
    await row('delete').getByText('Allowed').waitFor()
    await page.getByLabel('See as', { exact: true }).first().click()
    await page.getByLabel('See as', { exact: true }).first().fill('bob')
    await page.getByRole('option', { name: 'bob' }).click()
    await row('delete').getByText('Refused').waitFor()
    await row('update').getByText('What is their own.').waitFor()
    await page.getByLabel('For one entity').first().click()
    await page.getByRole('option', { name: 'Mine' }).click()
    await row('update').getByText('It is their own.').waitFor()
    await inspectScreen(page, 'see-as')
    expect(page.url()).toContain(`as=user:${own[0]._id}`)
    await page.reload()
    await row('update').getByText('It is their own.').waitFor()
    expect(errors).toEqual([])
  })

  test('rules that reach nothing, open labels and fields that cannot be written get a warning', async () => {
    const { page, errors } = demo
    const created = await call('POST', '/api/blueprints', {
      ...{ key: 'secrets', name: 'Secrets' },
      fields: [
        { key: 'title', type: 'string', required: true, writeRoles: ['editor'] },
        { key: 'notes', type: 'text', readRoles: ['editor'] },
      ],
      permissions: [
        { operation: 'read', scope: 'user', guest: true },
        { operation: 'create', roleBased: ['*'] },
        { operation: 'delete', scope: 'workspace', workspaceRoleBased: ['*'], workspaceLabelsBased: ['pro'] },
        { operation: 'update', scope: 'tenant', roleBased: ['auditor'] },
      ],
    })
    expect(created.status).toBe(201)
    await open('/data/secrets/all/design/rules')
    for (const warning of [
      'Guests own nothing, so that it reaches nothing for them.',
      'Anyone who can create a workspace can give it the label "pro".',
      'No user has the role “auditor” yet.',
      'Signed in, Role auditor, In a workspace, In a workspace, label pro: may create entities, but not write “title”',
    ])
      await page.getByText(warning).waitFor()
    expect((await readMatrix()).Guests).toBe('– – – –')
    expect(await readMatrix('Field access')).toMatchObject({
      Guests: '– –',
      'Signed in': 'reads writes',
      'Role editor': 'reads, writes reads, writes',
    })
    await inspectScreen(page, 'rules-warnings')
    expect(errors).toEqual([])
  })
})
