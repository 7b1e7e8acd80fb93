// engine: sqlite
import { describe, expect, setDefaultTimeout, test } from 'bun:test'
import type { Page } from 'playwright-core'
import { hasBrowser } from '../fakes/browser'
import { apiCaller, createTempFolder, type RunningAtoll, runAtoll, startAtoll } from '../fakes/cli'
import { startCuttingProxy } from '../fakes/cutting-proxy'
import { findPostgresBin, startPostgres } from '../fakes/postgres'
import { waitUntil } from '../wait-until'
import { callDemo, inspectScreen, openPage } from './admin-browser'

setDefaultTimeout(200_000)

const TOKEN = 'the-operator-token-of-the-moves'
const BUCKET = 'main/atoll_b0001'

async function openTenant(page: Page, server: RunningAtoll) {
  await page.goto(`${server.url}/admin/operator/tenants/demo`)
  await page.getByLabel('Operator token').fill(TOKEN)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByRole('region', { name: 'Home', exact: true }).waitFor()
}

describe.skipIf(!hasBrowser || !findPostgresBin())('moves of a tenant in a browser', () => {
  test('the operator moves the demo to PostgreSQL and back by clicks, sees how far it is, and repeats a move that was stopped', async () => {
    const postgres = await startPostgres()
    await using cleanup = new AsyncDisposableStack()
    cleanup.defer(() => postgres.stop())
    const proxy = await startCuttingProxy(postgres)
    cleanup.defer(() => proxy.stop())
    const at = { at: createTempFolder(), env: { ATOLL_OPERATOR_TOKEN: TOKEN } }
    const { page, errors } = await openPage()
    cleanup.defer(() => page.close())
    const home = page.getByRole('region', { name: 'Home', exact: true })

    // On files alone nothing can be moved, and the page says what makes it possible.
    const files = await startAtoll(at, '--demo')
    const [, apiToken = ''] = await files.until(/x-api-key: (\S+)'/)
    const demo = await callDemo(files)
    const [{ key }] = (await demo('GET', '/api/blueprints?limit=1')).body
    const path = `/api/blueprints/${key}/entities?$limit=1000&$sort=_id`
    const before = (await demo('GET', path)).body
    expect(before.length).toBeGreaterThan(0)
    await openTenant(page, files)
    await home.getByText('File on this machine').waitFor()
    await home.getByText('once ATOLL_DATABASE_URL is set').waitFor()
    expect(await home.getByRole('button').count()).toBe(0)
    await inspectScreen(page, 'tenant-move-without-database')
    await files.end('SIGTERM')

    const ATOLL_DATABASE_URL = Object.assign(new URL(postgres.url), { port: proxy.port }).href
    const withDatabase = { ...at, env: { ...at.env, ATOLL_DATABASE_URL } }
    expect((await runAtoll('postgres init', withDatabase)).code).toBe(0)
    let server = await startAtoll(withDatabase)
    cleanup.defer(() => server[Symbol.asyncDispose]())
    const expectSame = async () => {
      const call = apiCaller(server.url, { 'x-api-key': apiToken, tenant: 'demo' })
      expect((await call('GET', path)).body).toEqual(before)
    }
    await expectSame()

    await openTenant(page, server)
    await home.getByRole('button', { name: 'Move…' }).click()
    await home.getByRole('combobox', { name: 'New home' }).click()
    await page.getByRole('option', { name: `Bucket ${BUCKET}, 0 tenants` }).click()
    await home.getByText('The tenant is served throughout').waitFor()
    await inspectScreen(page, 'tenant-move-form')
    proxy.slowDown(10)
    await home.getByRole('button', { name: 'Move tenant' }).click()
    await home.getByText(/\d+ % of the rows are copied/).waitFor()
    await expectSame()
    await inspectScreen(page, 'tenant-move-running')
    await page.reload()
    await page.getByLabel('Operator token').fill(TOKEN)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await home.getByRole('progressbar', { name: 'Progress of the move' }).waitFor()
    proxy.slowDown(0)
    await home.getByText(`PostgreSQL, bucket ${BUCKET}`).waitFor()
    await home.getByText(/^Moved from a file on this machine .*\d rows in .* s; writes waited \d+ ms\./).waitFor()
    await inspectScreen(page, 'tenant-move-done')
    await expectSame()
    const operator = () => apiCaller(server.url, { authorization: `Bearer ${TOKEN}` })
    expect((await operator()('GET', '/operator/tenants/demo')).body.home).toBe(BUCKET)

    // The server is stopped in the middle of the way back.
    await home.getByRole('button', { name: 'Move…' }).click()
    await home.getByRole('combobox', { name: 'New home' }).click()
    await page.getByRole('option', { name: /^File on this machine/ }).click()
    await home.getByText('only the server on this machine can serve it').waitFor()
    proxy.slowDown(100)
    await home.getByRole('button', { name: 'Move tenant' }).click()
    await home.getByRole('progressbar', { name: 'Progress of the move' }).waitFor()
    await page.goto('about:blank')
    await server.end('SIGTERM')
    proxy.slowDown(0)
    server = await startAtoll(withDatabase)
    await expectSame()
    await openTenant(page, server)
    await home.getByText('The server was stopped during the move.').waitFor()
    await inspectScreen(page, 'tenant-move-stopped')
    await page.getByRole('link', { name: 'Events' }).click()
    await page.getByRole('list', { name: 'Tasks' }).getByText('Failed').waitFor()
    await page.getByRole('cell', { name: 'Moved' }).waitFor()
    await inspectScreen(page, 'operator-events-with-tasks')
    await page.getByRole('list', { name: 'Tasks' }).getByRole('link', { name: 'demo' }).click()
    await home.getByRole('button', { name: 'Start the move again' }).click()
    await home.getByText(`Moved from bucket ${BUCKET} of PostgreSQL`).waitFor()
    await home.getByText('File on this machine').waitFor()
    await expectSame()
    expect((await operator()('GET', '/operator/tenants/demo')).body.home).toBeUndefined()

    // Somebody else moves it, and the page says so instead of moving it a second time.
    await home.getByRole('button', { name: 'Move…' }).click()
    proxy.slowDown(20)
    const other = operator()('POST', '/operator/tenants/demo/move', { to: BUCKET })
    const readLatestStatus = async () => (await operator()('GET', '/operator/tasks?limit=1')).body[0].status
    await waitUntil(readLatestStatus, (status) => status === 'running')
    await home.getByRole('button', { name: 'Move tenant' }).click()
    // The refusal, until the move of the other is shown.
    await home.getByText(/already being moved|Moving to/).waitFor()
    proxy.slowDown(0)
    expect((await other).body.status).toBeOneOf(['running', 'succeeded'])
    await home.getByText(`PostgreSQL, bucket ${BUCKET}`).waitFor()
    // Backups have no place, and another move is refused.
    expect(errors.filter((error) => !/status of 40[09]/.test(error))).toEqual([])
  })
})
