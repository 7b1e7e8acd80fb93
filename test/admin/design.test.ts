// engine: sqlite
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { hasBrowser } from '../fakes/browser'
import { apiCaller } from '../fakes/cli'
import { centerOf, dragOnto, inspectScreen, keepScreenshot, openDemo } from './admin-browser'
import { runShell } from './shell'

setDefaultTimeout(240_000)

describe.skipIf(!hasBrowser)('the design of blueprints', () => {
  let demo: Awaited<ReturnType<typeof openDemo>>
  let call: ReturnType<typeof apiCaller>
  beforeAll(async () => {
    demo = await openDemo()
    const [, key = ''] = await demo.server.until(/x-api-key: (\w+)'/)
    call = apiCaller(demo.server.url, { 'x-api-key': key, tenant: 'demo' })
  })
  afterAll(() => demo?.[Symbol.asyncDispose]())

  const open = (path: string) => demo.page.goto(`${demo.server.url}/admin${path}?tenant=demo`)
  const save = () => demo.page.getByRole('button', { name: 'Save', exact: true }).click()
  /** The editor ignores keys that follow too soon, because they were meant for the text. */
  const chooseSuggestion = async (name: string) => {
    await demo.page.getByRole('option', { name }).first().waitFor()
    await Bun.sleep(200)
    await demo.page.keyboard.press('Enter')
  }
  const readFields = async (blueprint: string) =>
    (await call('GET', `/api/blueprints/${blueprint}`)).body.fields as { key: string; [option: string]: unknown }[]

  test('an administrator renames, changes, adds, moves and removes fields, and sees before what that does', async () => {
    const { page, errors } = demo
    await page.getByRole('navigation').getByRole('link', { name: 'Contacts', exact: true }).click()
    await page.getByRole('link', { name: 'Design' }).click()
    await inspectScreen(page, 'design-fields')
    await page.getByRole('button', { name: 'Options of lastCall' }).click()
    await page.getByRole('textbox', { name: 'Name' }).fill('calledAt')
    await page.getByRole('textbox', { name: 'Title' }).fill('Last call')
    await page.getByRole('button', { name: 'Options of calledAt' }).click()

    await page.getByRole('button', { name: 'Add field' }).click()
    await page.getByRole('textbox', { name: 'Name' }).fill('priority')
    await page.getByRole('combobox', { name: 'Type' }).click()
    await page.getByRole('option', { name: 'Whole number' }).click()
    await page.getByLabel('Lowest value').fill('1')
    await page.getByLabel('Highest value').fill('5')
    for (const [index, choice] of ['1', '3', '5'].entries()) {
      await page.getByRole('button', { name: 'Add choice' }).click()
      await page.getByRole('textbox', { name: `choice ${index + 1}`, exact: true }).fill(choice)
    }
    await page.getByLabel('Only these roles change it').first().fill('editor')
    await page.keyboard.press('Enter')
    await inspectScreen(page, 'design-options')

    // The keyboard moves the field from the end to the first place but one.
    await page.getByRole('button', { name: 'Move company', exact: true }).focus()
    await page.keyboard.press('Space')
    for (let n = 0; n < 6; n++) {
      await page.keyboard.press('ArrowUp')
      await Bun.sleep(50)
    }
    await page.keyboard.press('Space')

    await page.getByRole('button', { name: 'Remove tags' }).click()
    await page.getByText('300 contacts have a value in it.').waitFor()
    expect(await page.getByRole('button', { name: 'Remove field' }).isDisabled()).toBe(true)
    await page.getByLabel('Type tags to confirm').fill('tags')
    await page.getByRole('button', { name: 'Remove field' }).click()

    await save()
    const review = page.getByRole('dialog', { name: 'Changes of Contacts' })
    await review.getByText('All 300 contacts fit. 300 of them are rewritten.').waitFor()
    for (const sentence of [
      '“tags” is removed.',
      '“lastCall” is renamed to “calledAt”.',
      '“priority” is new.',
      'The order of the fields changes.',
      '300 contacts lose their value of “tags”.',
    ])
      await review.getByText(sentence).waitFor()
    await inspectScreen(page, 'design-review')
    await review.getByRole('button', { name: 'Save and rewrite 300 contacts' }).click()
    await page.getByText('The design is saved.').waitFor()
    const fields = await readFields('contacts')
    expect(fields.map(({ key }) => key).toSorted()).toEqual(
      ['calledAt', 'company', 'email', 'job', 'name', 'priority', 'stage', 'worth'].toSorted(),
    )
    expect(fields.findIndex(({ key }) => key === 'company')).toBeLessThan(4)
    expect(fields.find(({ key }) => key === 'priority')).toMatchObject({
      ...{ type: 'integer', min: 1, max: 5, enum: [1, 3, 5], writeRoles: ['editor'] },
    })
    const { body } = await call('GET', '/api/blueprints/contacts/entities?$limit=1')
    expect(body[0].calledAt).toStartWith('2026-')
    expect(errors).toEqual([])
  })

  test('a change that entities do not fit is not offered to be saved, and leads to them', async () => {
    const { page, errors } = demo
    await open('/data/companies/all/design')
    await page.getByRole('button', { name: 'Options of employees' }).click()
    await page.getByLabel('Highest value').fill('500')
    await save()
    const review = page.getByRole('dialog', { name: 'Changes of Companies' })
    const summary = await review.getByText(/\d+ of \d+ companies do not fit/).textContent()
    const [, misfits = ''] = /^(\d+) of/.exec(summary ?? '') ?? []
    const { body } = await call('GET', '/api/blueprints/companies/charts/count?employees[$gt]=500')
    expect(Number(misfits)).toBe(body.count)
    expect(await review.getByRole('button', { name: 'Save' }).count()).toBe(0)
    await inspectScreen(page, 'design-misfits')
    await review.getByRole('link', { name: /^Show th|^Show it/ }).click()
    await page.waitForURL(/identifier\[\$in\]=/)
    await page.getByRole('cell').first().waitFor()
    // What was begun is kept until it is saved or discarded.
    await page.getByRole('link', { name: 'Design' }).click()
    await page.getByText('1 change').waitFor()
    await page.getByRole('button', { name: 'Discard' }).click()
    await page.getByText('1 change').waitFor({ state: 'detached' })
    expect(errors).toEqual([])
  })

  test('the pointer drags fields into another order, which is saved, and Escape lets one fall back', async () => {
    const { page, errors } = demo
    const orderOf = async () => (await readFields('companies')).map(({ key }) => key)
    const before = await orderOf()
    const [first, second, ...others] = before as [string, string, ...string[]]
    await open('/data/companies/all/design')
    const handle = (key: string) => page.getByRole('button', { name: `Move ${key}`, exact: true })
    await handle(others.at(-1)!).waitFor()
    await dragOnto(page, handle(first), handle(others.at(-1)!))
    await page.getByRole('button', { name: '1 change' }).waitFor()
    await dragOnto(page, handle(others.at(-1)!), handle(second))
    await page.mouse.move(...(await centerOf(handle(first))))
    await page.mouse.down()
    await page.mouse.move(...(await centerOf(handle(others.at(-1)!))), { steps: 10 })
    await keepScreenshot(page, 'design-dragged')
    await page.keyboard.press('Escape')
    await page.mouse.up()
    await page.waitForTimeout(300)
    await save()
    await page.getByText('The design is saved.').waitFor()
    expect(await orderOf()).toEqual([others.at(-1)!, second, ...others.slice(0, -1), first])
    expect(errors).toEqual([])
  })

  test('a refusal of the server stands at its field, and in the JSON at its line', async () => {
    const { page, errors } = demo
    await open('/data/companies/all/design')
    await page.getByRole('button', { name: 'Options of employees' }).click()
    await page.getByLabel('Highest value').fill('0')
    await page.getByLabel('Lowest value').fill('9')
    await save()
    await page.getByText('min must not be greater than max.').first().waitFor()
    await page.getByRole('link', { name: 'JSON' }).click()
    await page.getByText(/^Line \d+: min must not be greater than max/).waitFor()
    await page.locator('.cm-lint-marker-error').first().waitFor()
    await inspectScreen(page, 'design-json')
    const { body: saved } = await call('GET', '/api/blueprints/companies')
    const { name, description, fields, permissions } = saved
    const editor = page.getByRole('textbox', { name: 'Definition of Companies' })
    await editor.fill(`{ "name": ${JSON.stringify(name)}, `)
    await page.getByText(/^Line 1: This is not JSON yet/).waitFor()
    await editor.fill(
      JSON.stringify({ ...{ name, description, permissions }, fields: [...fields, { key: 'motto', type: 'text' }] }),
    )
    await page.getByRole('button', { name: '1 change' }).waitFor()
    await save()
    await page.getByText('The design is saved.').waitFor()
    expect((await readFields('companies')).at(-1)).toMatchObject({ key: 'motto', type: 'text' })
    expect(errors.filter((error) => !error.includes('400'))).toEqual([])
    errors.length = 0
  })

  test('a design that somebody else changed meanwhile is saved over theirs only when asked', async () => {
    const { page, errors } = demo
    await open('/data/companies/all/design/settings')
    await page.getByLabel('Description').fill('Those who pay.')
    await page.getByLabel('When an entity is created').check()
    expect((await call('PUT', '/api/blueprints/companies', { name: 'Firms' })).status).toBe(200)
    await save()
    await page.getByText('Someone else has changed this blueprint since you opened it.').waitFor()
    await page.getByRole('button', { name: 'Save my version over it' }).click()
    await page.getByText('The design is saved.').waitFor()
    const { body } = await call('GET', '/api/blueprints/companies')
    expect(body).toMatchObject({ name: 'Firms', description: 'Those who pay.', dispatchers: { create: true } })
    expect(errors.filter((error) => !error.includes('412'))).toEqual([])
    errors.length = 0
  })

  test('two hundred fields, hostile, long and right-to-left names leave the design usable', async () => {
    const { page, errors } = demo
    const titles = [
      '<img src=x onerror=alert(1)>',
      'مرحبا بالعالم',
      'x'.repeat(200),
      '👩‍👩‍👧‍👦 family',
      '"; drop table',
    ]
    const fields = Array.from({ length: 200 }, (_, n) => ({
      key: n === 7 ? 'k'.repeat(63) : `field${n}`,
      type: n % 3 ? 'string' : 'integer',
      title: titles[n % titles.length],
    }))
    const name = `<b>שלום</b> ${'very long name '.repeat(12)}`.trim()
    expect((await call('POST', '/api/blueprints', { key: 'hostile', name, fields })).status).toBe(201)
    expect((await call('POST', '/api/blueprints/hostile/entities', { identifier: 'design' })).status).toBe(201)
    await open('/data/hostile/all/design')
    await page.getByRole('button', { name: 'Options of field199' }).waitFor()
    await page.getByRole('button', { name: 'Options of field0', exact: true }).click()
    await page.getByRole('textbox', { name: 'Name' }).fill('first')
    await page.getByRole('button', { name: '1 change' }).waitFor()
    await keepScreenshot(page, 'design-hostile')
    await page.setViewportSize({ width: 390, height: 800 })
    expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true)
    await keepScreenshot(page, 'design-hostile-390')
    await page.setViewportSize({ width: 1_280, height: 800 })
    await page.getByRole('button', { name: 'Discard' }).click()
    // An entity may be called like a screen.
    await open('/data/hostile/design')
    await page.getByRole('heading', { name: 'design', exact: true }).waitFor()
    expect(errors).toEqual([])
  })

  test('a formula is written with suggestions, and the progress of a change that takes long is shown', async () => {
    const { page, errors } = demo
    const fields = [
      { key: 'price', type: 'decimal' },
      { key: 'count', type: 'integer' },
      { key: 'total', type: 'number' },
    ]
    expect((await call('POST', '/api/blueprints', { key: 'orders', name: 'Orders', fields })).status).toBe(201)
    for (let batch = 0; batch < 40; batch++) {
      const operations = Array.from({ length: 1_000 }, (_, n) => ({ op: 'create', data: { price: '2.50', count: n } }))
      expect((await call('POST', '/api/blueprints/orders/entities/batch', { operations })).status).toBe(200)
    }
    await open('/data/orders/all/design')
    await page.getByRole('button', { name: 'Options of total' }).click()
    await page.getByRole('button', { name: 'Compute it by a formula' }).click()
    await page.getByRole('textbox', { name: 'Formula' }).click()
    await page.keyboard.type('$numb')
    await chooseSuggestion('$number')
    await page.keyboard.type('pri')
    await chooseSuggestion('price')
    await page.keyboard.type(') * count')
    await keepScreenshot(page, 'design-formula')
    await save()
    const progress = page.getByRole('progressbar', { name: 'Progress of the change' })
    // At 0 % it has no width, which counts as hidden.
    const progressShown = progress.waitFor({ state: 'attached' })
    const rewrite = page.getByRole('button', { name: 'Save and rewrite 40,000 orders' })
    await rewrite.click().catch(async (error) => {
      await keepScreenshot(page, 'design-formula')
      throw error
    })
    await progressShown
    await keepScreenshot(page, 'design-progress')
    await progress.waitFor({ state: 'detached' })
    const { body } = await call('GET', '/api/blueprints/orders/entities?count=4&$limit=1')
    expect(body[0].total).toBe(10)
    expect(errors).toEqual([])
  })

  test('the diagram shows blueprints with their relations, and leads to their designs', async () => {
    const { page, errors } = demo
    await open('/data')
    await page.getByRole('link', { name: 'Diagram' }).click()
    await page.getByRole('link', { name: 'Contacts' }).last().waitFor()
    await page.getByText('1 relation as text').click()
    await page.getByText('company names one of').waitFor()
    await inspectScreen(page, 'diagram')
    await page.locator('.react-flow__node').getByRole('link', { name: 'Contacts' }).press('Enter')
    await page.waitForURL('**/data/contacts/all/design')
    expect(errors).toEqual([])
  })

  test('the commands of the API screen run as they are shown, with a token that was made there', async () => {
    const { page, errors } = demo
    await open('/data/contacts/all/api')
    await page.getByRole('button', { name: 'Create an API token' }).click()
    await page.getByText('The token is shown only once.').waitFor()
    await inspectScreen(page, 'blueprint-api')
    const answers: Record<string, string> = {}
    for (const title of ['List', 'Get one', 'Create', 'Change', 'Delete', 'Count', 'Chart'])
      answers[title] = await runShell(
        await page.getByRole('region', { name: title, exact: true }).locator('pre').innerText(),
      )
    expect(JSON.parse(answers.List!)).toHaveLength(10)
    expect(JSON.parse(answers.Create!)).toMatchObject({ identifier: 'example', name: 'Example' })
    expect(JSON.parse(answers.Change!)).toMatchObject({ identifier: 'example' })
    expect(JSON.parse(answers.Delete!)).toMatchObject({ success: true })
    expect(JSON.parse(answers.Count!)).toEqual({ count: 300 })
    expect(answers.Chart).toContain('series')
    const stream = await page.getByRole('region', { name: 'Follow changes' }).locator('pre').innerText()
    expect(await runShell(`${stream.replace('curl -N', 'curl -s -N --max-time 2')} || true`)).toContain('event: ready')
    await page.getByText('TypeScript', { exact: true }).click()
    await page.getByText('export interface Contacts extends Entity').waitFor()
    expect(await page.locator('pre').last().innerText()).not.toContain('interface Companies')
    const download = page.waitForEvent('download')
    await page.getByRole('button', { name: 'Download atoll.ts' }).click()
    expect(await Bun.file(await (await download).path()).text()).toContain('export function createClient')
    expect(errors).toEqual([])
  })

  test('a blueprint is deleted with its entities after its key was typed', async () => {
    const { page, errors } = demo
    await open('/data/contacts/all/design/settings')
    await page.getByText('The blueprint is deleted with all 300 entities.').waitFor()
    await page.getByRole('button', { name: 'Delete blueprint' }).click()
    const dialog = page.getByRole('dialog', { name: 'Delete the blueprint “Contacts”?' })
    await dialog.getByText('The blueprint is deleted with all 300 entities. This cannot be undone.').waitFor()
    await dialog.getByLabel('Type contacts to confirm').fill('contacts')
    await dialog.getByRole('button', { name: 'Delete blueprint' }).click()
    await page.waitForURL('**/admin/data')
    expect((await call('GET', '/api/blueprints/contacts')).status).toBe(404)
    expect(errors).toEqual([])
  })
})
