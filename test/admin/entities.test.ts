// engine: sqlite
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { hasBrowser } from '../fakes/browser'
import type { apiCaller } from '../fakes/cli'
import { callDemo, inspectScreen, openDemo } from './admin-browser'

setDefaultTimeout(120_000)

/** Waits until something holds. */
async function until(holds: () => Promise<boolean>) {
  while (!(await holds())) await Bun.sleep(50)
}

const CONTACTS = '/api/blueprints/contacts/entities'

describe.skipIf(!hasBrowser)('the entities of a blueprint in a browser', () => {
  let demo: Awaited<ReturnType<typeof openDemo>>
  let call: ReturnType<typeof apiCaller>
  beforeAll(async () => {
    demo = await openDemo()
    call = await callDemo(demo.server)
    for (const [identifier, name, worth] of [
      ['ada', 'Ada Lovelace', '10.00'],
      ['grace', 'Grace Hopper', '20.00'],
      ['alan', 'Alan Turing', '30.00'],
    ])
      await call('POST', CONTACTS, { identifier, name, worth, job: 'Pioneer', company: 'aurora', tags: ['fair'] })
    await call('PUT', '/api/blueprints/contacts', { dispatchers: { update: true } })
  })
  afterAll(() => demo?.[Symbol.asyncDispose]())

  const openList = async (query: string) => {
    await demo.page.goto(`${demo.server.url}/admin/data/contacts${query}`)
    await demo.page.getByText('live', { exact: true }).waitFor()
  }
  const read = async (identifier: string) => (await call('GET', `${CONTACTS}/${identifier}`)).body
  const cell = (name: string) => demo.page.getByRole('cell', { name, exact: true })
  const headers = async () => (await demo.page.getByRole('columnheader').allTextContents()).filter(Boolean)

  test('columns are chosen, put in order, resized, kept, and reset', async () => {
    const { page } = demo
    await openList('?job=Pioneer')
    // A relation shows what its target is called.
    await page
      .getByRole('link', { name: /^Aurora (GmbH|Ltd|AS)$/ })
      .first()
      .waitFor()
    expect(await headers()).toEqual([
      'name',
      'email',
      'job',
      'stage',
      'worth',
      'lastCall',
      'tags',
      'company',
      'updated',
    ])

    await page.getByRole('button', { name: 'Columns' }).click()
    for (const name of ['email', 'lastCall', 'tags']) await page.getByRole('checkbox', { name, exact: true }).uncheck()
    await page.getByRole('checkbox', { name: 'owner' }).check()
    const grip = page.getByRole('button', { name: 'Move worth' })
    await grip.focus()
    for (const key of ['Space', 'ArrowUp', 'ArrowUp', 'Space']) {
      await page.keyboard.press(key)
      await page.waitForTimeout(250)
    }
    await inspectScreen(page, 'entities-columns')
    await page.keyboard.press('Escape')
    expect(await headers()).toEqual(['name', 'worth', 'job', 'stage', 'company', 'updated', 'owner'])
    await cell('Ada Admin').first().waitFor()

    const width = async () => (await page.getByRole('columnheader', { name: 'name' }).boundingBox())?.width ?? 0
    const before = await width()
    await page.getByRole('button', { name: 'name', exact: true }).focus()
    await page.keyboard.press('Shift+ArrowRight')
    expect(await width()).toBeGreaterThan(before)
    await page.reload()
    await cell('Ada Lovelace').waitFor()
    expect(await headers()).toEqual(['name', 'worth', 'job', 'stage', 'company', 'updated', 'owner'])
    expect(await width()).toBeGreaterThan(before)
    await page.getByRole('button', { name: 'Columns' }).click()
    await page.getByRole('button', { name: 'Reset' }).click()
    await page.keyboard.press('Escape')
    expect(await headers()).toContain('tags')
  })

  test('filters are sentences that a click changes, and the query itself can be written', async () => {
    const { page } = demo
    await openList('')
    await page.keyboard.press('f')
    await page.getByLabel('Field').first().fill('stage')
    await page.getByRole('option', { name: 'stage' }).click()
    await page.getByLabel('Condition').first().click()
    await page.getByRole('option', { name: 'is one of' }).click()
    await page.getByRole('combobox', { name: 'Value' }).click({ force: true })
    for (const name of ['lead', 'customer']) await page.getByRole('option', { name }).click()
    await page.keyboard.press('Tab')
    await page.getByRole('button', { name: 'Add filter' }).click()
    await page.getByRole('button', { name: 'stage is one of lead, customer', exact: true }).waitFor()
    expect(page.url()).toContain('stage[$in]=lead,customer')

    await page.keyboard.press('f')
    await page.getByLabel('Field').first().fill('company')
    await page.getByRole('option', { name: 'company' }).click()
    await page.getByRole('combobox', { name: 'Value' }).fill('auro')
    await page.getByRole('option', { name: /^Aurora/ }).click()
    await page.getByRole('button', { name: 'Add filter' }).click()
    const sentence = page.getByRole('button', { name: /^company is Aurora/ })
    await sentence.waitFor()
    await sentence.click()
    await page.getByLabel('Condition').first().click()
    await page.getByRole('option', { name: 'is not', exact: true }).click()
    await page.getByRole('button', { name: 'Change filter' }).click()
    await page.getByRole('button', { name: /^company is not Aurora/ }).waitFor()
    expect(page.url()).toContain('company[$ne]=aurora')

    await page.getByRole('button', { name: 'Query' }).click()
    const query = page.getByRole('textbox', { name: 'Query' })
    await query.fill('worth[$gte]=80000&nonsense[$lt]=5')
    await query.press('Enter')
    await page.getByText(/no field "nonsense"/).waitFor()
    await inspectScreen(page, 'entities-query')
    await query.fill('worth[$gte]=80000&lastCall[$exists]=true&$sort=-worth')
    await query.press('Enter')
    await page.getByRole('button', { name: 'worth is at least 80,000', exact: true }).waitFor()
    await page.getByRole('button', { name: 'lastCall has a value', exact: true }).waitFor()
    await page.getByRole('button', { name: 'job', exact: true }).click({ modifiers: ['Shift'] })
    await page.waitForURL('**$sort=-worth,job')
    const { headers: counted } = await call('GET', `${CONTACTS}?worth[$gte]=80000&lastCall[$exists]=true&$count=true`)
    await page.getByText(`${counted.get('x-total-count')} shown`).waitFor()
    await page.getByRole('button', { name: /^Remove the filter: worth/ }).click()
    await page.getByRole('button', { name: /^Remove the filter: lastCall/ }).click()
    await page.getByRole('searchbox', { name: 'Search Contacts' }).fill('Lovelace')
    await page.getByText('1 shown').waitFor()
  })

  test('a value is changed in its cell and undone, and a refused one stays with the reason', async () => {
    const { page } = demo
    await openList('?job=Pioneer&$sort=name')
    await cell('Ada Lovelace').dblclick()
    const input = page.getByRole('textbox', { name: 'name', exact: true })
    await input.fill('Ada King')
    await input.press('Enter')
    await cell('Ada King').waitFor()
    await page.getByText('Changed name of Ada Lovelace.').waitFor()
    expect((await read('ada')).name).toBe('Ada King')
    await page.getByRole('button', { name: 'Undo' }).click()
    await cell('Ada Lovelace').waitFor()
    await until(async () => (await read('ada')).name === 'Ada Lovelace')

    // By keys: to the cell of the e-mail address, which is not one.
    await page.locator('tr[data-index="0"]').focus()
    for (const key of ['ArrowRight', 'ArrowRight', 'e']) await page.keyboard.press(key)
    await page.getByRole('textbox', { name: 'email' }).fill('nonsense')
    await page.keyboard.press('Enter')
    await page.getByText('email must be an e-mail address.').waitFor()
    // The server knows that somebody else has this address.
    const { email } = (await call('GET', `${CONTACTS}?$limit=1&email[$exists]=true`)).body[0]
    await page.getByRole('textbox', { name: 'email' }).fill(email)
    await page.keyboard.press('Enter')
    await page.getByRole('textbox', { name: 'email' }).waitFor()
    await page.getByText(/email.*(already|exists|unique|taken)/i).waitFor()
    expect(await page.getByRole('textbox', { name: 'email' }).inputValue()).toBe(email)
    await inspectScreen(page, 'entities-cell')
    await page.keyboard.press('Escape')
    expect((await read('ada')).email).toBeUndefined()
  })

  test('marked rows are changed at once and back again, and deleted after their name was typed', async () => {
    const { page } = demo
    await openList('?job=Pioneer&$sort=name')
    await page.locator('tr[data-index="0"]').focus()
    await page.keyboard.press('x')
    await page.keyboard.press('ArrowDown')
    await page.keyboard.press('ArrowDown')
    await page.keyboard.press('Shift+X')
    await page.getByText('3 marked').waitFor()
    await page.getByRole('button', { name: 'Change a field of 3 contacts' }).click()
    await page.getByRole('combobox', { name: 'Field' }).click()
    await page.getByRole('option', { name: 'worth' }).click()
    await page.getByRole('textbox', { name: 'New value' }).fill('5')
    await page.getByRole('button', { name: 'Change 3 contacts' }).click()
    await page.getByText('Changed worth of 3 contacts.').waitFor()
    expect((await read('grace')).worth).toBe('5')
    await page.getByRole('button', { name: 'Undo' }).click()
    await until(async () => (await read('grace')).worth === '20.00')

    await page.getByRole('button', { name: 'Clear marks' }).click()
    await call('POST', `${CONTACTS}/batch`, {
      operations: Array.from({ length: 5 }, (_, n) => ({ op: 'create', data: { name: `Gone ${n}`, job: 'Leaver' } })),
    })
    await openList('?job=Leaver')
    await page.getByRole('checkbox', { name: 'Mark all rows of this page' }).check()
    await page.getByText('5 marked').waitFor()
    await inspectScreen(page, 'entities-marked')
    await page.getByRole('button', { name: 'Delete 5 contacts' }).click()
    await page.getByLabel('Type contacts to confirm').fill('contacts')
    await page.getByRole('dialog').getByRole('button', { name: 'Delete 5 contacts' }).click()
    await page.getByText('No entity matches these filters.').waitFor()
    expect((await call('GET', `${CONTACTS}?job=Leaver`)).body).toEqual([])
  })

  test('a list shows at once what others change, and a form keeps what somebody types', async () => {
    const { page } = demo
    await openList('?job=Pioneer&$sort=name')
    await cell('Ada Lovelace').waitFor()
    await call('PUT', `${CONTACTS}/ada`, { name: 'Ada Byron' })
    await cell('Ada Byron').waitFor()
    await call('POST', CONTACTS, { identifier: 'new', name: 'New Comer', job: 'Pioneer' })
    await cell('New Comer').waitFor()
    await page.getByText('4 shown').waitFor()

    await cell('Ada Byron').click()
    const panel = page.getByRole('complementary')
    const name = panel.getByRole('textbox', { name: 'name', exact: true })
    await name.fill('Ada Mine')
    await call('PUT', `${CONTACTS}/ada`, { name: 'Ada Theirs', worth: '77.00' })
    await panel.getByText(/Changed by Ada Admin .*: name, worth\./).waitFor()
    expect(await name.inputValue()).toBe('Ada Mine')
    expect(await panel.getByRole('textbox', { name: 'worth' }).inputValue()).toBe('77.00')
    await inspectScreen(page, 'entity-conflict')
    await page.keyboard.press('Control+Enter')
    await panel.getByText('Someone else changed the same fields. Choose which value to keep for each.').waitFor()
    await panel.getByRole('button', { name: 'Take theirs' }).click()
    expect(await name.inputValue()).toBe('Ada Theirs')
    await name.fill('Ada Lovelace')
    await page.keyboard.press('Control+Enter')
    await page.getByText('Saved.').waitFor()
    expect(await read('ada')).toMatchObject({ name: 'Ada Lovelace', worth: '77.00' })

    await panel.getByRole('tab', { name: 'History' }).click()
    await panel
      .getByText(/Changed by Ada Admin/)
      .first()
      .waitFor()
    await panel.getByText('name, worth').waitFor()
    await inspectScreen(page, 'entity-history')
    // The panel goes from row to row.
    await panel.getByRole('button', { name: 'Next row' }).click()
    await page.getByRole('heading', { name: 'Alan Turing' }).waitFor()
    await page.keyboard.press('j')
    await page.getByRole('heading', { name: 'Grace Hopper' }).waitFor()
    await page.keyboard.press('Escape')
    await panel.waitFor({ state: 'detached' })
    await page.keyboard.press('?')
    await page.getByRole('dialog', { name: 'Keyboard shortcuts' }).waitFor()
    await inspectScreen(page, 'keys')
    await page.keyboard.press('Escape')
    await call('DELETE', `${CONTACTS}/new`)
  })

  test('an entity is duplicated, deep-linked and deleted', async () => {
    const { page, errors } = demo
    await openList('/grace')
    await page.getByRole('heading', { name: 'Grace Hopper' }).waitFor()
    await page.getByRole('complementary').getByRole('button', { name: 'More' }).click()
    await page.getByRole('menuitem', { name: 'Duplicate' }).click()
    await page.getByRole('heading', { name: 'New in Contacts' }).waitFor()
    await page.getByRole('textbox', { name: 'name', exact: true }).fill('Grace Double')
    await page.getByRole('textbox', { name: 'identifier' }).fill('double')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByRole('heading', { name: 'Grace Double' }).waitFor()
    expect(await read('double')).toMatchObject({ name: 'Grace Double', worth: '20.00', company: 'aurora' })
    await page.getByRole('complementary').getByRole('button', { name: 'More' }).click()
    await page.getByRole('menuitem', { name: 'Delete' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
    await page.getByText('Deleted Grace Double.').waitFor()
    expect((await call('GET', `${CONTACTS}/double`)).status).toBe(404)
    // A refused value is reported by its status.
    expect(errors.filter((error) => !/status of 4(00|09)/.test(error))).toEqual([])
  })
})
