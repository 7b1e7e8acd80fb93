// engine: sqlite
import { expect, setDefaultTimeout, test } from 'bun:test'
import { hasBrowser } from '../fakes/browser'
import { createTempFolder, PASSWORD, startAtoll } from '../fakes/cli'
import { inspectScreen, openPage, PLAIN_HOST, setUpAdmin } from './admin-browser'

setDefaultTimeout(240_000)

test.skipIf(!hasBrowser)(
  'over plain HTTP by a name, an admin imports rows, copies a token, uploads a file, and reads why passkeys are missing',
  async () => {
    await using server = await startAtoll({ at: createTempFolder() })
    const { page, errors } = await openPage()
    await setUpAdmin(page, server)
    const { port } = new URL(server.url)
    const url = `http://${PLAIN_HOST}:${port}`

    await page.goto(`${url}/admin/home`)
    expect(await page.evaluate('isSecureContext')).toBe(false)
    await page.getByText('Passkeys are not available here, because they need HTTPS.').waitFor()
    await inspectScreen(page, 'plain-http-sign-in')
    await page.getByLabel('Username or e-mail address').fill('ada')
    await page.getByLabel('Password', { exact: true }).fill(PASSWORD)
    await page.getByRole('button', { name: 'Sign in', exact: true }).click()
    await page.getByRole('button', { name: 'Find' }).waitFor()

    await page.goto(`${url}/admin/account?show=sign-in`)
    await page.getByText('Passkeys are not available here, because they need HTTPS.').waitFor()
    await page.goto(`${url}/admin/account?show=tokens`)
    await page.getByRole('button', { name: 'Create an API token' }).click()
    await page.getByRole('textbox', { name: 'Name', exact: false }).last().fill('reports')
    await page.getByRole('button', { name: 'Create token' }).click()
    const token = await page.getByText(/^atl_[a-f0-9]{64}$/).textContent()
    await page.getByRole('button', { name: 'Copy token' }).click()
    await page.getByRole('button', { name: 'Copied token' }).waitFor()
    await page.getByRole('button', { name: 'Find' }).click()
    const search = page.getByRole('textbox', { name: 'Find anything' })
    await search.click()
    await page.keyboard.press('Control+V')
    expect(await search.inputValue()).toBe(token!)

    await page.goto(`${url}/admin/blueprints/import`)
    await page
      .locator('input[type=file]')
      .setInputFiles({ name: 'People.csv', mimeType: 'text/csv', buffer: Buffer.from('name,age\nAda,36\nAlan,41\n') })
    await page.getByRole('button', { name: 'Create and import' }).click()
    await page.getByRole('cell', { name: 'Alan' }).waitFor()

    await page.goto(`${url}/admin/content/files`)
    const chooser = page.waitForEvent('filechooser')
    await page.getByRole('button', { name: 'Upload files' }).click()
    await (await chooser).setFiles([{ name: 'notes.txt', mimeType: 'text/plain', buffer: Buffer.from('notes') }])
    await page.getByRole('cell', { name: 'notes.txt' }).click()
    await page.getByRole('button', { name: 'Copy link' }).click()
    await page.getByText('The link is copied.').waitFor()
    expect(errors).toEqual([])
    await page.close()
  },
)
