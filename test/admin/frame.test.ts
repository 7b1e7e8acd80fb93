import { describe, expect, setDefaultTimeout, test } from 'bun:test'
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
    await page.getByText('Nothing has this name.').waitFor()
    await page.keyboard.press('Escape')
    expect(errors).toEqual([])
  })

  test('a phone has a bar with the first sections, and a sheet that leads to all sections and blueprints', async () => {
    await using demo = await openDemo()
    const { page, errors } = demo
    await page.setViewportSize(PHONE)
    await page.getByRole('link', { name: 'Data' }).click()
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
