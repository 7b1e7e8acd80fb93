// engine: sqlite
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import type { Locator, Page } from 'playwright-core'
import { hasBrowser } from '../fakes/browser'
import { apiCaller, createTempFolder, PASSWORD, type RunningAtoll, startAtoll } from '../fakes/cli'
import { STRIPE_KEY, STRIPE_SECRET, type StripeVendor, startStripe } from '../fakes/vendors/stripe'
import { inspectScreen, openPage, setUpAdmin } from './admin-browser'

setDefaultTimeout(120_000)

describe.skipIf(!hasBrowser)('payments on the admin page', () => {
  let server: RunningAtoll
  let stripe: StripeVendor
  let page: Page
  let errors: string[]
  let call: ReturnType<typeof apiCaller>
  let delivered = 0

  beforeAll(async () => {
    stripe = await startStripe()
    server = await startAtoll({ at: createTempFolder(), env: { ATOLL_ALLOW_PRIVATE_NETWORK: 'on' } })
    ;({ page, errors } = await openPage())
    await setUpAdmin(page, server)
    const signedIn = await apiCaller(server.url)('POST', '/api/signin', {
      ...{ username: 'ada', password: PASSWORD, authType: 'oauth' },
    })
    call = apiCaller(server.url, { authorization: `Bearer ${signedIn.body.payload.token}` })
    await call('POST', '/api/users', { username: 'grace', password: PASSWORD, name: 'Grace Hopper' })
    await call('POST', '/api/workspaces', { name: 'Aurora Ltd' })
  })
  afterAll(async () => {
    await page.close()
    await server[Symbol.asyncDispose]()
    await stripe.stop()
  })

  /** Sends what happened at the provider since the last time to the webhook. */
  const deliverEvents = async () => {
    for (const event of stripe.events.slice(delivered)) await deliver(event)
    delivered = stripe.events.length
  }
  const deliver = async (event: object) => {
    const { raw, headers } = await stripe.signEvent(event)
    const answer = await fetch(`${server.url}/api/payments/webhooks/stripe`, { method: 'POST', body: raw, headers })
    return answer.json()
  }
  /** What the browser reports, besides the refusals that are tried on purpose. */
  const listFaults = () => errors.filter((error) => !error.includes('status of 400'))
  const goTo = (path: string) => page.goto(`${server.url}/admin/payments/${path}`)
  const panel = () => page.getByRole('complementary')
  const choose = async (label: string, option: string | RegExp, within: Page | Locator = page) => {
    await within.getByRole('combobox', { name: label }).click()
    await page.getByRole('option', { name: option }).first().click()
  }
  const press = (name: string | RegExp) => page.getByRole('button', { name, exact: typeof name === 'string' }).click()

  test('an administrator connects a provider, whose secrets are never shown again, and turns payments on', async () => {
    await page.getByRole('link', { name: 'Payments' }).click()
    await page.getByText('There are no plans yet.').waitFor()
    await inspectScreen(page, 'plans-empty')
    await page.getByRole('link', { name: 'Configuration' }).click()
    await press('Add provider')
    await page.getByRole('menuitem', { name: 'Stripe' }).click()
    await page.getByLabel('Address of the API').fill(stripe.url)
    await page.getByLabel('Secret key').fill('sk_test_wrong')
    await page.getByLabel('Signing secret of the webhook').fill(STRIPE_SECRET)
    await page.getByLabel('Events').getByText('invoice.paid').waitFor()
    await panel().getByRole('button', { name: 'Add provider' }).click()
    await page.getByText('The server rejected the credentials (401).').first().waitFor()
    await page.getByLabel('Secret key').fill(STRIPE_KEY)
    await panel().getByRole('button', { name: 'Save' }).click()
    await page.getByText('Connected', { exact: true }).first().waitFor()
    expect(await page.getByLabel('Secret key').inputValue()).toBe('')
    await inspectScreen(page, 'payments-provider')
    await page.keyboard.press('Escape')
    await page.getByLabel('Customers can pay').check()
    await choose('Provider of new subscriptions', 'Stripe')
    await page.getByRole('combobox', { name: 'Currency' }).fill('EUR')
    await page.getByRole('option', { name: 'EUR' }).click()
    await press('Save')
    await page.getByText('The configuration is saved.').waitFor()
    await inspectScreen(page, 'payments-configuration')
    const { body } = await call('GET', '/api/payments/configuration')
    expect(body.metadata).toMatchObject({ isEnabled: true, defaultCurrency: 'EUR' })
    expect(await page.evaluate(() => JSON.stringify(localStorage))).not.toContain(STRIPE_KEY)
    expect(listFaults()).toEqual([])
  })

  test('they create plans, see them as customers do, and change their order', async () => {
    await goTo('plans')
    await press('Create a plan')
    await press('Create plan')
    await page.getByText('monthlyPrice is required').waitFor()
    await page.getByLabel('Name', { exact: false }).first().fill('Pro')
    await page.getByLabel('Price a month').fill('20')
    await page.getByLabel('Price a year').fill('200')
    await press('Add limit')
    await page.getByLabel('Name of limit 1').fill('projects')
    await page.getByLabel('Value of limit 1').fill('10')
    await page.getByText('€20.00 a month or €200.00 a year, which saves 17 %').waitFor()
    await inspectScreen(page, 'plan-new')
    await press('Create plan')
    await page.getByRole('heading', { name: 'Pro', exact: true }).waitFor()
    await page.keyboard.press('Escape')
    await call('POST', '/api/plans', { name: 'Made to measure', dynamic: true, sortOrder: 1 })
    await page.reload()
    await page.getByRole('cell', { name: 'Made to measure' }).waitFor()
    await inspectScreen(page, 'plans')
    await press('Change order')
    await page.getByRole('button', { name: 'Move Made to measure' }).focus()
    for (const key of ['Space', 'ArrowUp', 'Space']) {
      await page.keyboard.press(key)
      await page.waitForTimeout(150)
    }
    await page.getByText('“Made to measure” is now number 1.').waitFor()
    await inspectScreen(page, 'plan-order')
    const { body } = await call('GET', '/api/plans')
    expect(body.map(({ name }: { name: string }) => name)).toEqual(['Made to measure', 'Pro'])
    expect(body[1].limits).toEqual({ projects: 10 })
  })

  test('they create a coupon, and the simulator says what a customer pays with it', async () => {
    await goTo('coupons')
    await press('Create a coupon')
    await page.getByLabel('Code').fill('SPRING')
    await page.getByLabel('How much').fill('50')
    await choose('How long the discount lasts', 'A number of days')
    await page.getByLabel('How many').fill('80')
    await press('Create coupon')
    await page.getByText('50 % off for 80 days.').waitFor()
    await inspectScreen(page, 'coupon')
    await page.keyboard.press('Escape')
    await press('New coupon')
    await page.getByLabel('Code').fill('spring')
    await page.getByLabel('How much').fill('5')
    await press('Create coupon')
    await page.getByText('A coupon with this code already exists.').waitFor()

    const couponBox = () => page.getByRole('combobox', { name: 'Coupon' })
    await goTo('simulator')
    const tab = page.getByRole('link', { name: 'Price simulator' })
    expect(await tab.getAttribute('aria-current')).toBe('page')
    await choose('Plan', 'Pro')
    await couponBox().fill('SPRING')
    await page.getByLabel('It begins').fill('2026-01-31')
    await page
      .getByText('The customer pays €10.00 a month, and €20.00 from Apr 30, 2026: €210.00 in 12 payments.')
      .waitFor()
    await page.getByRole('cell', { name: '€10.00 less with SPRING until Apr 21, 2026' }).first().waitFor()
    await page.waitForTimeout(500)
    await inspectScreen(page, 'price-simulator')
    await couponBox().fill('AUTUMN')
    await page.getByText('Coupon not found.').first().waitFor()
  })

  test('they subscribe a customer, whose payment makes the subscription active, with an invoice', async () => {
    await goTo('subscriptions')
    await press('Create a subscription')
    await panel().getByRole('combobox', { name: 'Customer' }).fill('grace')
    await page.getByRole('option', { name: 'Grace Hopper' }).click()
    await choose('Plan', /^Pro/, panel())
    await page.getByLabel('Coupon').fill('SPRING')
    await inspectScreen(page, 'subscription-new')
    await press('Create subscription')
    await page.getByText(/checkout\.stripe\.com/).waitFor()
    await inspectScreen(page, 'subscription-checkout')
    stripe.pay([...stripe.sessions.keys()].at(-1)!)
    await deliverEvents()
    await press('Show the subscription')
    await page.getByText('It renews on').waitFor()
    await page.getByText('The subscription became active.').waitFor()
    await page.getByText('Invoice of €10.00, paid').waitFor()
    await page.getByLabel('Revenue').getByText('€10.00').waitFor()
    await inspectScreen(page, 'subscription')

    await press('Change coupon')
    await page.getByRole('combobox', { name: 'Code' }).fill('')
    await page.keyboard.press('Tab')
    await inspectScreen(page, 'subscription-coupon')
    await press('Remove SPRING')
    await page.getByText('The coupon is removed.').waitFor()
    await page.getByLabel('Revenue').getByText('€20.00').waitFor()
    const [subscription] = (await call('GET', '/api/subscriptions')).body
    expect(subscription).toMatchObject({ status: 'active', finalPrice: 20, couponCode: null })

    await page.getByRole('link', { name: 'Invoice of €10.00, paid' }).click()
    await page.getByRole('cell', { name: '1 × Plan' }).waitFor()
    await inspectScreen(page, 'invoice')
    expect(listFaults()).toEqual([])
  })

  test('the inbox shows what the provider sent, and applies again what waits', async () => {
    const stray = stripe.happened('invoice.paid', { ...[...stripe.invoices.values()][0], id: 'in_stray' })
    delivered = stripe.events.length
    stray.data.object.parent.subscription_details = { metadata: {}, subscription: 'sub_unknown' }
    expect(await deliver(stray)).toEqual({ status: 'parked' })
    await goTo('inbox')
    await page.getByRole('cell', { name: 'Waiting' }).waitFor()
    await inspectScreen(page, 'payments-inbox')
    await choose('State', 'Waiting')
    await page.getByRole('cell', { name: 'invoice.paid' }).click()
    await page.getByText('"in_stray"').waitFor()
    await inspectScreen(page, 'payments-inbox-event')
    await press('Replay')
    await page.getByText(/^Waiting: /).waitFor()
    await page.keyboard.press('Escape')
    await press('Replay all failed')
    await press('Replay it')
    await page.getByText('The event was replayed: 1 waiting.').waitFor()
    const { body } = await call('GET', '/api/payments/events?status=parked')
    expect(body[0].attempts).toBeGreaterThanOrEqual(3)
  })

  test('an archived plan and a cancelled subscription are asked about first', async () => {
    await goTo('plans')
    await page.getByRole('cell', { name: 'Pro', exact: true }).click()
    await press('Archive')
    await page.getByText('Grace Hopper is subscribed to it.').waitFor()
    await inspectScreen(page, 'plan-archive')
    await press('Archive plan')
    await page.getByText('“Pro” is archived.').waitFor()
    await goTo('subscriptions?status=active')
    await page.getByRole('cell', { name: 'Grace Hopper' }).click()
    await press('Cancel now')
    await page.getByText('Stripe charges nothing more').waitFor()
    await press('Cancel subscription')
    await page.getByText('The subscription of Grace Hopper is cancelled.').waitFor()
    await page.getByText('No subscription matches these filters.').waitFor()
    expect((await call('GET', '/api/subscriptions')).body[0].status).toBe('canceled')
    expect([...stripe.subscriptions.values()][0].status).toBe('canceled')
    expect(listFaults()).toEqual([])
  })
})
