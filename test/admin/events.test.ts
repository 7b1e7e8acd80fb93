// engine: sqlite
import { describe, expect, setDefaultTimeout, test } from 'bun:test'
import { hasBrowser } from '../fakes/browser'
import { inspectScreen } from './admin-browser'
import { openAutomation } from './automation-fixtures'

setDefaultTimeout(120_000)

describe.skipIf(!hasBrowser)('events in the admin page', () => {
  test('new events appear by themselves, a click on a value filters by it, and an event leads to its entity', async () => {
    await using atoll = await openAutomation()
    const { server, page, errors, call, open } = atoll
    await call('POST', '/api/blueprints', {
      ...{ key: 'orders', name: 'Orders', fields: [{ key: 'title', type: 'string' }] },
      dispatchers: { create: true },
    })
    for (const eventName of ['paid', 'sent', 'paid'])
      await call('POST', '/api/events', {
        source: 'shop',
        kind: 'order',
        eventName,
        description: `An order was ${eventName}.`,
      })
    await open('events')
    await page.getByText('An order was sent.').waitFor()
    await call('POST', '/api/blueprints/orders/entities', { identifier: 'first', title: 'Walden' })
    await page.getByRole('button', { name: 'orders' }).waitFor()
    await inspectScreen(page, 'events')

    await page.getByRole('button', { name: 'Pause' }).click()
    await call('POST', '/api/events', { source: 'shop', kind: 'order', eventName: 'late' })
    await Bun.sleep(2_500)
    expect(await page.getByRole('button', { name: 'late' }).count()).toBe(0)
    await page.getByRole('button', { name: 'Follow' }).click()
    await page.getByRole('button', { name: 'late' }).waitFor()

    await page.getByRole('button', { name: 'paid', exact: true }).first().click()
    expect(page.url()).toEndWith('/admin/automation/events?eventName=paid')
    await page.getByRole('button', { name: 'sent', exact: true }).waitFor({ state: 'detached' })
    await page
      .getByRole('list', { name: 'Events of each day' })
      .getByRole('button', { name: /: 2 events$/ })
      .click()
    await page.getByText(/^on \d{4}-\d\d-\d\d$/).waitFor()
    expect(page.url()).toMatch(/from=.*&to=/)

    await page.goto(`${server.url}/admin/automation/events?source=blueprints`)
    await page.getByRole('cell', { name: 'create' }).click()
    await page.getByText('"identifier": "first"').waitFor()
    await inspectScreen(page, 'event')
    await page.getByRole('link', { name: 'Entity first' }).click()
    await page.waitForURL('**/admin/data/orders/first')
    expect(errors).toEqual([])
  })
})
