// engine: sqlite
import { describe, expect, setDefaultTimeout, test } from 'bun:test'
import { hasBrowser } from '../fakes/browser'
import { apiCaller, createTempFolder, createTenantByCli, PASSWORD, signIn, startAtoll } from '../fakes/cli'
import { inspectScreen, openPage } from './admin-browser'

setDefaultTimeout(200_000)

const TOKEN = 'the-operator-token-of-this-test'

describe.skipIf(!hasBrowser)('the limits of requests in a browser', () => {
  test('the operator allows a tenant more and sets quotas, its admin lowers the limits, and both see what applies', async () => {
    const at = { at: createTempFolder(), env: { ATOLL_OPERATOR_TOKEN: TOKEN, ATOLL_RATE_LIMITS: 'on' } }
    await createTenantByCli(at, 'acme')
    await using server = await startAtoll(at)
    const { page, errors } = await openPage()
    const operator = apiCaller(server.url, { authorization: `Bearer ${TOKEN}` })
    const acme = apiCaller(server.url, await signIn(server.url, 'acme'))

    await page.goto(`${server.url}/admin/operator/tenants/acme`)
    await page.getByLabel('Operator token').fill(TOKEN)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByRole('textbox', { name: 'Reads per guest' }).fill('5000')
    await page.getByRole('textbox', { name: 'Costly calls per user' }).fill('0')
    await page.getByRole('button', { name: 'Save limits' }).click()
    await page.getByText('must be a whole number from 1').waitFor()
    await page.getByRole('textbox', { name: 'Costly calls per user' }).fill('')
    await page.getByRole('button', { name: 'Save limits' }).click()
    await page.getByText('Saved.').waitFor()
    expect((await operator('GET', '/operator/tenants/acme/limits')).body.guests).toEqual({ reads: 5_000 })
    await page.getByRole('textbox', { name: 'Entities' }).fill('1000')
    await page.getByRole('textbox', { name: 'Storage' }).fill('a lot')
    await page.getByRole('button', { name: 'Save quotas' }).click()
    await page.getByText('Write a size such as').waitFor()
    await page.getByRole('textbox', { name: 'Storage' }).fill('2G')
    await page.getByRole('textbox', { name: 'Users' }).fill('1')
    await page.getByRole('button', { name: 'Save quotas' }).click()
    await page.getByText('Used: 1 (100 %).').waitFor()
    const { usage, ...quotas } = (await operator('GET', '/operator/tenants/acme/quotas')).body
    expect(quotas).toMatchObject({ entities: 1_000, users: 1, storage: 2 * 1_024 ** 3, mails: null })
    expect(usage).toMatchObject({ entities: 0, users: 1, files: 0 })
    await page.getByRole('textbox', { name: 'Entities' }).fill('')
    await page.getByRole('button', { name: 'Save quotas' }).click()
    await page.getByRole('button', { name: 'Save quotas' }).waitFor()
    while ((await operator('GET', '/operator/tenants/acme/quotas')).body.entities !== null) await Bun.sleep(20)
    await inspectScreen(page, 'operator-tenant-limits')

    await page.goto(`${server.url}/admin/settings/limits?tenant=acme`)
    await page.getByLabel('Username or e-mail address').fill('root')
    await page.getByRole('textbox', { name: /^Password/ }).fill(PASSWORD)
    await page.getByRole('button', { name: 'Sign in', exact: true }).click()
    await page.getByText('At most 5,000.').waitFor()
    await page.getByText('1 of 1').waitFor()
    await page.getByText('of 2 GiB').waitFor()
    await page.getByRole('textbox', { name: 'Reads per guest' }).fill('40')
    await page.getByRole('textbox', { name: 'Writes per user' }).fill('99')
    await inspectScreen(page, 'settings-limits')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('Saved.').waitFor()
    const { body } = await acme('GET', '/api/configurations/limits-configuration')
    expect(body.metadata).toEqual({ guests: { reads: 40 }, users: { writes: 99 } })
    const guest = await fetch(`${server.url}/api/configurations/app-configuration`, { headers: { tenant: 'acme' } })
    expect(guest.headers.get('ratelimit-limit')).toBe('40')
    expect(errors.filter((error) => !/status of 4\d\d/.test(error))).toEqual([])
    await page.close()
  })

  test('the page waits a moment and asks again when its user has made too many requests', async () => {
    const at = { at: createTempFolder(), env: { ATOLL_RATE_LIMITS: 'on' } }
    await createTenantByCli(at, 'acme')
    await using server = await startAtoll(at)
    const acme = apiCaller(server.url, await signIn(server.url, 'acme'))
    const metadata = { users: { reads: 30 } }
    await acme('PUT', '/api/configurations/limits-configuration', { metadata })
    const { page, errors } = await openPage()
    await page.goto(`${server.url}/admin/people/users?tenant=acme`)
    await page.getByLabel('Username or e-mail address').fill('root')
    await page.getByRole('textbox', { name: /^Password/ }).fill(PASSWORD)
    await page.getByRole('button', { name: 'Sign in', exact: true }).click()
    await page.getByRole('cell', { name: 'root', exact: true }).waitFor()
    while ((await acme('GET', '/api/me')).status !== 429);
    const refused = page.waitForResponse((response) => response.status() === 429)
    await page.getByRole('link', { name: 'Workspaces' }).click()
    await refused
    await page.getByText('No workspaces').waitFor()
    expect(errors.filter((error) => !/status of 429/.test(error))).toEqual([])
    await page.close()
  })
})
