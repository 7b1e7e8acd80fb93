// engine: sqlite
import { describe, expect, setDefaultTimeout, test } from 'bun:test'
import type { Page } from 'playwright-core'
import { hasBrowser } from '../fakes/browser'
import { apiCaller, createTempFolder, PASSWORD, startAtoll } from '../fakes/cli'
import { callDemo, findLink, keepScreenshot, openDemo, openPage } from './admin-browser'

setDefaultTimeout(120_000)

const CONTACTS = '/api/blueprints/contacts/entities'

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
    await page.getByText('Your unsaved changes were restored.').waitFor()
    expect(await name.inputValue()).toBe('Half typed')

    // The session ends; the form goes on after a sign-in over it.
    await page.getByRole('textbox', { name: 'job' }).fill('Typist')
    await page.context().clearCookies()
    const save = page.getByRole('button', { name: 'Save' })
    // A request of the page itself may notice the end of the session before, and then the dialog covers the button.
    const isSent = await save.click({ timeout: 5_000 }).then(
      () => true,
      () => false,
    )
    const signIn = page.getByRole('dialog', { name: 'Your session has ended' })
    await signIn.getByRole('textbox', { name: /^Password/ }).fill(password)
    await signIn.getByRole('button', { name: 'Sign in' }).click()
    if (!isSent) await save.click()
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

  test('without a network, a list and a form that is saved say so, and go on by themselves', async () => {
    await using demo = await openDemo()
    const { page, server } = demo
    const call = await callDemo(server)
    const lost = page.getByText('The server cannot be reached. This page continues as soon as it can.')
    await page.goto(`${server.url}/admin/data/contacts?$sort=-created`)
    await page.getByText('live', { exact: true }).waitFor()
    await page.context().setOffline(true)
    await lost.waitFor()
    await call('POST', CONTACTS, { identifier: 'unseen', name: 'Not Yet Seen' })
    await page.context().setOffline(false)
    await lost.waitFor({ state: 'detached' })
    await page.getByRole('cell', { name: 'Not Yet Seen' }).click()
    const name = page.getByRole('textbox', { name: 'name', exact: true })
    await name.fill('Seen')

    await page.context().setOffline(true)
    await page.getByRole('button', { name: 'Save' }).click()
    await lost.waitFor()
    await keepScreenshot(page, 'entity-offline')
    expect(await name.inputValue()).toBe('Seen')
    expect((await call('GET', `${CONTACTS}/unseen`)).body.name).toBe('Not Yet Seen')
    await page.context().setOffline(false)
    // What was being saved is saved.
    await page.getByText('Saved.').waitFor()
    await lost.waitFor({ state: 'detached' })
    expect((await call('GET', `${CONTACTS}/unseen`)).body.name).toBe('Seen')
  })

  test('a draft comes back in a new tab, but not for another user and not after a sign-out', async () => {
    await using demo = await openDemo()
    const { page, server } = demo
    const call = await callDemo(server)
    await call('POST', '/api/users', { username: 'eve', password: PASSWORD, roles: ['admin'] })
    const form = `${server.url}/admin/data/contacts/all/new?tenant=demo`
    const nameIn = (tab: Page) => tab.getByRole('textbox', { name: 'name', exact: true })
    const openForm = async () => {
      const opening = page.waitForEvent('popup')
      await page.evaluate(`void open(${JSON.stringify(form)})`)
      return opening
    }
    const signIn = async (tab: Page, username: string, password: string) => {
      await tab.getByLabel('Username or e-mail address').fill(username)
      await tab.getByRole('textbox', { name: /^Password/ }).fill(password)
      await tab.getByRole('button', { name: 'Sign in', exact: true }).click()
    }
    let tab = await openForm()
    await nameIn(tab).fill('Half typed')
    await tab.close()
    tab = await openForm()
    await tab.getByText('Your unsaved changes were restored.').waitFor()
    expect(await nameIn(tab).inputValue()).toBe('Half typed')

    // The session ends, and somebody else signs in to the same browser.
    await tab.context().clearCookies()
    await tab.reload()
    await signIn(tab, 'eve', PASSWORD)
    await tab.getByRole('button', { name: 'Account of eve' }).waitFor()
    expect(await nameIn(tab).inputValue()).toBe('')
    await nameIn(tab).fill("Eve's")
    await tab.getByRole('button', { name: 'Close', exact: true }).click()
    await tab.getByRole('button', { name: 'Account of eve' }).click()
    await tab.getByRole('menuitem', { name: 'Sign out' }).click()
    await tab.getByRole('heading', { name: 'Sign in' }).waitFor()
    expect(await tab.evaluate("Object.keys(localStorage).filter((key) => key.startsWith('atoll-draft'))")).toEqual([])
    await tab.goto(form)
    await signIn(tab, 'eve', PASSWORD)
    await nameIn(tab).waitFor()
    expect(await nameIn(tab).inputValue()).toBe('')
    await tab.close()
  })
})
