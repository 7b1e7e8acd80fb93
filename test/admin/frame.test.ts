// engine: sqlite
import { describe, expect, setDefaultTimeout, test } from 'bun:test'
import { listSections } from '../../src/admin/sections'
import { hasBrowser } from '../fakes/browser'
import { inspectScreen, openDemo, PHONE } from './admin-browser'

setDefaultTimeout(240_000)

describe.skipIf(!hasBrowser)('the frame', () => {
  test('Ctrl-K opens the command palette, which finds a screen, a blueprint, an entity and a user, and Enter opens what is chosen', async () => {
    await using demo = await openDemo()
    const { page, errors } = demo
    await page.getByText('300 contacts').waitFor()
    const find = async (words: string) => {
      await page.keyboard.press('Control+K')
      await page.getByRole('textbox', { name: 'Find anything' }).fill(words)
    }
    await find('nadia virt')
    await page
      .getByRole('button', { name: /Nadia Virtanen/ })
      .first()
      .waitFor()
    await inspectScreen(page, 'command-palette')
    await page.keyboard.press('ArrowDown')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Nadia Virtanen' }).waitFor()
    await find('compan')
    await page.getByRole('button', { name: 'Companies', exact: true }).click()
    await page.waitForURL('**/admin/data/companies')
    await find('home')
    await page.getByRole('button', { name: 'Home' }).click()
    await page.waitForURL('**/admin/home')
    await find('no such thing anywhere')
    await page.getByText('No results for “no such thing anywhere”').waitFor()
    await page.keyboard.press('Escape')
    expect(errors).toEqual([])
  })

  test('keys that are typed while the palette loads search in it, and Enter opens what is found first', async () => {
    await using demo = await openDemo()
    const { page, errors } = demo
    await page.route('**/command-palette*', async (route) => {
      await Bun.sleep(500)
      await route.continue()
    })
    await page.reload()
    await page.getByText('300 contacts').waitFor()
    await page.keyboard.press('Control+K')
    await page.keyboard.type('timezonx')
    await page.keyboard.press('Backspace')
    await page.keyboard.type('e')
    await page.keyboard.press('Enter')
    await page.waitForURL('**/admin/settings/general')
    // It is loaded now: the first key after Ctrl-K counts, too.
    await page.keyboard.press('Control+K')
    await page.keyboard.type('nadia virtanen')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Nadia Virtanen' }).waitFor()
    await page.keyboard.press('Control+K')
    await page.keyboard.press('Escape')
    await page.keyboard.press('?')
    await page.getByRole('dialog', { name: 'Keyboard shortcuts' }).waitFor()
    expect(errors).toEqual([])
  })

  test('the palette finds actions, settings and documents by the words that people use for them', async () => {
    await using demo = await openDemo()
    const { page, errors } = demo
    await page.getByText('300 contacts').waitFor()
    await page.keyboard.press('Control+K')
    const field = page.getByRole('textbox', { name: 'Find anything' })
    for (const [words, label] of [
      ['import', 'Import into Contacts'],
      ['csv', 'Export Companies'],
      ['token', 'Your account: API tokens'],
      ['webhook', 'Automation: Integrations'],
      ['backup', 'Operator page'],
      ['trash', 'Automation: Events'],
      ['timezone', 'Settings: General'],
      ['permissions contacts', 'Rules of Contacts'],
      ['new user', 'New user'],
      ['docs', 'API reference'],
    ] as const) {
      await field.fill(words)
      await page.getByRole('button', { name: label, exact: true }).waitFor()
    }
    await field.fill('export contacts')
    await page.getByRole('button', { name: 'Export Contacts' }).click()
    await page.getByRole('dialog', { name: /Export/ }).waitFor()
    await page.keyboard.press('Escape')
    for (const { path } of listSections(['admin']).flatMap(({ actions = [] }) => actions)) {
      await page.goto(`${new URL(page.url()).origin}/admin${path}`)
      await page.getByRole('heading').or(page.getByText('There is no such page.')).first().waitFor()
      expect(await page.getByText('There is no such page.').count(), path).toBe(0)
    }
    expect(errors).toEqual([])
  })

  test('a phone has a bar with the first sections, and a sheet that leads to all sections and blueprints', async () => {
    await using demo = await openDemo()
    const { page, errors } = demo
    await page.setViewportSize(PHONE)
    await page.getByRole('link', { name: 'Data', exact: true }).click()
    await page.waitForURL('**/admin/data')
    await page.getByRole('button', { name: 'Menu' }).click()
    await page.getByRole('link', { name: 'Contacts', exact: true }).last().waitFor()
    await inspectScreen(page, 'phone-menu', [PHONE])
    await page.getByRole('dialog').getByRole('link', { name: 'Contacts', exact: true }).click()
    await page.waitForURL('**/admin/data/contacts')
    expect(await page.getByRole('dialog').count()).toBe(0)
    expect(errors).toEqual([])
  })
})
