// engine: sqlite
import { describe, expect, setDefaultTimeout, test } from 'bun:test'
import type { Page } from 'playwright-core'
import { hasBrowser } from '../fakes/browser'
import { inspectScreen, openDemo } from './admin-browser'

setDefaultTimeout(240_000)

const ROWS = 100_000

/** Returns the content of the file that an action makes the browser save. */
async function readDownload(page: Page, act: () => Promise<unknown>) {
  const [download] = await Promise.all([page.waitForEvent('download'), act()])
  return { name: download.suggestedFilename(), text: await Bun.file(await download.path()).text() }
}

async function exportContacts(page: Page, format: string, withoutFields: string[] = []) {
  await page.getByRole('button', { name: 'More', exact: true }).click()
  await page.getByRole('menuitem', { name: 'Export' }).click()
  await page.getByRole('radio', { name: format, exact: true }).check()
  for (const field of withoutFields) await page.getByRole('checkbox', { name: field, exact: true }).uncheck()
  return readDownload(page, () => page.getByRole('button', { name: 'Export', exact: true }).click())
}

const chooseFile = (page: Page, name: string, text: string) =>
  page.locator('input[type=file]').setInputFiles({ name, mimeType: 'text/csv', buffer: Buffer.from(text) })

type Watch = { longestTask: number }

/** Begins to record the longest time that the page was busy without a break. */
const watchTasks = (page: Page) =>
  page.evaluate(() => {
    const state = globalThis as unknown as Watch
    state.longestTask = 0
    new PerformanceObserver((list) => {
      for (const { duration } of list.getEntries()) state.longestTask = Math.max(state.longestTask, duration)
    }).observe({ type: 'longtask' } as never)
  })

describe.skipIf(!hasBrowser)('exports and imports in a browser', () => {
  test('an admin exports the contacts that a list shows as CSV, NDJSON and JSON', async () => {
    await using demo = await openDemo()
    const { page, errors, server } = demo
    await page.goto(`${server.url}/admin/data/contacts?worth[$gte]=50000`)
    await page.getByText('132 shown').waitFor()
    const csv = await exportContacts(page, 'CSV', ['tags', 'job'])
    expect(csv.name).toBe('contacts.csv')
    expect(csv.text.trim().split('\r\n').length).toBe(133)
    expect(csv.text.split('\r\n')[0]).toBe('_id,identifier,name,email,stage,worth,lastCall,company')
    await page.getByText('132 rows were saved.').waitFor()
    await page.getByRole('button', { name: 'Dismiss Export of contacts.csv' }).click()
    const ndjson = await exportContacts(page, 'NDJSON')
    expect(
      ndjson.text
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line).worth >= 50_000),
    ).toEqual(Array(132).fill(true))
    const json = await exportContacts(page, 'JSON')
    expect(JSON.parse(json.text).length).toBe(132)
    expect(errors).toEqual([])
  })

  test('an admin checks a CSV file, imports it, and gets the refused rows with their problems', async () => {
    await using demo = await openDemo()
    const { page, errors, server } = demo
    await page.goto(`${server.url}/admin/data/contacts/all/import`)
    await page.getByText('Drop a CSV or NDJSON file here.').waitFor()
    await inspectScreen(page, 'import-empty')
    const file = [
      'Name;E-Mail;Stage;worth;Last call;tags;Notes',
      'Edsger Dijkstra;edsger@example.com;lead;12.5;2026-03-01 10:00;north, fair;"a\nb"',
      'Barbara Liskov;barbara@example.com;unknown;1;;;',
      ';nameless@example.com;lead;1;;;',
      'Tony Hoare;tony@example.com;customer;7;;;',
    ].join('\n')
    await chooseFile(page, 'people.csv', file)
    await page.getByText('4 rows').first().waitFor()
    expect(await page.getByRole('combobox', { name: 'Field for Name' }).inputValue()).toBe('name')
    expect(await page.getByRole('combobox', { name: 'Field for E-Mail' }).inputValue()).toBe('email')
    expect(await page.getByRole('combobox', { name: 'Field for Last call' }).inputValue()).toBe('lastCall')
    expect(await page.getByRole('combobox', { name: 'Field for Notes' }).inputValue()).toBe('')
    await page.getByRole('button', { name: 'Check' }).click()
    await page.getByText('2 rows can be imported, 2 rows would be refused.').waitFor()
    await inspectScreen(page, 'import-checked')
    await page.getByRole('button', { name: 'Import 4 rows' }).click()
    await page.getByText('2 rows imported, 2 rows refused.').waitFor()
    await page
      .getByText('Encoding: UTF-8. Separator: semicolon. Columns: name, email, stage, worth, lastCall, tags.')
      .waitFor()
    await page.getByText('name is required').waitFor()
    expect(await page.getByRole('button', { name: 'Import 4 rows' }).count()).toBe(0)
    await page.getByRole('button', { name: 'Import another file' }).waitFor()
    await inspectScreen(page, 'import-done')
    const refused = await readDownload(page, () =>
      page.getByRole('button', { name: 'Download the refused rows' }).click(),
    )
    expect(refused.name).toBe('refused-people.csv')
    expect(refused.text).toContain('Barbara Liskov,barbara@example.com,unknown')
    await page.getByRole('region', { name: 'Report' }).getByRole('link', { name: 'Show contacts' }).click()
    await page.getByText('302 contacts').waitFor()
    const answer = await page.request.get(`${server.url}/api/blueprints/contacts/entities?email=edsger@example.com`, {
      headers: { tenant: 'demo' },
    })
    expect(await answer.json()).toMatchObject([{ worth: '12.5', tags: ['north', 'fair'], stage: 'lead' }])

    const change = 'identifier,name\nedsger,E. W. Dijkstra\n'
    const [{ identifier }] = await answer.json()
    await page.goto(`${server.url}/admin/data/contacts/all/import`)
    await chooseFile(page, 'names.csv', change.replace('edsger', identifier))
    await page.getByRole('radio', { name: 'change the entity' }).check()
    await page.getByRole('button', { name: 'Import 1 row' }).click()
    await page.getByText('1 row imported.').first().waitFor()
    await page.getByRole('region', { name: 'Report' }).getByRole('link', { name: 'Show contacts' }).click()
    await page.getByRole('cell', { name: 'E. W. Dijkstra' }).waitFor()
    expect(errors).toEqual([])
  })

  test('an admin names the separator, the decimal comma and the time zone of a file, and imports another file after it', async () => {
    await using demo = await openDemo()
    const { page, errors, server } = demo
    await page.goto(`${server.url}/admin/data/contacts/all/import`)
    const file = 'sep=|\nname|worth|lastCall|tags\nGrace Hopper|1234,5|2026-07-01 10:00|a;b\nAda King|1.5||\n'
    await chooseFile(page, 'people.csv', file)
    await page.getByText('Encoding: UTF-8. Separator: vertical bar |. Columns: name, worth, lastCall, tags.').waitFor()
    await page.getByRole('combobox', { name: 'Separator' }).click()
    await page.getByRole('option', { name: 'Semicolon' }).click()
    await page.getByText('Separator: semicolon.').waitFor()
    await page.getByRole('combobox', { name: 'Separator' }).click()
    await page.getByRole('option', { name: 'Vertical bar |' }).click()
    await page.getByRole('combobox', { name: 'Decimal mark' }).click()
    await page.getByRole('option', { name: 'Comma: 1,5' }).click()
    await page.getByRole('combobox', { name: 'Time zone' }).fill('Lisbon')
    await page.getByRole('option', { name: 'Europe/Lisbon' }).click()
    await inspectScreen(page, 'import-notation')
    await page.getByRole('button', { name: 'Import 2 rows' }).click()
    await page.getByText('1 row imported, 1 row refused.').waitFor()
    await page.getByText('"1.5" is not a number with a decimal comma.').waitFor()
    const answer = await page.request.get(`${server.url}/api/blueprints/contacts/entities?name=Grace Hopper`, {
      headers: { tenant: 'demo' },
    })
    expect(await answer.json()).toMatchObject([
      { worth: '1234.5', lastCall: '2026-07-01T09:00:00.000Z', tags: ['a', 'b'] },
    ])
    await page.getByRole('button', { name: 'Import another file' }).click()
    await page.getByText('Drop a CSV or NDJSON file here.').waitFor()
    expect(await page.getByText('1 row imported').count()).toBe(1)
    expect(errors).toEqual([])
  })

  test('100,000 rows are imported while the page stays quick, and the tray outlives a reload', async () => {
    await using demo = await openDemo()
    const { page, errors, server } = demo
    page.on('dialog', (dialog) => dialog.accept())
    const lines = Array.from({ length: ROWS }, (_, n) => `Person ${n},person${n}@example.net,lead,${n}.25`)
    const file = `name,email,stage,worth\n${lines.join('\n')}\n`
    await page.goto(`${server.url}/admin/data/contacts/all/import`)
    await chooseFile(page, 'many.csv', file)
    await page.getByRole('button', { name: 'Import 100,000 rows' }).click()
    const tray = page.getByRole('region', { name: 'Long work' })
    await tray.getByText('a second').waitFor()
    await inspectScreen(page, 'tray')
    await watchTasks(page)
    await page.getByRole('link', { name: 'Home', exact: true }).click()
    await page.getByRole('heading', { name: 'Home' }).waitFor()
    await tray.getByText('100,000 rows imported.').waitFor({ timeout: 180_000 })
    const longest = await page.evaluate(() => (globalThis as unknown as Watch).longestTask)
    console.log(`The longest task of an import of 100,000 rows took ${Math.round(longest)} ms.`)
    await page.getByText(/about [\d,]+ contacts/i).waitFor()
    await page.reload()
    await tray.getByText('100,000 rows imported.').waitFor()

    await tray.getByRole('link', { name: 'Show' }).click()
    await chooseFile(page, 'again.csv', file)
    await page.getByRole('button', { name: 'Check' }).click()
    await tray.getByRole('button', { name: 'Cancel' }).click()
    await tray.getByText('It was cancelled.').waitFor()
    expect(errors).toEqual([])
  })
})
