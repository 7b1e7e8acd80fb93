import { describe, expect, setDefaultTimeout, test } from 'bun:test'
import { hasBrowser } from '../fakes/browser'
import { apiCaller, createTempFolder, startAtoll } from '../fakes/cli'
import { findLink, openPage } from './admin-browser'

setDefaultTimeout(120_000)

describe.skipIf(!hasBrowser)('a form of an entity in a browser', () => {
  test('a closed tab, an expired session and a lost connection lose nothing of what was typed', async () => {
    const at = createTempFolder()
    const { page } = await openPage()
    let server = await startAtoll({ at }, '--demo')
    const { port, url } = server
    const [, token = ''] = await server.until(/x-api-key: (\S+)'/)
    const [, password = ''] = await server.until(/the password "([^"]+)"/)
    const call = apiCaller(url, { 'x-api-key': token, tenant: 'demo' })
    await page.goto(await findLink(server, '/admin/link'))
    await page.waitForURL('**/admin/home')

    // The tab is closed while somebody types.
    await page.goto(`${url}/admin/data/contacts/all/new`)
    const name = page.getByRole('textbox', { name: 'name', exact: true })
    await name.fill('Half typed')
    await page.reload()
    await page.getByText('What you typed before is here again.').waitFor()
    expect(await name.inputValue()).toBe('Half typed')

    // The session ends; the form goes on after a sign-in over it.
    await page.getByRole('textbox', { name: 'job' }).fill('Typist')
    await page.context().clearCookies()
    await page.getByRole('button', { name: 'Save' }).click()
    const signIn = page.getByRole('dialog', { name: 'Your session has ended' })
    await signIn.getByRole('textbox', { name: /^Password/ }).fill(password)
    await signIn.getByRole('button', { name: 'Sign in' }).click()
    await page.getByRole('heading', { name: 'Half typed' }).waitFor()
    const query = '/api/blueprints/contacts/entities?name=Half typed'
    expect((await call('GET', query)).body).toMatchObject([{ name: 'Half typed', job: 'Typist' }])

    // The server goes away, and comes back.
    await page.getByRole('textbox', { name: 'job' }).fill('Typist again')
    await server.end('SIGKILL')
    await page.getByText('The server cannot be reached. This page continues as soon as it can.').waitFor()
    server = await startAtoll({ at, env: { ATOLL_PORT: String(port) } }, '--demo')
    await page
      .getByText('The server cannot be reached. This page continues as soon as it can.')
      .waitFor({ state: 'detached' })
    expect(await page.getByRole('textbox', { name: 'job' }).inputValue()).toBe('Typist again')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('Saved.').waitFor()
    expect((await call('GET', query)).body).toMatchObject([{ name: 'Half typed', job: 'Typist again' }])
    await page.getByText('live', { exact: true }).waitFor()
    await page.close()
    await server.end('SIGKILL')
  })
})
