import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import axe from 'axe-core'
import type { Browser, Page } from 'playwright-core'
import { hasBrowser, launchBrowser } from '../fakes/browser'
import { apiCaller, createTempFolder, PASSWORD, type RunningAtoll, startAtoll } from '../fakes/cli'

setDefaultTimeout(120_000)

/** Screenshots are kept, to be looked at. */
const SCREENSHOTS = join(import.meta.dir, '../../dist/screenshots')
const DESKTOP = { width: 1_280, height: 800 }
const PHONE = { width: 390, height: 800 }

let browser: Browser
beforeAll(async () => {
  mkdirSync(SCREENSHOTS, { recursive: true })
  if (hasBrowser) browser = await launchBrowser()
})
afterAll(() => browser?.close())

/** Opens a page that records what the browser reports as an error. Refused requests are reported by their status. */
async function openPage() {
  const page = await browser.newPage({ viewport: DESKTOP })
  const errors: string[] = []
  page.on('console', (message) => message.type() === 'error' && errors.push(message.text()))
  page.on('pageerror', (error) => errors.push(error.message))
  return { page, errors }
}

/** Returns the serious and critical faults of accessibility of what the page shows. */
async function findFaults(page: Page) {
  await page.evaluate(axe.source)
  const { violations } = await page.evaluate(() => (globalThis as unknown as { axe: typeof axe }).axe.run())
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' ')}`)
}

/** Keeps screenshots of a screen, wide and narrow, light and dark, and expects no fault of accessibility in them. */
async function inspectScreen(page: Page, name: string) {
  for (const colorScheme of ['light', 'dark'] as const)
    for (const viewport of [DESKTOP, PHONE]) {
      await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
      await page.setViewportSize(viewport)
      await page.screenshot({ path: join(SCREENSHOTS, `${name}-${viewport.width}-${colorScheme}.png`) })
      expect(await findFaults(page), `${name} ${viewport.width} ${colorScheme}`).toEqual([])
    }
  await page.emulateMedia({ colorScheme: 'light' })
  await page.setViewportSize(DESKTOP)
}

const findLink = async (server: RunningAtoll, path: string) =>
  (await server.until(new RegExp(`http://127\\.0\\.0\\.1:\\d+${path}\\S*#\\S+`)))[0]

describe.skipIf(!hasBrowser)('the admin page in a browser', () => {
  test('the set-up link leads a new administrator to the home screen, and later they sign in by password', async () => {
    await using server = await startAtoll({ at: createTempFolder() })
    const { page, errors } = await openPage()
    await page.goto(await findLink(server, '/admin/set-up'))
    await inspectScreen(page, 'set-up')
    await page.getByLabel('Username').fill('ada')
    await page.getByRole('textbox', { name: /^Password/ }).fill(PASSWORD)
    await page.getByRole('button', { name: 'Create account' }).click()
    await page.waitForURL('**/admin/home')
    await page.getByText('There are no blueprints yet.').waitFor()
    await inspectScreen(page, 'home-empty')

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
    await page.goto(await findLink(server, '/admin/set-up'))
    await page.getByLabel('Username').fill('ada')
    await page.getByRole('textbox', { name: /^Password/ }).fill(PASSWORD)
    await page.getByRole('button', { name: 'Create account' }).click()
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

    await page.getByRole('link', { name: 'Contacts', exact: true }).click()
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
