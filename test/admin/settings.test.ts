// engine: sqlite
import { describe, expect, setDefaultTimeout, test } from 'bun:test'
import type { Page } from 'playwright-core'
import { hasBrowser } from '../fakes/browser'
import { apiCaller, createTempFolder, createTenantByCli, PASSWORD, signIn, startAtoll } from '../fakes/cli'
import { startDnsServer } from '../fakes/dns-server'
import { closeNotices, inspectScreen, openEmpty, openPage } from './admin-browser'

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
    await page.getByRole('slider').first().waitFor({ state: 'hidden' })
    await page.getByRole('combobox', { name: 'Time zone' }).fill('lisb')
    await page.getByRole('option', { name: 'Europe/Lisbon' }).click()
    await inspectScreen(page, 'settings-general')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('Saved.').waitFor()
    const { body } = await apiCaller(server.url)('GET', '/api/configurations/app-configuration')
    expect(body.metadata).toEqual({
      name: 'Aurora',
      logo: `data:image/svg+xml;base64,${Buffer.from(LOGO).toString('base64')}`,
      accentColor: '#ff9900',
      timezone: 'Europe/Lisbon',
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

  test('a website is proven by the record that its panel shows, providers keep their secret, and mails can be reworded', async () => {
    const dns = await startDnsServer({})
    const env = { ATOLL_HOST_CLAIMS: 'dns', ATOLL_DNS_SERVERS: dns.address }
    const at = { at: createTempFolder(), env }
    for (const id of ['acme', 'other']) await createTenantByCli(at, id)
    await using server = await startAtoll(at)
    const { page, errors } = await openPage()
    const ask = apiCaller(server.url, await signIn(server.url, 'acme'))
    await page.goto(`${server.url}/admin?tenant=acme`)
    await page.getByLabel('Username or e-mail address').fill('root')
    await page.getByRole('textbox', { name: /^Password/ }).fill(PASSWORD)
    await page.getByRole('button', { name: 'Sign in' }).click()

    await page.getByRole('link', { name: 'Settings' }).click()
    await page.getByRole('link', { name: 'Hosts' }).click()
    await page.getByRole('cell', { name: 'acme.test' }).waitFor()
    await inspectScreen(page, 'settings-hosts')
    await page.getByRole('button', { name: 'Add a website' }).first().click()
    await page.getByLabel('Address of the website').fill('shop')
    await page.getByRole('button', { name: 'Add website', exact: true }).click()
    await page.getByText('is not the address of a website').waitFor()
    await page.getByLabel('Address of the website').fill('https://shop.example.com')
    await page.getByRole('button', { name: 'Add website', exact: true }).click()
    await page.getByText('_atoll.shop.example.com').waitFor()
    await inspectScreen(page, 'settings-host')
    dns.texts['_atoll.shop.example.com'] = ['atoll-tenant=acme']
    await page.getByRole('button', { name: 'Check again' }).click()
    await page.getByText('Served').nth(2).waitFor()
    expect((await ask('GET', '/api/configurations/app-configuration')).body.hosts).toEqual([
      { host: 'shop.example.com', state: 'served' },
    ])

    await page.getByRole('link', { name: 'Sign-in' }).click()
    await page.getByLabel('Everybody may sign up').uncheck()
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('Saved.').first().waitFor()
    await page.getByRole('button', { name: 'Add a provider' }).click()
    await page.getByRole('combobox', { name: 'Provider' }).click()
    await page.getByRole('option', { name: 'OpenID Connect' }).click()
    await page.getByRole('textbox', { name: 'Name' }).fill('corp')
    await page.getByRole('textbox', { name: 'Issuer' }).fill('nonsense')
    await page.getByRole('textbox', { name: 'Client id' }).fill('atoll')
    await page.getByRole('textbox', { name: 'Client secret' }).fill('hush hush')
    await page.getByRole('button', { name: 'Add provider', exact: true }).click()
    await page.getByText('Write a whole address').waitFor()
    await page.getByRole('textbox', { name: 'Issuer' }).fill('https://id.example.com')
    await inspectScreen(page, 'settings-provider-new')
    await page.getByRole('button', { name: 'Add provider', exact: true }).click()
    await page.getByText(`${server.url}/api/auth/corp/callback`).waitFor()
    await inspectScreen(page, 'settings-provider')
    const { metadata } = (await ask('GET', '/api/configurations/auth-configuration')).body
    expect(metadata).toEqual({
      allowSignup: false,
      providers: { corp: { clientId: 'atoll', kind: 'oidc', issuer: 'https://id.example.com' } },
    })
    expect((await ask('GET', '/api/auth/providers')).body).toEqual(['corp'])
    await page.getByRole('button', { name: 'Close', exact: true }).click()
    await inspectScreen(page, 'settings-sign-in')

    await closeNotices(page)
    await page.getByRole('link', { name: 'Mail', exact: true }).click()
    await page.getByText('The operator has set no mail server').waitFor()
    await page.getByRole('cell', { name: 'Invitation to a workspace', exact: true }).click()
    await page.getByRole('textbox', { name: 'Subject' }).fill('Join {{workspace}}')
    await page.getByText('Join Engineering').waitFor()
    await inspectScreen(page, 'settings-mail')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByRole('cell', { name: 'Join {{workspace}}' }).waitFor()
    await page.getByRole('button', { name: 'Send a test mail' }).click()
    await page.getByText('Add an e-mail address to your profile first.').waitFor()
    const { body: me } = await ask('GET', '/api/me')
    await ask('PUT', `/api/users/${me._id}`, { email: 'ada@example.com' })
    await page.getByRole('button', { name: 'Send a test mail' }).click()
    await page.getByText('A test mail is on its way').waitFor()
    await closeNotices(page)
    await page.getByRole('link', { name: 'Outbox' }).click()
    await page.getByRole('cell', { name: 'Join Engineering' }).waitFor()
    await page.getByRole('cell', { name: 'Join Engineering' }).click()
    await page.frameLocator('iframe').getByText('you are invited').waitFor()
    await inspectScreen(page, 'settings-outbox')
    expect(errors.filter((error) => !/status of 4\d\d/.test(error))).toEqual([])
    dns.stop()
    await page.close()
  })
})
