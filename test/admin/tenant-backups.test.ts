// engine: sqlite
import { Database } from 'bun:sqlite'
import { describe, expect, setDefaultTimeout, test } from 'bun:test'
import { readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { hasBrowser } from '../fakes/browser'
import { apiCaller, createTempFolder, type RunningAtoll, runAtoll, startAtoll } from '../fakes/cli'
import { callDemo, inspectScreen, openPage } from './admin-browser'

setDefaultTimeout(200_000)

const TOKEN = 'the-operator-token-of-the-backups'

async function openTenant(page: Page, server: RunningAtoll) {
  await page.goto(`${server.url}/admin/operator/tenants/demo`)
  await page.getByLabel('Operator token').fill(TOKEN)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByRole('region', { name: 'Backups', exact: true }).waitFor()
}

/** Changes the registry of an installation beside its server, as another server does. */
function changeRegistry(at: string, statement: string, ...values: (string | number)[]) {
  using registry = new Database(join(at, 'tenants', 'registry.db'))
  registry.run('pragma busy_timeout = 10000')
  registry.run(statement, values)
}

describe.skipIf(!hasBrowser)('backups of a tenant in a browser', () => {
  test('the operator copies the demo, backs it up, restores it as a new tenant and in place, and sees what failed', async () => {
    const at = createTempFolder()
    const env = { ATOLL_OPERATOR_TOKEN: TOKEN }
    await using cleanup = new AsyncDisposableStack()
    const { page, errors } = await openPage()
    cleanup.defer(() => page.close())
    const backups = page.getByRole('region', { name: 'Backups', exact: true })
    const back = async () => {
      await page.goBack()
      await page.getByRole('heading', { name: 'demo', exact: true }).waitFor()
    }

    // Without a place for backups the page says how one is set, and a tenant can be copied all the same.
    const first = await startAtoll({ at, env }, '--demo')
    cleanup.defer(() => first[Symbol.asyncDispose]())
    const [, apiToken = ''] = await first.until(/x-api-key: (\S+)'/)
    const demo = await callDemo(first)
    const fields = [{ key: 'text', type: 'string' }]
    expect((await demo('POST', '/api/blueprints', { key: 'notes', name: 'Notes', fields })).status).toBe(201)
    const note = (await demo('POST', '/api/blueprints/notes/entities', { text: 'before' })).body
    const connection = { name: 'Cards', kind: 'stripe', authentication: { secretKey: 'sk_live_1' } }
    expect((await demo('POST', '/api/integration-sources', connection)).status).toBe(201)
    const path = `/api/blueprints/notes/entities/${note._id}`
    await openTenant(page, first)
    await backups.getByText('Set ATOLL_BACKUP_TO to a folder').waitFor()
    expect(await backups.getByRole('button', { name: 'Back up now' }).count()).toBe(0)
    await inspectScreen(page, 'tenant-backups-without-target')
    await backups.getByRole('button', { name: 'Copy to a new tenant…' }).click()
    await backups.getByLabel('Id of the new tenant').fill('demo')
    await backups.getByRole('button', { name: 'Copy tenant' }).click()
    await backups.getByText('There is a tenant "demo" already.').waitFor()
    await backups.getByLabel('Id of the new tenant').fill('demo-copy')
    await inspectScreen(page, 'tenant-clone-form')
    await backups.getByRole('button', { name: 'Copy tenant' }).click()
    await backups.getByText(/^Copied to demo-copy .*, in \d+\.\d s\./).waitFor()
    await backups.getByRole('link', { name: 'Open demo-copy' }).click()
    await page.getByRole('heading', { name: 'demo-copy' }).waitFor()
    await page.goto('about:blank')
    await first.end('SIGTERM')

    // The demo is old enough to have a backup by now.
    changeRegistry(at, "update tenants set created = 1577836800000 where id = 'demo'")
    const target = join(at, 'backups')
    const schedule = { ATOLL_BACKUP_TO: target, ATOLL_BACKUP_SCHEDULE: '0 0 1 1 *' }
    const scheduled = { at, env: { ...env, ...schedule } }
    const doctor = await runAtoll('doctor --json', scheduled)
    const message = expect.stringMatching(/none for two days or more: demo; .* run "atoll backup"/)
    expect([doctor.code, doctor.json.checks]).toEqual([
      1,
      expect.arrayContaining([{ check: 'backups', ok: false, message }]),
    ])
    const server = await startAtoll(scheduled)
    cleanup.defer(() => server[Symbol.asyncDispose]())
    const operator = apiCaller(server.url, { authorization: `Bearer ${TOKEN}` })
    const call = apiCaller(server.url, { 'x-api-key': apiToken, tenant: 'demo' })
    const readNote = async () => (await call('GET', path)).body.text
    expect(await readNote()).toBe('before')
    await openTenant(page, server)
    await backups.getByText('There is no backup of this tenant yet.').waitFor()
    await page.getByRole('link', { name: 'Health' }).click()
    await page.getByText('these tenants have had none for two days or more: demo;').waitFor()
    await page.getByRole('link', { name: 'Tenants' }).click()
    await page
      .getByRole('row', { name: /^demo / })
      .getByText('Missing')
      .waitFor()
    await inspectScreen(page, 'tenants-without-backup')
    await page.getByRole('cell', { name: 'demo', exact: true }).click()

    await backups.getByRole('button', { name: 'Back up now' }).click()
    await backups.getByText(/^Backed up .*: .* in \d+\.\d s, at .*backups\/demo\//).waitFor()
    const restore = backups.getByRole('listitem').getByRole('button', { name: 'Restore…' })
    await backups.getByText(/ rows, version /).waitFor()
    expect(await restore.count()).toBe(1)
    await inspectScreen(page, 'tenant-backed-up')

    // Another server copies the tenant.
    const time = Date.now()
    const progress = JSON.stringify({ message: 'The data are being copied.', fraction: 0.42 })
    const insert =
      "insert into operator_tasks (_id, kind, tenant, status, input, progress, created, updated) values (?, 'clone', 'demo', 'running', ?, ?, ?, ?)"
    changeRegistry(at, insert, Bun.randomUUIDv7(), '{"as":"other"}', progress, time, time)
    await page.reload()
    await page.getByLabel('Operator token').fill(TOKEN)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await backups.getByText('Copying to other. The data are being copied. 42 % is done.').waitFor()
    await backups.getByRole('progressbar', { name: 'Progress of the clone' }).waitFor()
    expect(await restore.isDisabled()).toBeTrue()
    expect(await backups.getByRole('button', { name: 'Back up now' }).count()).toBe(0)
    await inspectScreen(page, 'tenant-task-running')
    await page.getByRole('link', { name: 'Events' }).click()
    const tasks = page.getByRole('list', { name: 'Tasks' })
    await tasks.getByText('Copy to other').waitFor()
    await page.getByRole('cell', { name: 'Copied', exact: true }).waitFor()
    changeRegistry(at, "delete from operator_tasks where status = 'running'")
    await page.goto(`${server.url}/admin/operator/tenants/demo`)
    await page.getByLabel('Operator token').fill(TOKEN)
    await page.getByRole('button', { name: 'Sign in' }).click()

    // Restored as a new tenant, it has what the demo had.
    expect((await call('PUT', path, { text: 'changed' })).status).toBe(200)
    await restore.click()
    await backups.getByRole('textbox', { name: 'Id of the new tenant' }).fill('demo-restored')
    await inspectScreen(page, 'tenant-restore-form')
    await backups.getByRole('button', { name: 'Restore as new tenant' }).click()
    await backups.getByText(/^Restored as demo-restored .*: .* rows in .* s, from the backup of /).waitFor()
    await inspectScreen(page, 'tenant-restored')
    await backups.getByRole('link', { name: 'Open demo-restored' }).click()
    await page.getByRole('heading', { name: 'demo-restored' }).waitFor()
    await back()
    expect(await readNote()).toBe('changed')

    // In place of its data, which the id confirms, the tenant has them again.
    await restore.click()
    await backups.getByRole('radio', { name: 'In place of the data of demo' }).check()
    await backups.getByRole('button', { name: 'Replace its data…' }).click()
    const dialog = page.getByRole('dialog', { name: 'Replace the data of the tenant demo?' })
    expect(await dialog.getByRole('button', { name: 'Replace data' }).isDisabled()).toBeTrue()
    await dialog.getByLabel('Type demo to confirm').fill('demo')
    await inspectScreen(page, 'tenant-restore-confirmation')
    await dialog.getByRole('button', { name: 'Replace data' }).click()
    await backups.getByText(/^Restored .* The replaced files are in .*\.trash/).waitFor()
    expect(await readNote()).toBe('before')

    // The secrets of another installation can be left out.
    const [name = ''] = readdirSync(join(target, 'demo'))
    const manifest = join(target, 'demo', name, 'manifest.json')
    const keys = ['0'.repeat(64)]
    writeFileSync(manifest, JSON.stringify({ ...JSON.parse(readFileSync(manifest, 'utf8')), keys }))
    await restore.click()
    await backups.getByRole('textbox', { name: 'Id of the new tenant' }).fill('demo-foreign')
    await backups.getByRole('button', { name: 'Restore as new tenant' }).click()
    await backups.getByText(/^The restore as demo-foreign failed .* leave them out/).waitFor()
    await backups.getByRole('button', { name: 'Restore without its secrets' }).click()
    await backups.getByText(/^Restored as demo-foreign/).waitFor()
    await backups.getByText(/secrets? (was|were) left out/).waitFor()
    await inspectScreen(page, 'tenant-restored-without-secrets')

    // A backup that fails is seen at the tenant, in the table and among the tasks.
    renameSync(target, join(at, 'elsewhere'))
    writeFileSync(target, '')
    await backups.getByRole('button', { name: 'Back up now' }).click()
    await backups.getByText(/^The backup failed .* a part of its path is not a folder/).waitFor()
    await backups.getByText(/backups cannot be read: a part of its path is not a folder/).waitFor()
    await inspectScreen(page, 'tenant-backup-failed')
    await page.getByRole('link', { name: 'Events' }).click()
    await tasks.getByText('Backup').first().waitFor()
    await page.getByRole('cell', { name: 'Backup failed' }).waitFor()
    await inspectScreen(page, 'operator-events-with-backups')
    await page.getByRole('link', { name: 'Tenants' }).click()
    await page
      .getByRole('row', { name: /^demo / })
      .getByText('Failed')
      .waitFor()
    await inspectScreen(page, 'tenants-with-failed-backup')
    const [{ backup }] = (await operator('GET', '/operator/tenants?q=demo')).body
    expect(backup).toMatchObject({ created: expect.any(String), problem: expect.stringContaining(target) })
    expect(errors.filter((error) => !/status of (4\d\d|502)/.test(error))).toEqual([])
  })
})
