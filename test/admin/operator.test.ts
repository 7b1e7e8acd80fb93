// engine: sqlite
import { describe, expect, setDefaultTimeout, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { hasBrowser } from '../fakes/browser'
import { createAuthority } from '../fakes/certificate-authority'
import { apiCaller, createTempFolder, createTenantByCli, PASSWORD, signIn, startAtoll } from '../fakes/cli'
import { startDnsServer } from '../fakes/dns-server'
import { inspectScreen, openPage } from './admin-browser'

setDefaultTimeout(200_000)

const TOKEN = 'the-operator-token-of-this-test'

describe.skipIf(!hasBrowser)('the pages of the operator in a browser', () => {
  test('the operator creates, opens, suspends and deletes tenants, and sees health, log, events and settings', async () => {
    const at = { at: createTempFolder(), env: { ATOLL_OPERATOR_TOKEN: TOKEN, ATOLL_LOG_LEVEL: 'info' } }
    for (const id of ['acme', 'globex']) await createTenantByCli(at, id)
    await using server = await startAtoll(at)
    const { page, errors } = await openPage()
    const operator = apiCaller(server.url, { authorization: `Bearer ${TOKEN}` })
    const acme = apiCaller(server.url, await signIn(server.url, 'acme'))

    await page.goto(`${server.url}/admin/operator`)
    await page.getByLabel('Operator token').fill('wrong')
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByText('This is not the operator token.').waitFor()
    await inspectScreen(page, 'operator-sign-in')
    await page.getByLabel('Operator token').fill(TOKEN)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByRole('cell', { name: 'globex', exact: true }).waitFor()
    expect(await page.evaluate<number>('localStorage.length')).toBe(0)

    await page.getByRole('button', { name: 'New' }).click()
    await page.getByRole('textbox', { name: 'Id' }).fill('Not An Id')
    await page.getByRole('button', { name: 'Create' }).click()
    await page.getByText('is not a valid tenant id').waitFor()
    await page.getByRole('textbox', { name: 'Id' }).fill('initech')
    await page.getByRole('button', { name: 'Create' }).click()
    const link = await page.getByRole('link', { name: 'Open it in a new tab' }).getAttribute('href')
    expect(link).toStartWith(`${server.url}/admin/set-up?tenant=initech#`)
    await inspectScreen(page, 'operator-created')
    await page.getByRole('button', { name: 'Done' }).click()

    await page.getByRole('searchbox', { name: 'Search tenants' }).fill('acme.te')
    await page.getByRole('cell', { name: 'globex', exact: true }).waitFor({ state: 'detached' })
    await page.getByRole('cell', { name: 'acme', exact: true }).click()
    await page.getByRole('textbox', { name: 'Reason' }).fill('Ticket 42')
    await page.getByRole('button', { name: 'Create support link' }).click()
    await page.getByText('as an administrator of your own').waitFor()
    await inspectScreen(page, 'operator-tenant')
    const opening = page.waitForEvent('popup')
    await page.getByRole('link', { name: 'Open it in a new tab' }).click()
    const opened = await opening
    await opened.waitForURL('**/admin/home')
    await opened.getByRole('button', { name: /^Account of operator-/ }).waitFor()
    await opened.close()
    const events = (await acme('GET', '/api/events?eventName=support-opened')).body
    expect(events).toMatchObject([{ metadata: { reason: 'Ticket 42' } }])

    await page.getByRole('button', { name: 'Suspend' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Suspend tenant' }).click()
    await page.getByRole('button', { name: 'Resume' }).waitFor()
    expect((await acme('GET', '/api/me')).status).toBe(403)
    await page.getByRole('button', { name: 'Resume' }).click()
    await page.getByRole('button', { name: 'Suspend' }).waitFor()
    expect((await acme('GET', '/api/me')).status).toBe(200)

    await page.getByRole('button', { name: 'Close', exact: true }).click()
    await page.getByRole('searchbox', { name: 'Search tenants' }).fill('')
    await page.getByRole('cell', { name: 'globex', exact: true }).click()
    await page.getByRole('heading', { name: 'globex' }).waitFor()
    await page.getByRole('button', { name: 'Delete' }).click()
    await page.getByLabel('Type globex to confirm').fill('globex')
    await page.getByRole('button', { name: 'Delete tenant' }).click()
    await page.getByText(/^The tenant globex was deleted/).waitFor()
    const left = (await operator('GET', '/operator/tenants')).body
    expect(left.map(({ id }: { id: string }) => id)).toEqual(['acme', 'initech'])

    await page.getByRole('link', { name: 'Health' }).click()
    await page.getByText('data folder').waitFor()
    await page.getByText(/ in the last minute, of which /).waitFor()
    await inspectScreen(page, 'operator-health')
    await page.getByRole('link', { name: 'Log' }).click()
    await page.getByRole('searchbox', { name: 'Search the log' }).fill('forbidden')
    await page.getByText('TENANT_SUSPENDED').first().waitFor()
    await inspectScreen(page, 'operator-log')
    await page.getByRole('link', { name: 'Events' }).click()
    await page.getByRole('cell', { name: 'Opened for support' }).waitFor()
    await inspectScreen(page, 'operator-events')
    await page.getByRole('link', { name: 'Settings' }).click()
    await page.getByText('ATOLL_OPERATOR_TOKEN').waitFor()
    expect(await page.getByText(TOKEN).count()).toBe(0)
    await inspectScreen(page, 'operator-settings')

    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByLabel('Operator token').waitFor()
    expect(await page.evaluate<number>('sessionStorage.length')).toBe(0)
    expect(errors.filter((error) => !/status of 4\d\d/.test(error))).toEqual([])
    await page.close()
  })

  test('the operator creates a token that is shown once, uses it, and revokes it', async () => {
    const at = { at: createTempFolder(), env: { ATOLL_OPERATOR_TOKEN: TOKEN } }
    await createTenantByCli(at, 'acme')
    await using server = await startAtoll(at)
    const { page, errors } = await openPage({ permissions: ['clipboard-read', 'clipboard-write'] })
    const signInWith = async (token: string) => {
      await page.getByLabel('Operator token').fill(token)
      await page.getByRole('button', { name: 'Sign in' }).click()
    }
    await page.goto(`${server.url}/admin/operator/tokens`)
    await signInWith(TOKEN)
    await page.getByText('There are none yet.').waitFor()
    await inspectScreen(page, 'operator-tokens-empty')
    await page.getByRole('button', { name: 'Create a token' }).click()
    const panel = page.getByRole('complementary')
    await panel.getByRole('textbox', { name: 'Name' }).fill('nightly')
    await panel.getByRole('button', { name: 'Create token' }).click()
    await panel.getByText('scopes must not be empty.').waitFor()
    await panel.getByRole('checkbox', { name: 'Read' }).check()
    await panel.getByRole('checkbox', { name: 'Backups' }).check()
    await panel.getByRole('combobox', { name: 'Expires' }).click()
    await page.getByRole('option', { name: 'in 90 days' }).click()
    await inspectScreen(page, 'operator-token-form')
    await panel.getByRole('button', { name: 'Create token' }).click()
    await panel.getByText('It is shown only once.').waitFor()
    await panel.getByRole('button', { name: 'Copy token' }).click()
    const token = await page.evaluate<string>('navigator.clipboard.readText()')
    expect(token).toStartWith('atlop_')
    await panel.getByText(token).waitFor()
    await inspectScreen(page, 'operator-token-created')
    await panel.getByRole('button', { name: 'Done' }).click()
    const row = page.getByRole('row', { name: /^nightly Read, Backups .* Never in / })
    await row.waitFor()
    expect(await page.getByText(token).count()).toBe(0)

    const withToken = apiCaller(server.url, { authorization: `Bearer ${token}` })
    expect((await withToken('GET', '/operator/tenants')).status).toBe(200)
    expect((await withToken('POST', '/operator/tenants/acme/suspend')).status).toBe(403)
    // The page keeps the token in memory only.
    await page.reload()
    await signInWith(TOKEN)
    await page.getByRole('row', { name: /^nightly Read, Backups / }).waitFor()
    expect(await row.count()).toBe(0)
    await page.getByRole('button', { name: 'New' }).click()
    await panel.getByRole('textbox', { name: 'Name' }).fill('nightly')
    await panel.getByRole('checkbox', { name: 'Moves' }).check()
    await panel.getByRole('button', { name: 'Create token' }).click()
    await panel.getByText('There is a token "nightly" already. Choose another name.').waitFor()
    await panel.getByRole('button', { name: 'Close', exact: true }).click()

    await page.getByRole('cell', { name: 'nightly' }).click()
    await panel.getByText('Read, Backups').waitFor()
    await inspectScreen(page, 'operator-tokens')
    await panel.getByRole('button', { name: 'Revoke' }).click()
    const dialog = page.getByRole('dialog', { name: 'Revoke the token nightly?' })
    await dialog.getByRole('button', { name: 'Cancel' }).click()
    expect((await withToken('GET', '/operator/tenants')).status).toBe(200)
    await panel.getByRole('button', { name: 'Revoke' }).click()
    await dialog.getByRole('button', { name: 'Revoke token' }).click()
    await page.getByText('The token nightly was revoked.').waitFor()
    await page.getByText('There are none yet.').waitFor()
    expect((await withToken('GET', '/operator/tenants')).status).toBe(401)

    // Whoever signs in with such a token sees other pages, but not the tokens.
    const body = { name: 'reader', scopes: ['read'] }
    const operator = apiCaller(server.url, { authorization: `Bearer ${TOKEN}` })
    const reader = (await operator('POST', '/operator/tokens', body)).body
    await page.getByRole('button', { name: 'Sign out' }).click()
    await signInWith(reader.token)
    await page.getByText('Only the token of the setting ATOLL_OPERATOR_TOKEN may do this.').waitFor()
    await page.getByRole('link', { name: 'Tenants' }).click()
    await page.getByRole('cell', { name: 'acme', exact: true }).waitFor()
    expect(errors.filter((error) => !/status of 4\d\d/.test(error))).toEqual([])
    await page.close()
  })

  test('users of a suspended tenant are told so and whom to ask, and go on when it is resumed', async () => {
    const at = { at: createTempFolder(), env: { ATOLL_OPERATOR_TOKEN: TOKEN } }
    await createTenantByCli(at, 'acme')
    await using server = await startAtoll(at)
    const operator = apiCaller(server.url, { authorization: `Bearer ${TOKEN}` })
    const acme = apiCaller(server.url, await signIn(server.url, 'acme'))
    const fields = [{ key: 'name', type: 'string' }]
    await acme('POST', '/api/blueprints', { key: 'notes', name: 'Notes', fields })
    const { page, errors } = await openPage()
    const { page: visitor } = await openPage()
    await page.goto(`${server.url}/admin/data/notes/all/new?tenant=acme`)
    await page.getByLabel('Username or e-mail address').fill('root')
    await page.getByRole('textbox', { name: /^Password/ }).fill(PASSWORD)
    await page.getByRole('button', { name: 'Sign in', exact: true }).click()
    await page.getByRole('textbox', { name: 'name', exact: true }).fill('Half typed')

    expect((await operator('POST', '/operator/tenants/acme/suspend')).status).toBe(200)
    await visitor.goto(`${server.url}/admin?tenant=acme`)
    await visitor.getByRole('heading', { name: 'This tenant is suspended' }).waitFor()
    await visitor.getByText('Ask whoever runs this server.').waitFor()
    expect(await visitor.getByRole('button').count()).toBe(0)
    await inspectScreen(visitor, 'suspended')
    await page.getByRole('button', { name: 'Save' }).click()
    const dialog = page.getByRole('dialog', { name: 'This tenant is suspended' })
    await dialog.waitFor()
    await inspectScreen(page, 'suspended-working')

    await operator('POST', '/operator/tenants/acme/resume')
    await visitor.getByRole('heading', { name: 'Sign in' }).waitFor()
    await dialog.waitFor({ state: 'detached' })
    expect(await page.getByRole('textbox', { name: 'name', exact: true }).inputValue()).toBe('Half typed')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByRole('heading', { name: 'Half typed' }).waitFor()
    await page.getByText('live', { exact: true }).waitFor()
    expect((await acme('GET', '/api/blueprints/notes/entities')).body).toMatchObject([{ name: 'Half typed' }])

    // Somebody who comes back to the page of a suspended tenant sees the same.
    await operator('POST', '/operator/tenants/acme/suspend')
    await page.reload()
    await page.getByRole('heading', { name: 'This tenant is suspended' }).waitFor()
    await operator('POST', '/operator/tenants/acme/resume')
    await page.getByRole('heading', { name: 'Half typed' }).waitFor()
    expect(errors.filter((error) => !/status of 4\d\d/.test(error))).toEqual([])
    await visitor.close()
    await page.close()
  })

  test('the operator sees the certificates of files and of hosts, why one is missing, and orders it again', async () => {
    const folder = createTempFolder()
    const { chain, key } = await (await createAuthority()).issue(['files.test'])
    writeFileSync(join(folder, 'chain.pem'), chain)
    writeFileSync(join(folder, 'key.pem'), key)
    const dns = await startDnsServer({})
    const env = {
      ...{ ATOLL_TLS_CERT: join(folder, 'chain.pem'), ATOLL_TLS_KEY: join(folder, 'key.pem'), ATOLL_HTTP_PORT: '0' },
      ...{ ATOLL_ACME: 'on', ATOLL_ACME_DIRECTORY: 'https://127.0.0.1:1/dir', ATOLL_DNS_SERVERS: dns.address },
      ...{ ATOLL_HOST: '127.0.0.1', ATOLL_OPERATOR_TOKEN: TOKEN },
    }
    const at = { at: folder, env }
    await createTenantByCli(at, 'acme')
    await using server = await startAtoll(at)
    const { page, errors } = await openPage({ ignoreHTTPSErrors: true })
    await page.goto(`${server.url}/admin/operator`)
    await page.getByLabel('Operator token').fill(TOKEN)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByRole('link', { name: 'Certificates' }).click()
    await page.getByRole('cell', { name: 'files.test' }).waitFor()
    await page.getByRole('cell', { name: 'acme.test' }).click()
    const panel = page.getByRole('complementary', { name: 'acme.test' })
    await panel.getByText('The DNS has no address for this host yet.').waitFor()
    await inspectScreen(page, 'operator-certificates')
    await panel.getByRole('button', { name: 'Order now' }).click()
    await page.getByText('is ordered within half a minute').waitFor()
    await panel.getByRole('button', { name: 'Close' }).click()
    await page.getByRole('cell', { name: 'files.test' }).click()
    await page.getByText('A file of ATOLL_TLS_CERT').waitFor()
    expect(await page.getByRole('button', { name: 'Order now' }).count()).toBe(0)
    expect(errors).toEqual([])
    dns.stop()
  })
})
