// engine: sqlite
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { hasBrowser } from '../fakes/browser'
import type { apiCaller } from '../fakes/cli'
import { callDemo, inspectScreen, openDemo } from './admin-browser'

setDefaultTimeout(120_000)

const CONTRACTS = '/api/blueprints/contracts'
const FIELDS = [
  { key: 'title', type: 'string' },
  { key: 'price', type: 'integer', title: 'Monthly price' },
  { key: 'isOpen', type: 'boolean' },
  { key: 'signedAt', type: 'datetime' },
  { key: 'partner', type: 'relation', target: 'companies' },
  { key: 'tags', type: 'string', multi: true },
  { key: 'terms', type: 'text' },
  { key: 'address', type: 'object' },
]
const TERMS = `${'The tenant pays on the first day of each month. '.repeat(6)}`

describe.skipIf(!hasBrowser)('the history of an entity on the admin page', () => {
  let demo: Awaited<ReturnType<typeof openDemo>>
  let call: ReturnType<typeof apiCaller>
  beforeAll(async () => {
    demo = await openDemo()
    call = await callDemo(demo.server)
    demo.page.setDefaultTimeout(20_000)
  })
  afterAll(() => demo?.[Symbol.asyncDispose]())

  const path = `${CONTRACTS}/entities/c1`
  const read = async () => (await call('GET', path)).body
  const change = async (values: object) => expect((await call('PUT', path, values)).status).toBe(200)
  const open = (hash: string) => demo.page.goto(`${demo.server.url}/admin/data/contracts/c1${hash}`)
  const version = (number: number) =>
    demo.page.getByRole('complementary').getByRole('group', { name: `Version ${number}`, exact: true })
  const confirmRestore = async (number: number) => {
    await version(number).getByRole('button', { name: 'Restore this version' }).click()
    const dialog = demo.page.getByRole('dialog', { name: `Restore version ${number}?` })
    await dialog.getByRole('button', { name: 'Restore' }).click()
  }

  test('an administrator follows the hint to the design, and switches the history of a blueprint on', async () => {
    const { page } = demo
    const blueprint = { key: 'contracts', name: 'Contracts', fields: FIELDS }
    expect((await call('POST', '/api/blueprints', blueprint)).status).toBe(201)
    const [company] = (await call('GET', '/api/blueprints/companies/entities?$limit=1')).body
    const first = {
      ...{ identifier: 'c1', title: 'Rent', price: 900, isOpen: false, tags: ['home'], terms: TERMS },
      ...{ signedAt: '2026-01-31T12:00:00Z', partner: company.identifier, address: { city: 'Ulm', zip: '89073' } },
    }
    expect((await call('POST', `${CONTRACTS}/entities`, first)).status).toBe(201)
    await open('#history')
    await page.getByText('Changes of contracts are not recorded.').waitFor()
    await page.getByRole('link', { name: 'Switch it on in the design' }).click()
    await page.getByRole('checkbox', { name: 'Keep a history of entities' }).check()
    await inspectScreen(page, 'design-history')
    await page.getByRole('button', { name: 'Save', exact: true }).click()
    await page.getByText('The design is saved.').waitFor()
    expect((await call('GET', CONTRACTS)).body.history).toBeTruthy()
  })

  test('the versions show who changed which field, with the former and the new value of each type', async () => {
    const { page, errors } = demo
    const [, other] = (await call('GET', '/api/blueprints/companies/entities?$limit=2')).body
    await change({ price: 1_950, isOpen: true, signedAt: '2026-02-28T12:00:00Z', partner: other.identifier })
    await change({ tags: ['home', 'city'], terms: `${TERMS}In advance.`, address: { city: 'Bonn', zip: '53111' } })
    await change({ title: null, price: 1_000 })
    await open('#history')
    await version(4).getByText('the present one').waitFor()
    // The name of the user comes later than the version.
    await version(4)
      .getByText(/Changed by Ada Admin/)
      .waitFor()
    const readChange = async (number: number, name: string) => {
      const row = version(number)
        .locator('dl > div')
        .filter({ has: page.getByText(name, { exact: true }) })
      return [await row.locator('del').allInnerTexts(), await row.locator('ins').allInnerTexts()].flat()
    }
    expect(await readChange(4, 'title')).toEqual(['Rent', 'no value'])
    expect(await readChange(2, 'Monthly price')).toEqual(['900', '1,950'])
    expect(await readChange(2, 'isOpen')).toEqual(['no', 'yes'])
    const [before, after] = await readChange(2, 'signedAt')
    expect([before, after].map((text) => text?.slice(0, 6))).toEqual(['Jan 31', 'Feb 28'])
    await version(2).getByRole('link', { name: other.name }).waitFor()
    expect(await readChange(3, 'tags')).toEqual(['home', 'home, city'])
    expect((await readChange(3, 'address'))[1]).toContain('"Bonn"')
    // What was there before the history has no former values, and nobody who is known.
    expect(await version(1).locator('del').count()).toBe(0)
    expect(await version(1).innerText()).toStartWith('Created')
    const terms = version(3).locator('dl > div').filter({ hasText: 'terms' })
    await terms.getByRole('button', { name: 'Compare line by line' }).click()
    await terms.locator('.cm-changedLine').first().waitFor()
    await inspectScreen(page, 'entity-versions')
    expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true)
    expect(errors).toEqual([])
  })

  test('a version is restored after a question, and the form has its values', async () => {
    const { page } = demo
    await version(2).getByRole('button', { name: 'Restore this version' }).click()
    await page.getByRole('dialog', { name: 'Restore version 2?' }).getByRole('button', { name: 'Cancel' }).click()
    expect((await read()).price).toBe(1_000)
    const request = page.waitForRequest((each) => each.url().endsWith('/history/2/restore'))
    await confirmRestore(2)
    expect((await (await request).allHeaders())['if-match']).toBeTruthy()
    await page.getByText('Restored version 2.').waitFor()
    await version(5).getByText('the present one').waitFor()
    expect(await version(5).getByRole('button', { name: 'Restore this version' }).count()).toBe(0)
    expect(await read()).toMatchObject({ title: 'Rent', price: 1_950, tags: ['home'], address: { city: 'Ulm' } })
    await page.getByRole('tab', { name: 'Fields' }).click()
    const input = page.getByRole('complementary').getByRole('textbox', { name: 'title', exact: true })
    expect(await input.inputValue()).toBe('Rent')
    await page.getByRole('tab', { name: 'History' }).click()
  })

  test('a version is not restored over what somebody else changed unseen', async () => {
    const { page, errors } = demo
    await open('#history')
    await version(5).waitFor()
    // The page has not heard of the change when it asks.
    await page.route(
      '**/history/1/restore',
      async (route) => {
        await change({ title: 'Theirs' })
        await route.continue()
      },
      { times: 1 },
    )
    await confirmRestore(1)
    await version(1).getByText('Someone else changed this in the meantime.').waitFor()
    await version(6).getByText('Theirs').waitFor()
    expect((await read()).title).toBe('Theirs')
    await confirmRestore(1)
    await page.getByText('Restored version 1.').waitFor()
    expect(await read()).toMatchObject({ title: 'Rent', price: 900 })
    expect(errors.filter((error) => !error.includes('status of 412'))).toEqual([])
  })

  test('a version whose values no longer fit says at which fields, and changes nothing', async () => {
    const { page } = demo
    const fields = FIELDS.map((field) => (field.key === 'price' ? { ...field, max: 1_000 } : field))
    expect((await call('PUT', CONTRACTS, { fields })).status).toBe(200)
    await open('#history')
    await page.reload()
    await confirmRestore(2)
    const alert = version(2).getByRole('alert')
    await alert.getByText('its values no longer fit').waitFor()
    expect(await alert.getByRole('listitem').allInnerTexts()).toEqual([
      expect.stringMatching(/^Monthly price: .*1,?000/) as unknown as string,
    ])
    await alert.scrollIntoViewIfNeeded()
    await inspectScreen(page, 'entity-version-refused')
    expect((await read()).price).toBe(900)
  })

  test('a long history is read page by page', async () => {
    const { page } = demo
    for (let price = 1; price <= 20; price++) await change({ price })
    await open('#history')
    await version(27).waitFor()
    expect(await version(7).count()).toBe(0)
    await page.getByRole('button', { name: 'Earlier versions' }).click()
    await version(1).waitFor()
    expect(await page.getByRole('button', { name: 'Earlier versions' }).count()).toBe(0)
  })

  test('a history is switched off only after the design said that it is removed', async () => {
    const { page } = demo
    await page.goto(`${demo.server.url}/admin/data/contracts/all/design/settings`)
    await page.getByRole('checkbox', { name: 'Keep a history of entities' }).uncheck()
    await page.getByRole('button', { name: 'Save', exact: true }).click()
    const review = page.getByRole('dialog', { name: 'Changes of Contracts' })
    await review.getByText('The history of the entities is removed.').waitFor()
    await review.getByRole('button', { name: 'Save' }).click()
    await page.getByText('The design is saved.').waitFor()
    expect((await call('GET', CONTRACTS)).body.history || false).toBe(false)
  })
})
