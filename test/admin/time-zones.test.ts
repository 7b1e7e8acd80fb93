// engine: sqlite
import { expect, setDefaultTimeout, test } from 'bun:test'
import { cpSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { hasBrowser } from '../fakes/browser'
import { apiCaller, createTempFolder, PASSWORD, startAtoll } from '../fakes/cli'
import { openPage, setUpAdmin } from './admin-browser'

setDefaultTimeout(240_000)

const LISBON = '/usr/share/zoneinfo/Europe/Lisbon'
const hasZoneFiles = await Bun.file(LISBON).exists()
if (!hasZoneFiles)
  console.warn('SKIPPED: the test of a server with a zone of its own, because tzdata is not installed.')

test.skipIf(!hasBrowser || !hasZoneFiles)(
  'schedules and imports offer the time zones of the server, which the browser need not know',
  async () => {
    const folder = join(createTempFolder(), 'zones')
    mkdirSync(join(folder, 'Europe'), { recursive: true })
    cpSync(LISBON, join(folder, 'Europe/Atlantis'), { dereference: true })
    await using server = await startAtoll({ at: createTempFolder(), env: { ATOLL_TIME_ZONES: folder } })
    const { page, errors } = await openPage()
    await setUpAdmin(page, server)
    const credentials = { username: 'ada', password: PASSWORD, authType: 'oauth' }
    const { body } = await apiCaller(server.url)('POST', '/api/signin', credentials)
    const call = apiCaller(server.url, { authorization: `Bearer ${body.payload.token}` })
    const fields = [{ key: 'at', type: 'datetime' }]
    expect((await call('POST', '/api/blueprints', { key: 'things', name: 'Things', fields })).status).toBe(201)
    expect((await call('GET', '/api/time-zones')).body).toContain('Europe/Atlantis')
    const chooseAtlantis = async () => {
      await page.getByRole('combobox', { name: 'Time zone' }).fill('atlantis')
      await page.getByRole('option', { name: 'Europe/Atlantis' }).click()
    }
    await page.goto(`${server.url}/admin/automation/integrations/new`)
    await page.getByRole('combobox', { name: 'When' }).click()
    await page.getByRole('option', { name: 'a time comes' }).click()
    await chooseAtlantis()
    await page.getByRole('textbox', { name: 'Name' }).fill('Weekly')
    await page.getByRole('combobox', { name: 'Then' }).click()
    await page.getByRole('option', { name: 'send a request' }).click()
    await page.getByRole('textbox', { name: 'Address' }).fill('https://example.com/')
    await page.getByRole('button', { name: 'Create integration' }).click()
    await page.waitForURL((url) => !url.pathname.endsWith('/new'))
    expect((await call('GET', '/api/integrations')).body[0].trigger).toMatchObject({ timezone: 'Europe/Atlantis' })
    await page.goto(`${server.url}/admin/data/things/all/import`)
    const buffer = Buffer.from('at\n2026-07-01T12:00\n')
    await page.locator('input[type=file]').setInputFiles({ name: 'things.csv', mimeType: 'text/csv', buffer })
    await chooseAtlantis()
    await page
      .getByRole('button', { name: /^Import/ })
      .last()
      .click()
    await page.getByText('1 row imported.').first().waitFor()
    expect((await call('GET', '/api/blueprints/things/entities')).body[0].metadata.at).toBe('2026-07-01T11:00:00.000Z')
    expect(errors).toEqual([])
    await page.close()
  },
)
