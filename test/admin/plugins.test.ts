// engine: sqlite
import { describe, expect, setDefaultTimeout, test } from 'bun:test'
import { Webhook } from 'standardwebhooks'
import { hasBrowser } from '../fakes/browser'
import { startWebhookReceiver } from '../fakes/webhook-receiver'
import { waitUntil } from '../wait-until'
import { inspectScreen } from './admin-browser'
import { openAutomation } from './automation-fixtures'

setDefaultTimeout(120_000)

describe.skipIf(!hasBrowser)('plugins in the admin page', () => {
  test('an admin registers a plugin, whose failed delivery succeeds when it is sent again, and replaces its secret', async () => {
    const receiver = startWebhookReceiver()
    receiver.answer = () => new Response('out of order', { status: 500 })
    await using atoll = await openAutomation()
    const { page, errors, call, open } = atoll
    await open('plugins')
    await page.getByRole('button', { name: 'Register a plugin' }).click()
    await page.getByRole('textbox', { name: 'Name', exact: true }).first().fill('crm')
    await page.getByRole('textbox', { name: 'Path' }).fill('crm')
    await page.getByRole('textbox', { name: 'Address that answers' }).fill(receiver.url)
    await page.getByRole('button', { name: 'Add subscription' }).click()
    const subscription = page.getByRole('group', { name: 'Subscription 1' })
    await subscription.getByLabel('Source').fill('shop')
    await subscription.getByRole('textbox', { name: 'Address' }).fill('ftp://nowhere')
    await page.getByRole('button', { name: 'Register plugin' }).click()
    await page
      .getByText(/address/i)
      .last()
      .waitFor()
    await page.getByText(/http/).last().waitFor()
    errors.length = 0
    await subscription.getByRole('textbox', { name: 'Address' }).fill(`${receiver.url}/hooks`)
    await page.getByRole('button', { name: 'Register plugin' }).click()
    await page.getByRole('dialog', { name: 'Secret of the plugin' }).waitFor()
    const secret = await page.getByText(/^whsec_/).innerText()
    await page.getByRole('button', { name: 'I have kept it' }).click()
    await page.getByRole('heading', { name: 'crm' }).waitFor()

    await call('POST', '/api/events', { source: 'shop', kind: 'order', eventName: 'paid', metadata: { number: 7 } })
    await page.getByText('Failing', { exact: true }).first().waitFor()
    await page.locator('summary').first().click()
    await page.getByText('out of order').waitFor()
    await page.getByText('"number": 7').waitFor()
    await inspectScreen(page, 'plugin')
    receiver.answer = () => 200
    await page.getByRole('button', { name: 'Send now' }).click()
    await page.getByText('Delivered', { exact: true }).first().waitFor()
    const { headers, text } = receiver.deliveries.at(-1)!
    expect(new Webhook(secret).verify(text, headers)).toMatchObject({ eventName: 'paid' })

    await page.getByRole('tab', { name: 'Secret and token' }).click()
    await page.getByRole('button', { name: 'Replace secret' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Replace secret' }).click()
    const fresh = await page.getByText(/^whsec_/).innerText()
    expect(fresh).not.toBe(secret)
    await page.getByRole('button', { name: 'I have kept it' }).click()
    await page.getByRole('button', { name: 'Create token' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Create token' }).click()
    await page.getByRole('dialog', { name: 'Token' }).waitFor()
    await inspectScreen(page, 'plugin-token')
    await page.getByRole('button', { name: 'I have kept it' }).click()

    await page.getByRole('switch', { name: 'crm is on' }).click({ force: true })
    await page.getByText('crm is off.').waitFor()
    await waitUntil(async () => (await call('GET', '/api/plugins')).body[0].active === false)
    await page.getByRole('link', { name: 'Plugins' }).click()
    await page.getByRole('cell', { name: 'crm', exact: true }).waitFor()
    await inspectScreen(page, 'plugins')
    expect(errors).toEqual([])
    await receiver.stop()
  })

  test('all deliveries that were given up are sent again at once, the oldest first', async () => {
    const receiver = startWebhookReceiver()
    receiver.answer = () => 410
    await using atoll = await openAutomation()
    const { page, errors, call, open } = atoll
    const subscribedEvents = [{ source: 'shop', hookUrl: `${receiver.url}/hooks` }]
    const { _id } = (await call('POST', '/api/plugins', { name: 'crm', subscribedEvents })).body
    await call('POST', '/api/events', { source: 'shop', eventName: 'first' })
    const isDead = async () => (await call('GET', `/api/plugins/${_id}/deliveries?state=dead`)).body.length === 1
    await waitUntil(isDead)
    await open(`plugins/${_id}`)
    await page.getByRole('checkbox', { name: 'On' }).check()
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('Saved.').waitFor()
    receiver.answer = () => 200
    await page.getByRole('button', { name: 'Resend all that were given up' }).click()
    await page.getByText('1 delivery is sent again.').waitFor()
    await page.getByText('Delivered', { exact: true }).first().waitFor()
    expect(receiver.deliveries.map(({ body }) => body.eventName)).toEqual(['first', 'first'])
    expect(errors).toEqual([])
    await receiver.stop()
  })
})
