// engine: sqlite
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { hasBrowser } from '../fakes/browser'
import type { apiCaller } from '../fakes/cli'
import { callDemo, inspectScreen, openDemo } from './admin-browser'

setDefaultTimeout(120_000)

const PLANTS = '/api/blueprints/plants/entities'

const SCHEMA = {
  type: 'object',
  required: ['street'],
  properties: {
    street: { type: 'string', title: 'Street', minLength: 3 },
    zip: { type: 'string', title: 'Postcode', pattern: '^\\d{4}$' },
    floors: { type: 'integer', title: 'Floors', maximum: 9 },
    since: { type: 'string', format: 'date', title: 'Since' },
    phones: { type: 'array', title: 'Phones', items: { type: 'string' } },
  },
}

describe.skipIf(!hasBrowser)('fields with several values and objects in a form', () => {
  let demo: Awaited<ReturnType<typeof openDemo>>
  let call: ReturnType<typeof apiCaller>
  beforeAll(async () => {
    demo = await openDemo()
    call = await callDemo(demo.server)
    const created = await call('POST', '/api/blueprints', {
      ...{ key: 'plants', name: 'Plants' },
      fields: [
        { key: 'name', type: 'string' },
        { key: 'scores', type: 'number', multi: true, min: 1, max: 3 },
        { key: 'days', type: 'date', multi: true },
        { key: 'words', type: 'string', multi: true },
        { key: 'links', type: 'url', multi: true },
        { key: 'address', type: 'object', schema: SCHEMA },
        { key: 'meta', type: 'object' },
      ],
    })
    expect(created.status).toBe(201)
    await call('POST', PLANTS, { identifier: 'fern', name: 'Fern' })
  })
  afterAll(() => demo?.[Symbol.asyncDispose]())

  const read = async () => (await call('GET', `${PLANTS}/fern`)).body
  const open = async () => {
    await demo.page.goto(`${demo.server.url}/admin/data/plants/fern`)
    await demo.page.getByRole('heading', { name: 'Fern' }).waitFor()
  }
  const value = (name: string, number: number) => demo.page.getByLabel(`${name}, value ${number}`, { exact: true })
  const add = (name: string) => demo.page.getByRole('button', { name: `Add a value to ${name}` }).click()
  const save = () => demo.page.getByRole('button', { name: 'Save' }).click()
  const saveWell = async () => {
    await save()
    await demo.page.getByText('Saved.').last().waitFor()
    await demo.page.getByRole('button', { name: 'Close the message' }).first().click()
    await demo.page.getByText('Saved.').waitFor({ state: 'detached' })
  }

  test('numbers, dates, texts and links are added, changed and removed one by one', async () => {
    const { page } = demo
    await open()
    for (const [n, number] of ['1.5', '-2', '1000000'].entries()) {
      await add('scores')
      await value('scores', n + 1).fill(number)
    }
    for (const [n, day] of ['2030-01-31', '2031-02-28'].entries()) {
      await add('days')
      await value('days', n + 1).fill(day)
    }
    const words = page.getByRole('combobox', { name: 'words' })
    for (const word of ['one', 'two, three', 'مرحبا']) {
      await words.fill(word)
      await words.press('Enter')
    }
    const links = page.getByRole('combobox', { name: 'links' })
    await links.fill('https://example.com/a')
    await links.press('Enter')
    await inspectScreen(page, 'entity-lists')
    await saveWell()
    expect(await read()).toMatchObject({
      ...{ scores: [1.5, -2, 1_000_000], days: ['2030-01-31', '2031-02-28'] },
      ...{ words: ['one', 'two, three', 'مرحبا'], links: ['https://example.com/a'] },
    })

    await value('scores', 2).fill('7')
    await page.getByRole('button', { name: 'Remove value 1 of scores' }).click()
    await links.press('Backspace')
    await page.getByRole('button', { name: 'Remove value 2 of days' }).click()
    await words.press('Backspace')
    await saveWell()
    const { scores, days, words: texts, links: addresses } = await read()
    expect({ scores, days, texts, addresses }).toEqual({
      ...{ scores: [7, 1_000_000], days: ['2030-01-31'], texts: ['one', 'two, three'], addresses: undefined },
    })
  })

  test('a wrong or empty value of a list, and too many of them, are refused at their field', async () => {
    const { page } = demo
    await open()
    await add('scores')
    await save()
    await page.getByText(/scores.* must be a number/).waitFor()
    await value('scores', 3).fill('3')
    await add('scores')
    await value('scores', 4).fill('4')
    await add('days')
    const links = page.getByRole('combobox', { name: 'links' })
    await links.fill('javascript:alert(1)')
    await links.press('Enter')
    await save()
    await page.getByText('scores must have at most 3 values.').waitFor()
    await page.getByText(/days.* must be a date/).waitFor()
    await page.getByText(/links.* must be a URL that starts with http/).waitFor()
    await inspectScreen(page, 'entity-lists-refused')
    expect(await page.getByRole('alert').count()).toBe(0)
    for (const name of ['Remove value 4 of scores', 'Remove value 2 of days'])
      await page.getByRole('button', { name }).click()
    await links.press('Backspace')
    await saveWell()
    expect((await read()).scores).toEqual([7, 1_000_000, 3])
  })

  test('an object with a schema has an input for each property, and a refusal stands at its property', async () => {
    const { page, errors } = demo
    await open()
    await page.getByLabel('Postcode').fill('x')
    await page.getByLabel('Floors').fill('12')
    await page.getByLabel('Since').fill('2020-05-04')
    const phones = page.getByRole('combobox', { name: 'Phones' })
    await phones.fill('044')
    await phones.press('Enter')
    await save()
    const address = page.getByRole('complementary')
    await address.getByText("address must have required property 'street'.").waitFor()
    expect(await page.getByLabel('Street').getAttribute('aria-invalid')).toBe('true')
    expect(await page.getByLabel('Postcode').getAttribute('aria-invalid')).not.toBe('true')
    await inspectScreen(page, 'entity-object-refused')
    await page.getByLabel('Street').fill('Hauptstrasse 1')
    await save()
    await address.getByText(/must match pattern/).waitFor()
    expect(await page.getByLabel('Postcode').getAttribute('aria-invalid')).toBe('true')
    await page.getByLabel('Postcode').fill('3000')
    await page.getByLabel('Floors').fill('2')
    await saveWell()
    expect((await read()).address).toEqual({
      ...{ street: 'Hauptstrasse 1', zip: '3000', floors: 2, since: '2020-05-04', phones: ['044'] },
    })
    await page.getByLabel('Floors').fill('')
    await page.getByLabel('Since').fill('')
    const editor = page.getByRole('textbox', { name: 'meta' })
    await editor.fill('{ "a": [1, ')
    await page.getByText(/This is not JSON yet/).waitFor()
    await editor.fill('{ "a": [1, { "b": null }] }')
    await page.getByText(/This is not JSON yet/).waitFor({ state: 'detached' })
    await saveWell()
    expect(await read()).toMatchObject({
      address: { street: 'Hauptstrasse 1', zip: '3000', phones: ['044'] },
      meta: { a: [1, { b: null }] },
    })
    expect((await read()).address.floors).toBeUndefined()
    expect(errors.filter((error) => !/status of 400/.test(error))).toEqual([])
  })
})

test.skipIf(!hasBrowser)(
  'a list is filtered by values with commas, quotes and brackets, also after a reload',
  async () => {
    await using demo = await openDemo()
    const { page, errors, server } = demo
    const call = await callDemo(server)
    const fields = [{ key: 'title', type: 'string' }]
    expect((await call('POST', '/api/blueprints', { key: 'people', name: 'People', fields })).status).toBe(201)
    for (const title of ['Smith, John', '[x]', 'a"b', 'Smith', 'John'])
      expect((await call('POST', '/api/blueprints/people/entities', { title })).status).toBe(201)
    await page.goto(`${server.url}/admin/data/people`)
    await page.getByRole('cell', { name: 'Smith', exact: true }).waitFor()
    await page.getByRole('button', { name: 'Filter' }).click()
    await page.getByLabel('Field').first().click()
    await page.getByRole('option', { name: 'title' }).click()
    await page.getByLabel('Condition').first().click()
    await page.getByRole('option', { name: 'is one of' }).click()
    for (const title of ['Smith, John', '[x]', 'a"b']) {
      await page.getByLabel('Value').first().pressSequentially(title)
      await page.keyboard.press('Enter')
    }
    await page.getByRole('button', { name: 'Add filter' }).click()
    const expectThree = async () => {
      await page.getByRole('cell', { name: 'Smith', exact: true }).waitFor({ state: 'detached' })
      await page.getByRole('cell', { name: 'Smith, John', exact: true }).waitFor()
      for (const title of ['Smith, John', '[x]', 'a"b'])
        expect(await page.getByRole('cell', { name: title, exact: true }).count(), title).toBe(1)
    }
    await expectThree()
    await page.reload()
    await expectThree()
    expect(errors).toEqual([])
  },
)
