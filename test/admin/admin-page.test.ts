// engine: sqlite
import { describe, expect, setDefaultTimeout, test } from 'bun:test'
import { hasBrowser } from '../fakes/browser'
import { apiCaller, createTempFolder, PASSWORD, startAtoll } from '../fakes/cli'
import { findLink, inspectScreen, openPage, setUpAdmin } from './admin-browser'

setDefaultTimeout(240_000)

describe.skipIf(!hasBrowser)('the admin page in a browser', () => {
  test('the set-up link leads a new administrator to the home screen, and later they sign in by password', async () => {
    await using server = await startAtoll({ at: createTempFolder() })
    const { page, errors } = await openPage()
    await page.goto(await findLink(server, '/admin/set-up'))
    await inspectScreen(page, 'set-up')
    await page.getByLabel('Username').fill('ada')
    await page.getByRole('textbox', { name: /^Password/ }).fill(PASSWORD)
    await page.getByLabel('Name of your product').fill('Paper Boats')
    await page.getByRole('button', { name: 'Create account' }).click()
    await page.getByRole('heading', { name: 'What do you want to build?' }).waitFor()
    await inspectScreen(page, 'start')
    await page.getByRole('link', { name: 'start empty' }).click()
    await page.waitForURL('**/admin/home')
    await page.getByText('There are no blueprints yet.').waitFor()
    await inspectScreen(page, 'home-empty')
    expect(await page.title()).toEndWith(' · Paper Boats')
    const { page: tab } = await openPage()
    await tab.goto(`${server.url}/admin/home`)
    await tab.getByText('Paper Boats', { exact: true }).waitFor()
    expect(await tab.title()).toBe('Sign in · Paper Boats')
    await tab.close()

    await page.getByRole('button', { name: 'Account of ada' }).click()
    await page.getByRole('menuitem', { name: 'Sign out' }).click()
    await page.getByRole('heading', { name: 'Sign in' }).waitFor()
    await inspectScreen(page, 'sign-in')
    expect(errors).toEqual([])
    await page.getByLabel('Username or e-mail address').fill('ada')
    await page.getByRole('textbox', { name: /^Password/ }).fill('wrong horse')
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByText('The username or password is incorrect.').waitFor()
    await page.getByRole('textbox', { name: /^Password/ }).fill(PASSWORD)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByText('There are no blueprints yet.').waitFor()
    await page.close()
  })

  test('a new administrator creates a blueprint with four fields and three entities, which guests can read', async () => {
    await using server = await startAtoll({ at: createTempFolder() })
    const { page, errors } = await openPage()
    await setUpAdmin(page, server)
    await page.getByRole('link', { name: 'Create a blueprint' }).click()
    await page.getByLabel('Name', { exact: false }).first().fill('Board Games')
    for (const [index, [name, type]] of (
      [
        ['players', 'Whole number'],
        ['published', 'Date'],
        ['owned', 'Yes or no'],
      ] as const
    ).entries()) {
      await page.getByRole('button', { name: 'Add field' }).click()
      await page.getByLabel(`Name of field ${index + 2}`).fill(name)
      await page.getByRole('combobox', { name: `Type of field ${index + 2}` }).click()
      await page.getByRole('option', { name: type, exact: true }).click()
    }
    await page.getByLabel('Everybody reads all').check()
    await inspectScreen(page, 'new-blueprint')
    await page.getByRole('button', { name: 'Create blueprint' }).click()
    await page.getByText('There are no board games yet.').waitFor()
    await inspectScreen(page, 'entities-empty')
    for (const [name, players] of [
      ['Go', '2'],
      ['Chess', '2'],
      ['Carcassonne', '5'],
    ] as const) {
      await page.getByRole('button', { name: 'New' }).click()
      await page.getByRole('textbox', { name: 'name' }).fill(name)
      await page.getByRole('textbox', { name: 'players' }).fill(players)
      await page.getByRole('button', { name: 'Save' }).click()
      await page.getByRole('heading', { name, exact: true }).waitFor()
      await page.keyboard.press('Escape')
    }
    await page.getByText('3 board games').waitFor()
    const { body } = await apiCaller(server.url)('GET', '/api/blueprints/board-games/entities?$sort=name')
    expect(body.map(({ name, players }: Record<string, unknown>) => [name, players])).toEqual([
      ['Carcassonne', 5],
      ['Chess', 2],
      ['Go', 2],
    ])
    expect(errors).toEqual([])
    await page.close()
  })

  test('the demo link signs in, and its contacts can be filtered, sorted, created and changed', async () => {
    await using server = await startAtoll({ at: createTempFolder() }, '--demo')
    const { page, errors } = await openPage()
    await page.goto(await findLink(server, '/admin/link'))
    await page.waitForURL('**/admin/home')
    await page.getByText('300 contacts').waitFor()
    await inspectScreen(page, 'home')

    await page.getByRole('navigation').getByRole('link', { name: 'Contacts', exact: true }).click()
    await page.getByRole('cell', { name: 'Nadia Virtanen' }).waitFor()
    await inspectScreen(page, 'entities')
    await page.getByRole('button', { name: 'Filter' }).click()
    await page.getByLabel('Field').first().click()
    await page.getByRole('option', { name: 'worth' }).click()
    await page.getByLabel('Condition').first().click()
    await page.getByRole('option', { name: 'is at least' }).click()
    await page.getByLabel('Value').fill('50000')
    await page.getByRole('button', { name: 'Add filter' }).click()
    await page.getByText('132 shown').waitFor()
    expect(page.url()).toEndWith('/admin/data/contacts?worth[$gte]=50000')
    await page.getByRole('button', { name: 'name', exact: true }).click()
    await page.getByRole('cell', { name: 'Amara Bauer' }).first().waitFor()
    expect(errors).toEqual([])

    await page.getByRole('button', { name: 'New' }).click()
    await page.getByLabel('email').fill('nonsense')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('name is required.').waitFor()
    await page.getByText('email must be an e-mail address.').waitFor()
    await inspectScreen(page, 'entity-refused')
    await page.getByLabel('name').first().fill('<b>Grace</b> Hopper')
    await page.getByLabel('email').fill('grace@example.com')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByRole('heading', { name: '<b>Grace</b> Hopper' }).waitFor()
    await page.getByLabel('job').fill('Rear admiral')
    await page.keyboard.press('Control+Enter')
    await page.getByText('Saved.').waitFor()
    await page.keyboard.press('Escape')
    await page.goto(`${server.url}/admin/data/contacts?email=grace@example.com&tenant=demo`)
    await page.getByRole('cell', { name: 'Rear admiral' }).waitFor()
    await page.close()
  })
})
