// engine: sqlite
import { describe, expect, setDefaultTimeout, test } from 'bun:test'
import { describeCron } from '../../src/admin/automation/integrations/triggers/cron-words'
import { hasBrowser } from '../fakes/browser'
import { startWebhookReceiver } from '../fakes/webhook-receiver'
import { waitUntil } from '../wait-until'
import { inspectScreen } from './admin-browser'
import { openAutomation, writeCode } from './automation-fixtures'

setDefaultTimeout(120_000)

test.each([
  ['0 9 * * MON', 'On Monday at 09:00'],
  ['0 9 * * 1-5', 'On weekdays at 09:00'],
  ['30 8,17 * * *', 'Every day at 08:30 and 17:30'],
  ['*/15 * * * *', 'Every 15 minutes'],
  ['* * * * *', 'Every minute'],
  ['0 * * * *', 'Every hour'],
  ['10 */6 * * *', 'Every 6 hours at minute 10'],
  ['0 0 1 JAN,JUL *', 'On day 1 of the month at 00:00 in January and July'],
  ['0 0 L * *', 'On the last day of the month at 00:00'],
  ['0 12 * * SUN,7', 'On Sunday at 12:00'],
  ['0 9 1 * MON', undefined],
  ['5 4 * * MON#2', undefined],
  ['nonsense', undefined],
])('the schedule %s reads as: %p', (cron, words) => {
  expect(describeCron(cron)).toBe(words as string)
})

describe.skipIf(!hasBrowser)('integrations and connections in the admin page', () => {
  test('an admin connects a server, and a webhook of a lambda is created, called from the page, and switched off', async () => {
    const receiver = startWebhookReceiver()
    await using atoll = await openAutomation()
    const { server, page, errors, call, open } = atoll
    const code = 'export default ({ body }) => ({ hello: body.name })'
    const { _id: lambda } = (await call('POST', '/api/lambdas', { name: 'greet', code })).body

    await open('connections')
    await page.getByRole('button', { name: 'Connect a server' }).click()
    await page.getByRole('textbox', { name: 'Name', exact: false }).first().fill('Stock')
    await page.getByRole('textbox', { name: 'Address' }).fill(receiver.url)
    await page.getByRole('button', { name: 'Add header' }).click()
    await page.getByLabel('Name of header 1').fill('authorization')
    await page.getByLabel('Value of header 1').fill('Bearer secret')
    await page.getByRole('button', { name: 'Check connection' }).click()
    await page.getByText('The server answered 200.').waitFor()
    await page.getByRole('button', { name: 'Create connection' }).click()
    await page.getByText('It is set. What you type replaces it.').waitFor()
    await page.getByRole('button', { name: 'Check connection' }).click()
    await page.getByText('Connected', { exact: true }).waitFor()
    expect(receiver.deliveries.at(-1)?.headers.authorization).toBe('Bearer secret')
    expect(await page.evaluate('JSON.stringify(localStorage)')).not.toContain('secret')
    await inspectScreen(page, 'connections')
    const { _id: connection, secrets } = (await call('GET', '/api/integration-sources')).body[0]
    expect(secrets).toEqual(['headers'])
    await page.getByRole('button', { name: 'Remove it' }).click()
    await page.getByText('It is set.').waitFor({ state: 'detached' })
    const saved = page.waitForResponse((response) => response.request().method() !== 'GET')
    await page.getByRole('button', { name: 'Save' }).click()
    await saved
    expect((await call('GET', `/api/integration-sources/${connection}`)).body.secrets).toEqual([])

    await open('integrations')
    await page.getByRole('button', { name: 'Create an integration' }).click()
    await page.getByRole('textbox', { name: 'Name' }).fill('Greeting')
    await page.getByRole('combobox', { name: 'Lambda' }).click()
    await page.getByRole('option', { name: 'greet' }).click()
    await page.getByLabel('Everybody may call it').check()
    await page.getByRole('button', { name: 'Create integration' }).click()
    await page.getByText('When a request reaches its URL, run greet').waitFor()
    await writeCode(page, 'Body', '{"name": "Grace"}')
    await page.getByLabel('Call it as a guest').check()
    await page.getByRole('button', { name: 'Send', exact: true }).click()
    await page.getByText('"hello": "Grace"').waitFor()
    await inspectScreen(page, 'integration-webhook')
    const { _id } = (await call('GET', '/api/integrations')).body[0]
    expect((await call('GET', `/api/integrations/${_id}`)).body).toMatchObject({
      ...{ name: 'Greeting', guest: true, active: true },
      ...{ trigger: { kind: 'webhook' }, target: { kind: 'lambda', lambdaId: lambda } },
    })

    await page.getByRole('switch', { name: 'Greeting is on' }).click({ force: true })
    await page.getByText('Greeting is off.').waitFor()
    expect((await fetch(`${server.url}/api/webhooks/${_id}`, { method: 'POST' })).status).toBe(404)
    await page.getByRole('button', { name: 'Undo' }).click()
    await waitUntil(async () => (await call('GET', `/api/integrations/${_id}`)).body.active)
    expect(errors).toEqual([])
    await receiver.stop()
  })

  test('a schedule shows its next times, and a run that fails can be tried again', async () => {
    const receiver = startWebhookReceiver()
    receiver.answer = () => 410
    await using atoll = await openAutomation()
    const { page, errors, call, open } = atoll
    await open('integrations/new')
    await page.getByRole('textbox', { name: 'Name' }).fill('Monday order')
    await page.getByRole('combobox', { name: 'When' }).click()
    await page.getByRole('option', { name: 'a time comes' }).click()
    await page.getByText('On Monday at 09:00').waitFor()
    await page.getByRole('list', { name: 'Next times' }).getByRole('listitem').nth(4).waitFor()
    await page.getByRole('button', { name: 'Every month' }).click()
    await page.getByText('On day 1 of the month at 09:00').waitFor()
    await page.getByRole('combobox', { name: 'Then' }).click()
    await page.getByRole('option', { name: 'send a request' }).click()
    await page.getByRole('textbox', { name: 'Address' }).fill(`${receiver.url}/orders`)
    await inspectScreen(page, 'integration-new-schedule')
    await page.getByRole('textbox', { name: 'Schedule' }).fill('never')
    await page.getByRole('button', { name: 'Create integration' }).click()
    await page.getByText('This is not a cron expression.').first().waitFor()
    errors.length = 0
    await page.getByRole('combobox', { name: 'When' }).click()
    await page.getByRole('option', { name: 'an event happens' }).click()
    await page
      .getByRole('combobox', { name: 'Name of the event' })
      .or(page.getByRole('textbox', { name: 'Name of the event' }))
      .first()
      .fill('order-placed')
    await page.getByRole('button', { name: 'Create integration' }).click()
    await page.getByText(`When “order-placed” happens, send POST to ${receiver.url}/orders`).waitFor()

    await writeCode(page, 'Metadata', '{"number": 42}')
    await page.getByRole('button', { name: 'Record event' }).click()
    await page.getByText('The event was recorded').waitFor()
    expect((await call('GET', '/api/events?eventName=order-placed')).body).toMatchObject([{ metadata: { number: 42 } }])
    await page.getByRole('tab', { name: 'Runs' }).click()
    await page.locator('summary').first().click()
    await page.getByRole('button', { name: 'Try again' }).waitFor()
    await inspectScreen(page, 'integration-runs')
    // The next attempt is eight seconds away, so that it is not made before the click.
    await page.locator('summary', { hasText: '4 attempts' }).waitFor()
    receiver.answer = () => 200
    const attempts = receiver.deliveries.length
    await page.getByRole('button', { name: 'Try again' }).click()
    await page.getByText('No run waits, and none was given up.').waitFor()
    expect(receiver.deliveries.length).toBeGreaterThan(attempts)
    expect(receiver.deliveries.at(-1)?.body).toMatchObject({ metadata: { number: 42 } })
    await page.getByRole('link', { name: 'Integrations' }).click()
    await page.getByRole('cell', { name: 'Monday order', exact: true }).waitFor()
    await inspectScreen(page, 'integrations')
    // The next times of a schedule that is none are refused.
    expect(errors.filter((error) => !/status of 400 .*due-times/.test(error))).toEqual([])
    await receiver.stop()
  })
  test('an event is offered while its name is typed, and one that nothing records is saved with a warning', async () => {
    await using atoll = await openAutomation()
    const { page, errors, call, open } = atoll
    await call('POST', '/api/events', { source: 'shop', kind: 'order', eventName: 'order-placed' })
    await open('integrations/new')
    await page.getByRole('textbox', { name: 'Name', exact: true }).fill('Pack')
    await page.getByRole('combobox', { name: 'When' }).click()
    await page.getByRole('option', { name: 'an event happens' }).click()
    await page.getByRole('combobox', { name: 'Name of the event' }).fill('order-p')
    await page.getByRole('option', { name: 'order-placed' }).click()
    await page.getByRole('combobox', { name: 'Source of the event' }).fill('sho')
    await page.getByRole('option', { name: 'shop' }).click()
    await page.getByRole('combobox', { name: 'Then' }).click()
    await page.getByRole('option', { name: 'send a request' }).click()
    await page.getByRole('textbox', { name: 'Address' }).fill('https://example.com/')
    await page.getByRole('button', { name: 'Create integration' }).click()
    await page.getByText('When “order-placed” from shop happens').first().waitFor()
    const warning = page.getByText('so this may never run. Did you mean "order-placed"?')
    expect(await warning.count()).toBe(0)
    const [{ _id, trigger }] = (await call('GET', '/api/integrations')).body
    expect(trigger).toMatchObject({ source: 'shop', eventName: 'order-placed' })
    await call('PUT', `/api/integrations/${_id}`, { trigger: { ...trigger, eventName: 'order-place' } })
    await page.reload()
    await warning.waitFor()
    await inspectScreen(page, 'integration-warning')
    expect(errors).toEqual([])
  })
})
