import { describe, expect, setDefaultTimeout, test } from 'bun:test'
import type { Page } from 'playwright-core'
import { hasBrowser } from '../fakes/browser'
import { apiCaller } from '../fakes/cli'
import { inspectScreen, openEmpty } from './admin-browser'

setDefaultTimeout(240_000)

const LOGO = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 10 10"><circle cx="5" cy="5" r="5" fill="#b8326a"/></svg>`

const READ_ACCENT =
  "getComputedStyle(document.documentElement).getPropertyValue('--mantine-primary-color-filled').trim()"
const readAccent = (page: Page) => page.evaluate<string>(READ_ACCENT)

describe.skipIf(!hasBrowser)('the settings of a tenant in a browser', () => {
  test('the page and its sign-in wear the name, the logo and a readable form of the accent colour', async () => {
    await using opened = await openEmpty()
    const { page, server, errors } = opened
    await page.getByRole('link', { name: 'Settings' }).click()
    await page.getByRole('textbox', { name: 'Name' }).fill('Aurora')
    const logo = { name: 'logo.svg', mimeType: 'image/svg+xml', buffer: Buffer.from(LOGO) }
    await page.locator('input[type=file]').setInputFiles(logo)
    await page.getByRole('img', { name: 'The logo' }).waitFor()
    await page.getByRole('textbox', { name: 'Accent colour' }).fill('#ff9900')
    await page.getByText('Its contrast with white is 2.1 : 1').waitFor()
    await page.keyboard.press('Tab')
    await inspectScreen(page, 'settings-general')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('Saved.').waitFor()
    const { body } = await apiCaller(server.url)('GET', '/api/configurations/app-configuration')
    expect(body.metadata).toEqual({
      name: 'Aurora',
      logo: `data:image/svg+xml;base64,${Buffer.from(LOGO).toString('base64')}`,
      accentColor: '#ff9900',
    })
    await page.waitForFunction("document.title === 'General · Aurora'")
    const accent = await readAccent(page)
    expect(accent).toMatch(/^#[89a]\w[4-6]\w[0-2]\w$/)
    expect(await page.locator('link[rel=icon]').getAttribute('href')).toStartWith('data:image/svg+xml')

    // The colours are there before the server has answered.
    const held = Promise.withResolvers<void>()
    await page.route('**/app-configuration', (route) => held.promise.then(() => route.continue()))
    await page.reload()
    await page.getByRole('heading', { name: 'General' }).waitFor()
    expect(await readAccent(page)).toBe(accent)
    held.resolve()
    await page.getByRole('textbox', { name: 'Name' }).waitFor()
    await inspectScreen(page, 'settings-branded')

    await page.getByRole('button', { name: 'Account of ada' }).click()
    await page.getByRole('menuitem', { name: 'Sign out' }).click()
    await page.getByRole('heading', { name: 'Sign in' }).waitFor()
    await page.getByText('Aurora').waitFor()
    await inspectScreen(page, 'sign-in-branded')
    expect(errors).toEqual([])
  })
})
