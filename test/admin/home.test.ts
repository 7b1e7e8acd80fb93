// engine: sqlite
import { describe, expect, setDefaultTimeout, test } from 'bun:test'
import type { Page } from 'playwright-core'
import { hasBrowser } from '../fakes/browser'
import { createTempFolder, PASSWORD, type RunningAtoll, startAtoll } from '../fakes/cli'
import { startWebhookReceiver } from '../fakes/webhook-receiver'
import { findLink, inspectScreen, openPage } from './admin-browser'

setDefaultTimeout(240_000)
// Both tests wait for what the page asks for every few seconds, so they wait at once.

/** Calls the API of the demo with the session of a page. */
const apiOf =
  (page: Page, server: RunningAtoll) =>
  async (method: string, path: string, data?: unknown): Promise<{ _id: string; [key: string]: unknown }> => {
    const answer = await page.request.fetch(`${server.url}${path}`, {
      ...{ method, headers: { tenant: 'demo', origin: server.url } },
      ...(data !== undefined && { data }),
    })
    if (!answer.ok()) throw new Error(`${method} ${path}: ${await answer.text()}`)
    return answer.json()
  }

async function signIn(page: Page, server: RunningAtoll, username: string) {
  await page.goto(`${server.url}/admin/home?tenant=demo`)
  await page.getByLabel('Username or e-mail address').fill(username)
  await page.getByRole('textbox', { name: /^Password/ }).fill(PASSWORD)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByRole('heading', { name: 'Home' }).waitFor()
}

describe.skipIf(!hasBrowser)('the home screen in a browser', () => {
  test.concurrent('an admin sees what there is and what happens, and others only see what they may read', async () => {
    await using server = await startAtoll({ at: createTempFolder(), env: { ATOLL_AI_ECHO: 'on' } }, '--demo')
    const { page, errors } = await openPage()
    await page.goto(await findLink(server, '/admin/link'))
    await page.waitForURL('**/admin/home')
    const call = apiOf(page, server)
    await page.getByRole('link', { name: '300 contacts +300 in 30 days' }).waitFor()
    await page.getByText('1 active this week, of 1 user').waitFor()
    await page.getByText('No model was used in the last 30 days.').waitFor()
    await page.getByText('No subscriptions yet.').waitFor()
    await page.getByText('Nothing has happened yet.').waitFor()
    await page.getByRole('link', { name: /MiB in the database/ }).waitFor()

    for (const [username, roles] of [
      ['grace', ['user']],
      ['edith', ['user', 'editor']],
    ] as const)
      await call('POST', '/api/users', { username, password: PASSWORD, name: username, roles })
    await page
      .getByRole('link', { name: /^User created/ })
      .first()
      .waitFor()
    await call('POST', '/api/events', {
      source: 'shop',
      kind: 'order',
      eventName: 'order-lost',
      description: 'By post',
    })

    const agent = await call('POST', '/api/ai/agents', { name: 'Librarian', sourceId: 'echo' })
    const messages = [{ role: 'user', content: 'What is new?' }]
    await call('POST', `/api/ai/${agent._id}/chat-completion`, { messages })
    const plan = await call('POST', '/api/plans', { name: 'Free', monthlyPrice: 0, yearlyPrice: 0, currency: 'EUR' })
    await call('PUT', '/api/payments/configuration', { metadata: { isEnabled: true } })
    await call('POST', '/api/checkout', { planId: plan._id, billingCycle: 'monthly' })
    await page.reload()
    await page.getByRole('link', { name: /^Order lost/ }).waitFor()
    await page.getByText(/tokens in 30 days/).waitFor()
    await page.getByText('1 active subscription').waitFor()
    await page.getByText('1 active this week, of 3 users').waitFor()
    await inspectScreen(page, 'home-figures')
    await page.getByRole('link', { name: '20 companies' }).click()
    await page.waitForURL('**/admin/data/companies')
    expect(errors).toEqual([])
    await page.close()

    for (const [username, readsEvents] of [
      ['grace', false],
      ['edith', true],
    ] as const) {
      const other = await openPage()
      await signIn(other.page, server, username)
      await other.page.getByText('300 contacts').waitFor()
      expect(await other.page.getByRole('heading', { name: 'People' }).count()).toBe(0)
      expect(await other.page.getByRole('heading', { name: 'Payments' }).count()).toBe(0)
      if (readsEvents) await other.page.getByRole('link', { name: /^Order lost/ }).waitFor()
      else await inspectScreen(other.page, 'home-user')
      expect(other.errors).toEqual([])
      await other.page.close()
    }
  })

  test.concurrent('an admin sees a delivery that fails and what waits behind it, and retries it', async () => {
    const receiver = startWebhookReceiver()
    receiver.answer = () => 503
    const env = { ATOLL_ALLOW_PRIVATE_NETWORK: 'on' }
    await using server = await startAtoll({ at: createTempFolder(), env }, '--demo')
    const { page, errors } = await openPage()
    await page.goto(await findLink(server, '/admin/link'))
    await page.waitForURL('**/admin/home')
    const call = apiOf(page, server)
    await page.getByText('Nothing failed in the last 30 days.').waitFor()
    const subscribedEvents = [{ source: 'shop', hookUrl: `${receiver.url}/orders` }]
    await call('POST', '/api/plugins', { name: 'Warehouse', subscribedEvents })
    for (const eventName of ['placed', 'paid']) await call('POST', '/api/events', { source: 'shop', eventName })
    const failing = page.getByRole('list', { name: 'Failing now' })
    await failing.getByRole('link', { name: 'Delivery to Warehouse' }).waitFor()
    await failing.getByText('The endpoint answered 503.').waitFor()
    await failing.getByText(/failed attempts?, next .*, 1 waiting behind it/).waitFor()
    expect(await page.getByText('Nothing failed in the last 30 days.').count()).toBe(0)
    await inspectScreen(page, 'home-failing')
    receiver.answer = () => 200
    await failing.getByRole('button', { name: 'Retry now' }).click()
    await failing.waitFor({ state: 'detached' })
    await page.getByText('Nothing failed in the last 30 days.').waitFor()
    expect(receiver.deliveries.slice(-2).map(({ body }) => body.eventName)).toEqual(['placed', 'paid'])
    expect(errors).toEqual([])
    await page.close()
    await receiver.stop()
  })
})
