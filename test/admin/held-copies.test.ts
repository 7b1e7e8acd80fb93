// engine: sqlite
import { describe, expect, setDefaultTimeout, test } from 'bun:test'
import type { Page } from 'playwright-core'
import { hasBrowser } from '../fakes/browser'
import { apiCaller, createTempFolder, createTenantByCli, PASSWORD, signIn, startAtoll } from '../fakes/cli'
import { inspectScreen, openPage } from './admin-browser'

setDefaultTimeout(200_000)

const TOKEN = 'the-operator-token-of-the-copies'

async function openAsAdmin(page: Page, url: string, tenant: string) {
  await page.goto(`${url}/admin/?tenant=${tenant}`)
  await page.getByLabel('Username').fill('root')
  await page.getByRole('textbox', { name: /^Password/ }).fill(PASSWORD)
  await page.getByRole('button', { name: 'Sign in', exact: true }).click()
  await page.waitForURL('**/admin/home')
}

describe.skipIf(!hasBrowser)('a copy of a tenant in a browser', () => {
  test('the operator copies a tenant without secrets, an admin reads that it is held, and the operator lets it act', async () => {
    const at = { at: createTempFolder(), env: { ATOLL_OPERATOR_TOKEN: TOKEN } }
    await createTenantByCli(at, 'acme')
    await using server = await startAtoll(at)
    const acme = apiCaller(server.url, await signIn(server.url, 'acme'))
    const connection = { name: 'Cards', kind: 'stripe', authentication: { secretKey: 'sk_live_1' } }
    expect((await acme('POST', '/api/integration-sources', connection)).status).toBe(201)
    await using cleanup = new AsyncDisposableStack()
    const [{ page, errors }, admin] = [await openPage(), await openPage()]
    for (const opened of [page, admin.page]) cleanup.defer(() => opened.close())

    await page.goto(`${server.url}/admin/operator/tenants/acme`)
    await page.getByLabel('Operator token').fill(TOKEN)
    await page.getByRole('button', { name: 'Sign in' }).click()
    const backups = page.getByRole('region', { name: 'Backups', exact: true })
    await backups.getByRole('button', { name: 'Copy to a new tenant…' }).click()
    await backups.getByLabel('Id of the new tenant').fill('acme-test')
    await backups.getByRole('checkbox', { name: 'Without secrets' }).check()
    await inspectScreen(page, 'held-copy-clone-form')
    await backups.getByRole('button', { name: 'Copy tenant' }).click()
    await backups.getByText(/^Left out, and to be entered again: connection/).waitFor()
    await inspectScreen(page, 'held-copy-cloned')
    await backups.getByRole('link', { name: 'Open acme-test' }).click()
    const held = page.getByRole('region', { name: 'Held copy' })
    await held.getByText('does nothing outside').waitFor()
    await inspectScreen(page, 'held-copy-operator')
    const rowOf = (id: string) => page.getByRole('row', { name: new RegExp(`^${id} `) })
    expect(await rowOf('acme-test').getByText('Held copy').count()).toBe(1)
    expect(await rowOf('acme').getByText('Held copy').count()).toBe(0)

    await openAsAdmin(admin.page, server.url, 'acme-test')
    const banner = admin.page.getByRole('region', { name: 'Copy of a tenant' })
    await banner.getByText('This tenant is a copy that does nothing outside.').waitFor()
    await banner.getByText('atoll tenant resume acme-test --outgoing').waitFor()
    await inspectScreen(admin.page, 'held-copy-banner')

    await held.getByRole('button', { name: 'Let it act outside…' }).click()
    await inspectScreen(page, 'held-copy-confirmation')
    await page.getByRole('dialog').getByRole('button', { name: 'Let it act outside' }).click()
    await held.waitFor({ state: 'detached' })
    expect(await page.getByText('Held copy').count()).toBe(0)
    const copy = apiCaller(server.url, await signIn(server.url, 'acme-test'))
    expect((await copy('GET', '/api/installation')).body.outgoingHeld).toBe(false)
    await admin.page.reload()
    await admin.page.getByRole('heading', { level: 1 }).first().waitFor()
    await admin.page.waitForLoadState('networkidle')
    expect(await banner.count()).toBe(0)
    await page.getByRole('link', { name: 'Events' }).click()
    await page.getByRole('cell', { name: 'Acts outside again' }).waitFor()
    expect([...errors, ...admin.errors].filter((error) => !/status of 4\d\d/.test(error))).toEqual([])
  })
})
